"""Pods that were told to leave a node that does not answer: they are waited for no longer than their grace.

    being deleted ── its node answers ──► it is gone soon, and whoever takes its place waits for that
                └── its node is not ready, or gone, and the grace has passed ──► *stranded*: the replica counts as lost

Why: nobody but the kubelet ends a deletion. Where it has lost power, the pod stays for ever, and the one that its
controller makes instead would wait for it for ever.
Owns: since when each has been told to leave, on a clock that only goes forward.
Must not: delete anything. The room stays busy until the pod is gone: where the node comes back, it may still run there.
"""

from __future__ import annotations

from collections.abc import Callable

from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.nodes import is_ready

PATIENCE_S = 5.0
"""Beyond its grace: news of a pod that is gone may be late."""
USUAL_GRACE_S = 30


class Stranding:
    def __init__(self, mirror: Mirror, clock: Callable[[], float]) -> None:
        self._mirror, self._clock = mirror, clock
        self._since: dict[str, float] = {}

    def look(self) -> None:
        """Once a turn, before news."""
        ending, now = self._mirror.ending, self._clock()
        self._since = {uid: self._since.get(uid, now) for uid in ending}
        for uid, since in self._since.items():
            pod = self._mirror.pods[uid]
            node = self._mirror.nodes.get(pod.spec.node_name or "")
            grace_s = pod.metadata.deletion_grace_period_seconds
            passed = now - since > (USUAL_GRACE_S if grace_s is None else grace_s) + PATIENCE_S
            if passed and (node is None or not is_ready(node)):
                self._mirror.strand(uid)

    @property
    def waits(self) -> bool:
        """For the grace of somebody to pass."""
        return bool(self._since)
