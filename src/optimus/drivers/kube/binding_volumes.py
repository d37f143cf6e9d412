"""Volumes for pods that have a place: asked for, and waited for.

    choose ──► a volume that is there    its claimRef names the claim        ──► the claim is bound
        └────► one that is to be made    the claim names the node (SELECTED_NODE)

Why: a claim that waits for its first consumer is bound by others (the volume controller of Kubernetes, a provisioner)
once the scheduler has said where.
Owns: what was asked for and is not seen yet.
Must not: undo what was asked for. A volume that was made stays where it is, and so its pod will go there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.first_consumers import SELECTED_NODE, Choice, choose, claims_of, waits_for_consumer
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod, VolumeClaim
from optimus.drivers.kube.watching import CLAIMS, VOLUMES
from optimus.kube import Done, Outcome, Refused, Unknown, Writer

CONFIRM_S = 10.0
"""What was asked for and is not shown by the watch after this time is asked for again, if it is still wanted."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class Asked(Struct, frozen=True):
    volume: str
    """Empty: it is to be made."""
    at: float


class BindingVolumes:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        go: Callable[[Coroutine[Any, Any, None]], object],
        clock: Callable[[], float],
    ) -> None:
        """`go`: begins a write."""
        self._mirror, self._writer, self._go, self._clock = mirror, writer, go, clock
        self._asked: dict[str, Asked] = {}
        """By uid of a claim: a new one with the same name is another one. Until the watch shows it, the volume is
        nobody else's."""
        self._seen: set[str] = set()
        """Those of them that the watch has shown."""
        self._meant: set[str] = set()
        """Uids of claims that a volume is meant for, in this turn."""
        self._refused: dict[str, str] = {}
        """Uid of a claim -> why its write was refused."""

    def is_needed(self, pod: Pod) -> bool:
        return bool(self._open(pod))

    def look(self, pod: Pod, place: str) -> tuple[str, str]:
        """What is still waited for, and why it is given up; both empty: it is ready. Raises MalformedError."""
        around, unbound, fresh = self._mirror.around, self._open(pod), []
        for claim in unbound:
            uid, name = claim.metadata.uid, claim.metadata.name
            if why := self._refused.pop(uid, ""):
                return "", why
            if self._is_asked_for(claim):
                self._seen.add(uid)
            elif uid in self._seen:
                self._forget_claim(uid)
                return "", f"claim {name}: its volume could not be made for {place}"
            elif uid not in self._asked:
                fresh.append(claim)
        if fresh:
            node = self._mirror.node_known(place)
            assert node is not None
            taken = {asked.volume for asked in self._asked.values()}
            chosen = choose(fresh, node, around.volumes, around.classes, around.capacities, taken)
            if isinstance(chosen, str):
                return "", chosen
            for choice in chosen:
                volume = choice.volume.metadata.name if choice.volume else ""
                self._asked[choice.claim.metadata.uid] = Asked(volume, self._clock())
                self._go(self._ask(choice, place))
        if unbound:
            names = ", ".join(claim.metadata.name for claim in unbound)
            return f"a volume for claim {names} on {place}", ""
        return self._look_at_bound(pod, place)

    def _look_at_bound(self, pod: Pod, place: str) -> tuple[str, str]:
        """All have a volume; whether it can be reached from its place, too."""
        node, claims = self._mirror.node_known(place), claims_of(pod, self._mirror.around.claims)
        if not claims:
            return "", ""
        for claim in claims:
            self._forget_claim(claim.metadata.uid)
        needs = self._mirror.needs_of(pod)
        if needs.obstacle is not None:  # it is bound half: the volume is named, and not given yet
            return needs.obstacle.text(), ""
        if node is None or not needs.where.accepts(node):
            return "", f"its volume cannot be reached from {place}"
        return "", ""

    def _is_asked_for(self, claim: VolumeClaim) -> bool:
        """As the watch shows it: by us, or by whoever led before."""
        if SELECTED_NODE in (claim.metadata.annotations or {}):
            return True
        return claim.metadata.uid in self._meant

    def begin_turn(self) -> None:
        refs = (one.spec.claim_ref for one in self._mirror.around.volumes.values())
        self._meant = {ref.uid for ref in refs if ref is not None}
        there, since = {one.metadata.uid for one in self._mirror.around.claims.values()}, self._clock() - CONFIRM_S
        self._asked = {uid: one for uid, one in self._asked.items() if uid in there and one.at >= since}
        self._refused = {uid: why for uid, why in self._refused.items() if uid in there}
        self._seen &= there

    def _open(self, pod: Pod) -> list[VolumeClaim]:
        around = self._mirror.around
        return [one for one in claims_of(pod, around.claims) if waits_for_consumer(one, around.classes)]

    def _forget_claim(self, uid: str) -> None:
        self._asked.pop(uid, None)
        self._seen.discard(uid)

    # -- writes -------------------------------------------------------------------------------------------------------

    async def _ask(self, choice: Choice, node: str) -> None:
        claim = choice.claim.metadata
        if choice.volume is None:
            outcome = await self._writer.patch(
                CLAIMS,
                claim.name,
                {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: node}}},
                namespace=claim.namespace,
                resource_version=claim.resource_version,
            )
        else:
            volume = choice.volume.metadata
            ref = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace,
                "name": claim.name,
            }
            outcome = await self._writer.patch(
                VOLUMES,
                volume.name,
                {
                    "metadata": {"uid": volume.uid, "annotations": {BOUND_BY_CONTROLLER: "yes"}},
                    "spec": {"claimRef": {**ref, "uid": claim.uid, "resourceVersion": claim.resource_version}},
                },
                resource_version=volume.resource_version,
            )
        self._answered(choice.claim, outcome)

    def _answered(self, claim: VolumeClaim, outcome: Outcome) -> None:
        uid, name = claim.metadata.uid, claim.metadata.name
        match outcome:
            case Done():
                pass  # the watch shows it
            case Unknown():
                pass  # it shows it, or it is asked for again
            case Refused(why, message):
                self._forget_claim(uid)
                self._refused[uid] = f"claim {name}: {why}: {message}"
            case _:
                self._forget_claim(uid)  # another version, or gone: chosen again, on what the watch shows then
