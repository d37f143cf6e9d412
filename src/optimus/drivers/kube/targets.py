"""Targets: how many replicas a UnifiedJob shall have, written on it for its controller (ADR 25).

    Start, Grow, Shrink, Evict ──► want ──► patch ──► the watch shows it              settled
                                      ▲        ├────► a bad moment: sent again        (PATCH_AGAIN_S)
                                      │        └────► refused: the places are given back
                                      └── no pod has come for a place (COME_S): the number is taken back, and it is said

Why: the brain grants places, the jobs controller makes pods for them; one number stands between the two, and it must be
right whoever dies between writing and seeing it.
Owns: what was asked for last, until the watch shows it, and since when pods are waited for.
Must not: touch pods, or decide how many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.grouping import Group, Patch, target_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.mirror import Mirror
from optimus.kube import Done, Gone, Outcome, Refused, Resource, Writer

PATCH_AGAIN_S = 1.0
PAUSED = "Suspended: paused by its owner"
FEWER = "Fewer: the room of parts that have ended was wanted by others"
LOWER_S = 10.0
COME_S = 120.0
"""So long pods of a place are waited for: a controller makes them in a moment, unless a quota or a policy says no."""


class Wanted(Struct, frozen=True):
    replicas: int
    why: str
    held: bool = False
    """For good: the job ends with this reason."""


class Targets:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        resource_of: Callable[[str, str], Resource | None],
        go: Callable[[Coroutine[Any, Any, None]], object],
        clock: Callable[[], float],
        note: Callable[[str, str, Outcome], object],
    ) -> None:
        self.refused: Callable[[str, str], object] = lambda _workload, _why: None
        """Told of a job that may not be started, and in whose words."""
        self._mirror, self._writer, self._resource_of = mirror, writer, resource_of
        self._go, self._clock, self._note = go, clock, note
        self._wanted: dict[str, Wanted] = {}
        """By workload: what the watch does not show yet."""
        self._sending: set[str] = set()
        self._again_at: dict[str, float] = {}
        self._since: dict[str, float] = {}
        """By workload: since when pods are waited for."""
        self._above: dict[str, float] = {}
        """By array: since when its number is above what it has."""
        self._overdue: dict[str, str] = {}
        """By workload: what its controller says of a size that is not there, and has been taken back."""

    def steers(self, workload: str) -> bool:
        """It is a job whose controller follows a number."""
        return is_steered(self._mirror.groups.group(workload))

    def is_array(self, workload: str) -> bool:
        group = self._mirror.groups.group(workload)
        return group is not None and group.job is not None and bool(group.job.array)

    def now_at(self, workload: str) -> int:
        """What was asked for last, or what the job says."""
        if (wanted := self._wanted.get(workload)) is not None:
            return wanted.replicas
        group = self._mirror.groups.group(workload)
        return (group.target if group is not None else None) or 0

    def want(self, workload: str, replicas: int, why: str, *, held: bool = False) -> None:
        self._wanted[workload] = Wanted(max(replicas, 0), why, held)
        self._since.pop(workload, None)
        self._again_at.pop(workload, None)
        self._send(workload)

    def look(self, places: Callable[[str], int], granted: Callable[[str], int]) -> list[tuple[str, str]]:
        """What the watch shows is settled, what came at a bad moment is sent again. Returns the jobs for whose places
        nobody has come in time, with what is known of it. `places`: how many of a job's wait for a pod; `granted`: how
        many replicas have one in all."""
        now, known, late = self._clock(), self._mirror.steered, []
        for workload, wanted in list(self._wanted.items()):
            group = self._mirror.groups.group(workload)
            if group is None or group.over or _shows(group, wanted):
                self._settle(workload)
            elif now >= self._again_at.get(workload, float("inf")):
                self._send(workload)
        for workload in sorted(known):
            group = self._mirror.groups.group(workload)
            if group is None or not is_steered(group):
                continue
            if trouble := self._is_late(workload, group, places(workload), now):
                late.append((workload, trouble))
            if group.suspended and self.now_at(workload):  # it has left by itself, and the brain saw no one to stop
                self.want(workload, 0, PAUSED)
            elif group.job is not None and group.job.array:
                self._lower(workload, granted(workload), now)
        for some in (self._since, self._overdue, self._above):
            for workload in some.keys() - known:
                del some[workload]
        return late

    def _is_late(self, workload: str, group: Group, places: int, now: float) -> str:
        """What keeps it from the size it was told; empty if nothing does, or it was told before."""
        said, self._overdue[workload] = self._overdue.get(workload, ""), group.overdue
        if not places:
            self._since.pop(workload, None)
        elif now - self._since.setdefault(workload, now) > COME_S:
            del self._since[workload]
            return f"no pod has come for its places{f': {group.trouble}' if group.trouble else ''}"
        return group.overdue if group.overdue != said else ""

    def _lower(self, workload: str, granted: int, now: float) -> None:
        """Of an array whose parts have ended, and whose room somebody else has got: pods that nobody has a place for
        need not wait for one."""
        if granted >= self.now_at(workload):
            self._above.pop(workload, None)
        elif now - self._above.setdefault(workload, now) > LOWER_S:
            del self._above[workload]
            self.want(workload, granted, FEWER)

    @property
    def unsettled(self) -> int:
        return len(self._wanted)

    def _settle(self, workload: str) -> None:
        self._wanted.pop(workload, None)
        self._again_at.pop(workload, None)

    def _send(self, workload: str) -> None:
        """One at a time for each job: the next one goes when this one is answered, or two might change places."""
        group, wanted = self._mirror.groups.group(workload), self._wanted[workload]
        patch = target_patch(group, wanted.replicas, wanted.why, held=wanted.held) if group is not None else None
        if patch is None:
            self._settle(workload)
        elif workload not in self._sending:
            self._sending.add(workload)
            self._go(self._patch(workload, wanted, patch))

    async def _patch(self, workload: str, wanted: Wanted, patch: Patch) -> None:
        try:
            outcome = await self._write(patch)
        finally:
            self._sending.discard(workload)
        self._note(f"{wanted.replicas} replicas for", workload, outcome)
        if self._wanted.get(workload) != wanted:
            if workload in self._wanted:
                self._send(workload)
        elif isinstance(outcome, Refused) and not outcome.passing:
            self._settle(workload)
            self.refused(workload, f"{outcome.reason}: {outcome.message}")
        elif not isinstance(outcome, Done | Gone):
            after_s = (outcome.retry_after_s if isinstance(outcome, Refused) else None) or PATCH_AGAIN_S
            self._again_at[workload] = self._clock() + after_s

    async def _write(self, patch: Patch) -> Outcome:
        thing = patch.object
        resource = self._resource_of(thing.kind, thing.api_version)
        if resource is None:
            await asyncio.sleep(0)
            return Refused("NotServed", f"nobody serves {thing.kind}")
        return await self._writer.patch(resource, thing.name, patch.body, namespace=thing.namespace)


def _shows(group: Group, wanted: Wanted) -> bool:
    return (group.target or 0) == wanted.replicas and group.held >= wanted.held


def is_steered(group: Group | None) -> bool:
    return group is not None and group.stop.how is StopHow.TARGET
