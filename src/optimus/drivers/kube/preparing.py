"""Pods that have a place and wait for a volume there: the volume is asked for, and only then are they bound.

    place ──► choose ──► a volume that is there    its claimRef names the claim        ──► the claim is bound ──► bind
                  └────► one that is to be made    the claim names the node (SELECTED_NODE)          │
                                                                                                     └─ not within
                          refused, given up by its provisioner, out of reach ──► the place is given back  PATIENCE_S

Why: a claim that waits for its first consumer is bound by others (the volume controller of Kubernetes, a provisioner)
once the scheduler has said where; a pod that is bound before that may find itself without its volume.
Owns: pods between their place and their bind, gang by gang: none is bound before all have what they wait for. Their
room is held meanwhile, and people are told what is waited for. Pods that share a claim may be given places before it is
known where its volume is; those that cannot reach it then get others.
Must not: undo what was asked for. A volume that was made stays where it is, and so its pod will go there.

What was asked for stands in the cluster alone: another leader finds it there and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.first_consumers import SELECTED_NODE, Choice, choose, claims_of, waits_for_consumer
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod, VolumeClaim
from optimus.drivers.kube.requests import MalformedError
from optimus.drivers.kube.watching import CLAIMS, VOLUMES
from optimus.kube import Done, Outcome, Refused, Unknown, Writer
from optimus.model.reasons import Code, Reason, reason

PATIENCE_S = 600.0
"""As kube-scheduler: a volume may be made in seconds, or in minutes."""
CONFIRM_S = 10.0
"""What was asked for and is not shown by the watch after this time is asked for again."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class Waiting(Struct, frozen=True):
    """A pod with a place."""

    uid: str
    workload: str
    node: str
    since: float


class Asked(Struct, frozen=True):
    volume: str
    """Empty: it is to be made."""
    at: float


class Verdicts(Struct, frozen=True):
    ready: list[str]
    """Uids that can be bound."""
    given_up: dict[str, str]
    """Uid -> why."""


