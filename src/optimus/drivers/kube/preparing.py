"""Pods that have a place and wait for a volume or for devices there: those are asked for, and only then are pods bound.

    place ──► ask (`binding_volumes`, `allocating`) ──► all of the gang have them ──► bind
                 │
                 └─ refused, out of reach, not within PATIENCE_S … ──► the place is given back

Why: a claim that waits for its pod is met by a write of ours, and perhaps by others after it; a pod that is bound
before that may find itself without its volume or its devices.
Owns: pods between their place and their bind, gang by gang: none is bound before all have what they wait for. Their
room is held meanwhile, and people are told what is waited for. Pods that share a claim may be given places before it is
known where what it claims is; those that cannot reach it then get others.
Must not: write.

What was asked for stands in the cluster alone: another leader finds it there and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.requests import MalformedError
from optimus.model.reasons import Code, Reason, reason

PATIENCE_S = 600.0
"""As kube-scheduler: a volume may be made in seconds, or in minutes."""


class Waiting(Struct, frozen=True):
    """A pod with a place."""

    uid: str
    workload: str
    node: str
    since: float


class Verdicts(Struct, frozen=True):
    ready: list[str]
    """Uids that can be bound."""
    given_up: dict[str, str]
    """Uid -> why."""
    culprits: set[str]
    """Those of them whose place is to blame; the others only wait for these."""


class Preparation(Protocol):
    """Of one kind of what is claimed."""

    def is_needed(self, pod: Pod) -> bool: ...

    def begin_turn(self) -> None:
        """Before the pods that wait are looked at."""

    def look(self, pod: Pod, place: str) -> tuple[str, str]:
        """What is still waited for, and why it is given up; both empty: it is ready. Raises MalformedError."""


class Preparing:
    def __init__(self, mirror: Mirror, steps: Iterable[Preparation], clock: Callable[[], float]) -> None:
        self._mirror, self._steps, self._clock = mirror, list(steps), clock
        self._pods: dict[str, dict[str, Waiting]] = {}
        """By workload and uid."""
        self._workload_of: dict[str, str] = {}
        """By uid of a pod."""
        self.reasons: dict[str, Reason] = {}
        """By workload: what it waits for."""

    @property
    def workloads(self) -> set[str]:
        return set(self._pods)

    def uids(self, workload: str) -> list[str]:
        return list(self._pods.get(workload, ()))

    def is_needed(self, workload: str, pods: Iterable[Pod]) -> bool:
        """Whether any of them has a claim that waits for it, or others of the gang wait for theirs."""
        return workload in self._pods or any(step.is_needed(pod) for pod in pods for step in self._steps)

    def begin(self, workload: str, pod: Pod, node: str) -> None:
        uid = pod.metadata.uid
        self._pods.setdefault(workload, {})[uid] = Waiting(uid, workload, node, self._clock())
        self._workload_of[uid] = workload

    def forget(self, uid: str) -> None:
        workload = self._workload_of.pop(uid, None)
        pods = self._pods.get(workload or "")
        if workload is not None and pods is not None and pods.pop(uid, None) is not None and not pods:
            del self._pods[workload]
            self.reasons.pop(workload, None)

    def look(self, is_complete: Callable[[str], bool]) -> Verdicts:
        """Once a turn. `is_complete`: whether all pods of a workload that are to come have come."""
        found = Verdicts([], {}, set())
        if self._pods:
            for step in self._steps:
                step.begin_turn()
        for workload, pods in list(self._pods.items()):
            told, why, culprit = self._look_at(pods.values())
            if why:
                found.culprits.add(culprit)
                found.given_up.update(dict.fromkeys(pods, why))
            elif not told and is_complete(workload):
                found.ready.extend(pods)
            self.reasons[workload] = reason(Code.NOT_READY, missing=told or "its other pods have not come yet")
        return found

    # -- one gang -----------------------------------------------------------------------------------------------------

    def _look_at(self, pods: Iterable[Waiting]) -> tuple[str, str, str]:
        """What is still waited for, why it is given up, and the uid of the pod whose place is to blame; all empty: all
        are ready."""
        waits = ""
        for one in pods:
            pod, node = self._mirror.pods.get(one.uid), self._mirror.node_known(one.node)
            if pod is None or node is None:
                return "", f"its pod or node {one.node} is gone", ""
            try:
                told, why = self._look_at_pod(pod, one.node)
            except MalformedError as error:
                return "", str(error), ""
            if told and self._clock() - one.since > PATIENCE_S:
                why = f"{told}, in vain for {PATIENCE_S / 60:.0f} minutes"
            if why:
                return "", why, one.uid
            waits = waits or told
        return waits, "", ""

    def _look_at_pod(self, pod: Pod, place: str) -> tuple[str, str]:
        """All are asked at once."""
        found = [step.look(pod, place) for step in self._steps]
        why = next((why for _, why in found if why), "")
        return next((told for told, _ in found if told), ""), why
