"""Places that have failed: for some minutes, other nodes are tried before them.

    a start fails on a node ──► the brain is told (`Workload.avoids`) ──► another place, if there is one
                                                     └── AVOID_S later ──► the node is as good as any

Why: placement is the same for the same cluster. Work that was sent to a node on which it cannot start (a volume that
cannot be made there, a kubelet or a kube-scheduler that says no) would be sent there for ever, beside free nodes.
Owns: which nodes, for which work, until when. Of each workload by itself: what fails for one may be its own fault.
Must not: forbid a node. Where no other place is left, it is tried again after the pause of a failed start.

It is kept by the leader alone: the next one fails once more, and remembers that.
"""

from __future__ import annotations

from collections.abc import Callable

from optimus.drivers.kube.objects import Pod

AVOID_S = 600.0
"""Longer than the longest pause after a failed start: when it is over, the node on which that was is still avoided."""
MOST_NODES = 64
"""Of one workload; beyond, the oldest are forgotten. A gang that has failed on so many fails for another reason."""
Tell = Callable[[str, tuple[str, ...]], object]


class Avoiding:
    def __init__(self, tell: Tell, clock: Callable[[], float]) -> None:
        """`tell`: the nodes that a workload avoids from now on."""
        self._tell, self._clock = tell, clock
        self._until: dict[str, dict[str, float]] = {}
        """By workload and node, oldest failure first."""

    def failed(self, workload: str, node: str) -> None:
        """It could not start there."""
        nodes = self._until.setdefault(workload, {})
        nodes.pop(node, None)
        nodes[node] = self._clock() + AVOID_S
        while len(nodes) > MOST_NODES:
            del nodes[next(iter(nodes))]
        self._say(workload)

    def look(self, is_known: Callable[[str], bool]) -> None:
        """Once a turn: what was long ago, or is of work that is over, is forgotten."""
        now = self._clock()
        for workload, nodes in list(self._until.items()):
            left = {node: until for node, until in nodes.items() if until > now} if is_known(workload) else {}
            if len(left) < len(nodes):
                self._until[workload] = left
                self._say(workload)
            if not left:
                del self._until[workload]

    def _say(self, workload: str) -> None:
        self._tell(workload, tuple(sorted(self._until[workload])))


def was_refused(pod: Pod) -> bool:
    """By its kubelet, or driven away before anything of it ran: it has failed with a reason, and no container has."""
    statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    ran = any(one.restart_count or (one.state is not None and one.state.waiting is None) for one in statuses)
    return pod.status.phase == "Failed" and bool(pod.status.reason) and bool(pod.spec.node_name) and not ran