class Preparing:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        go: Callable[[Coroutine[Any, Any, None]], object],
        clock: Callable[[], float],
    ) -> None:
        """`go`: begins a write."""
        self._mirror, self._writer, self._go, self._clock = mirror, writer, go, clock
        self._pods: dict[str, dict[str, Waiting]] = {}
        """By workload and uid."""
        self._asked: dict[str, Asked] = {}
        """By claim (`namespace/name`). Until the watch shows it, the volume is nobody else's."""
        self._seen: set[str] = set()
        """Those of them that the watch has shown."""
        self._refused: dict[str, str] = {}
        """Claim -> why its write was refused."""
        self.reasons: dict[str, Reason] = {}
        """By workload: what it waits for."""

    @property
    def workloads(self) -> set[str]:
        return set(self._pods)

    def uids(self, workload: str) -> list[str]:
        return list(self._pods.get(workload, ()))

    def is_needed(self, workload: str, pods: Iterable[Pod]) -> bool:
        """Whether any of them has a claim that waits for it, or others of the gang wait for theirs."""
        return workload in self._pods or any(self._open(pod) for pod in pods)

    def begin(self, workload: str, pod: Pod, node: str) -> None:
        uid = pod.metadata.uid
        self._pods.setdefault(workload, {})[uid] = Waiting(uid, workload, node, self._clock())

    def forget(self, uid: str) -> None:
        for workload, pods in list(self._pods.items()):
            if pods.pop(uid, None) is not None and not pods:
                del self._pods[workload]
                self.reasons.pop(workload, None)

    def look(self, is_complete: Callable[[str], bool]) -> Verdicts:
        """Once a turn. `is_complete`: whether all pods of a workload that are to come have come."""
        found = Verdicts([], {})
        for workload, pods in list(self._pods.items()):
            told, why = self._look_at(pods.values())
            if why:
                found.given_up.update(dict.fromkeys(pods, why))
            elif not told and is_complete(workload):
                found.ready.extend(pods)
            self.reasons[workload] = reason(Code.NOT_READY, missing=told or "its other pods have not come yet")
        return found

    # -- one gang -----------------------------------------------------------------------------------------------------

    def _look_at(self, pods: Iterable[Waiting]) -> tuple[str, str]:
        """What is still waited for, and why it is given up; both empty: all are ready."""
        waits = ""
        for one in pods:
            pod, node = self._mirror.pods.get(one.uid), self._mirror.node_known(one.node)
            if pod is None or node is None:
                return "", f"its pod or node {one.node} is gone"
            try:
                told, why = self._look_at_pod(one, pod)
            except MalformedError as error:
                return "", str(error)
            if told and self._clock() - one.since > PATIENCE_S:
                why = f"{told}, in vain for {PATIENCE_S / 60:.0f} minutes"
            if why:
                return "", why
            waits = waits or told
        return waits, ""

    def _look_at_pod(self, one: Waiting, pod: Pod) -> tuple[str, str]:
        around, unbound, fresh = self._mirror.around, self._open(pod), []
        for claim in unbound:
            key, name = _key(claim), claim.metadata.name
            if why := self._refused.pop(key, ""):
                return "", why
            asked = self._asked.get(key)
            if self._is_asked_for(claim):
                self._seen.add(key)
            elif key in self._seen:
                self._forget_claim(key)
                return "", f"claim {name}: its volume could not be made for {one.node}"
            elif asked is None or self._clock() - asked.at > CONFIRM_S:
                fresh.append(claim)
        if fresh:
            node = self._mirror.node_known(one.node)
            assert node is not None
            taken = {asked.volume for key, asked in self._asked.items() if key not in map(_key, fresh)}
            chosen = choose(fresh, node, around.volumes, around.classes, taken)
            if isinstance(chosen, str):
                return "", chosen
            for choice in chosen:
                volume = choice.volume.metadata.name if choice.volume else ""
                self._asked[_key(choice.claim)] = Asked(volume, self._clock())
                self._go(self._ask(choice, one.node))
        if unbound:
            names = ", ".join(claim.metadata.name for claim in unbound)
            return f"a volume for claim {names} on {one.node}", ""
        return self._look_at_bound(one, pod)

    def _look_at_bound(self, one: Waiting, pod: Pod) -> tuple[str, str]:
        """All have a volume; whether it can be reached from its place, too."""
        node = self._mirror.node_known(one.node)
        for claim in claims_of(pod, self._mirror.around.claims):
            self._forget_claim(_key(claim))
        needs = self._mirror.needs_of(pod)
        if needs.obstacle is not None:  # it is bound half: the volume is named, and not given yet
            return needs.obstacle.text(), ""
        if node is None or not needs.where.accepts(node):
            return "", f"its volume cannot be reached from {one.node}"
        return "", ""

    def _is_asked_for(self, claim: VolumeClaim) -> bool:
        """As the watch shows it: by us, or by whoever led before."""
        if SELECTED_NODE in (claim.metadata.annotations or {}):
            return True
        uid = claim.metadata.uid
        refs = (one.spec.claim_ref for one in self._mirror.around.volumes.values())
        return any(ref is not None and ref.uid == uid for ref in refs)

    def _open(self, pod: Pod) -> list[VolumeClaim]:
        around = self._mirror.around
        return [one for one in claims_of(pod, around.claims) if waits_for_consumer(one, around.classes)]

    def _forget_claim(self, key: str) -> None:
        self._asked.pop(key, None)
        self._seen.discard(key)

    # -- writes -------------------------------------------------------------------------------------------------------

    async def _ask(self, choice: Choice, node: str) -> None:
        claim, key = choice.claim.metadata, _key(choice.claim)
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
        self._answered(key, outcome)

    def _answered(self, key: str, outcome: Outcome) -> None:
        match outcome:
            case Done():
                pass  # the watch shows it
            case Unknown():
                pass  # it shows it, or it is asked for again
            case Refused(why, message):
                self._forget_claim(key)
                self._refused[key] = f"claim {key.partition('/')[2]}: {why}: {message}"
            case _:
                self._forget_claim(key)  # another version, or gone: chosen again, on what the watch shows then


def _key(claim: VolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
