"""Pods of one role that need different things: the role is divided, and each part is placed by what it needs.

    label group, PodGroup      launcher (no GPU, another node) and workers in one role     pod, pod~3f1c2
    pods of one template       their volumes are on different nodes already               worker, worker~90ab1

Why: the brain places replicas of a role as alike; whoever differs would be bound where it cannot run.
Owns: which part those who need the same are in. The first kind that comes has the plain name of the role.
Must not: move anybody who has a place: what a pod was bound as is written on it, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from zlib import crc32

import msgspec

from optimus.drivers.kube.counting import Counting
from optimus.drivers.kube.first_consumers import Shape
from optimus.drivers.kube.grouping import Groups
from optimus.drivers.kube.grouping.records import PART
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.pods import PodNeeds
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import Where
from optimus.model.workloads import Request

MANY = 2
"""Pods that may differ."""
Alike = tuple[Request, Where, tuple[object, ...], tuple[Shape, ...], tuple[str, ...]]
"""What pods in one part have in common."""


def alike(needs: PodNeeds, takes: tuple[str, ...]) -> Alike:
    """`takes`: counters of neighbours. Labels matter only by these: many have one of their own, such as an index."""
    social = needs.social
    rules = (social.near, social.apart, social.spread, social.sole_claims)
    return needs.request, needs.where, rules, needs.shapes, takes


def shared(needs: PodNeeds, pods: int) -> Reason | None:
    """Each pod of a role counts its GPUs, and those of one claim would be counted for several."""
    if pods == 1 or not needs.devices.shared_gpus:
        return None
    feature = f"the GPUs of one resource claim ({needs.devices.shared_gpus[0]}) for several pods of a role"
    return reason(Code.UNSUPPORTED, feature=feature, instead="claim them from a template, each its own")


class Parts:
    """Of one role of a gang."""

    def __init__(self) -> None:
        self._of: dict[Alike, str] = {}
        self._has_looked = False

    def part(self, kind: Alike, others: Iterable[tuple[str, Alike]]) -> str:
        """`others`: of those who have a place, their part and what they need; asked for once: who gets one later has
        been seen here first."""
        if kind not in self._of and not self._has_looked:
            self._has_looked = True
            self._of.update({theirs: part for part, theirs in others if theirs not in self._of})
        if kind not in self._of:
            self._of[kind] = self._new(kind) if "" in self._of.values() else ""
        return self._of[kind]

    def keep_only(self, parts: set[str]) -> None:
        """Those that somebody is in."""
        self._of = {kind: part for kind, part in self._of.items() if part in parts}

    def _new(self, kind: Alike) -> str:
        number = crc32(msgspec.json.encode(kind))
        while (name := f"{PART}{number % 0x100000:05x}") in self._of.values():
            number += 1
        return name


class Division:
    """Of the roles of all gangs."""

    def __init__(
        self,
        groups: Groups,
        pods: Mapping[str, Pod],
        needs_of: Callable[[Pod], PodNeeds],
        counting: Counting,
    ) -> None:
        self._groups, self._pods, self._needs_of, self._counting = groups, pods, needs_of, counting
        self._parts: dict[str, dict[str, Parts]] = {}
        """By gang and role."""

    def divide(self, gang: str, waits: Callable[[Pod], bool]) -> None:
        """Those who wait go to the part of those who need the same. Of whom it is not known yet what they need (a claim
        that is not made yet), or who cannot be placed, stay."""
        members = self._groups.members(gang)
        if not members:
            self._parts.pop(gang, None)
        if len(members) < MANY:
            return
        roles = self._parts.setdefault(gang, {})
        for uid in sorted(members, key=self.age):
            pod, slot = self._pods.get(uid), self._groups.slot_of(uid)
            if pod is None or not waits(pod) or slot is None or self._needs_of(pod).obstacle is not None:
                continue
            role = slot.role.removesuffix(self._groups.part_of(uid))
            parts = roles.setdefault(role, Parts())
            self._groups.divide(uid, parts.part(self._alike(pod), self._placed(gang, role, waits)))
        there = {self._groups.part_of(uid) for uid in members}
        for parts in roles.values():
            parts.keep_only(there)

    def _placed(self, gang: str, role: str, waits: Callable[[Pod], bool]) -> Iterator[tuple[str, Alike]]:
        """Those who have a place: the part that each is in, and what it needs."""
        for uid in sorted(self._groups.members(gang)):
            pod, slot = self._pods.get(uid), self._groups.slot_of(uid)
            part = self._groups.part_of(uid)
            if pod is not None and slot is not None and slot.role == role + part and not waits(pod):
                yield part, self._alike(pod)

    def _alike(self, pod: Pod) -> Alike:
        return alike(self._needs_of(pod), self._counting.takes(pod.key))

    def age(self, uid: str) -> tuple[str, str]:
        pod = self._pods.get(uid)
        return (pod.metadata.creation_timestamp or "" if pod is not None else "", uid)
