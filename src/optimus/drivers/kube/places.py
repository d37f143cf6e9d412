"""Which pod has which place: what the brain was told of each, and what a plan has meant for it.

Why: the brain speaks of replicas (workload, role, ordinal), the cluster of pods; a plan ties the two before a pod is
bound, the watch confirms it, and either may go first.
Owns: that tie, in both directions.
Must not: look into pods, or tell anybody.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from optimus.drivers.kube.grouping import Slot


class Told(StrEnum):
    RUNNING = "running"
    STOPPING = "stopping"


class Seat(Struct, frozen=True):
    """What the brain knows of a pod."""

    workload: str
    slot: Slot
    node: str
    told: Told


class Places:
    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}
        self._seated: dict[str, set[str]] = {}
        """By workload: uids of the same."""
        self._planned: dict[str, tuple[str, Slot]] = {}
        """By uid: its workload and the place it has, or is to have by a plan."""
        self._holders: dict[tuple[str, Slot], str] = {}
        """The same, the other way round."""

    def clear(self) -> None:
        for one in (self._seats, self._seated, self._planned, self._holders):
            one.clear()

    def seat(self, uid: str) -> Seat | None:
        """What was told of it."""
        return self._seats.get(uid)

    def seats_of(self, workload: str) -> dict[str, Seat]:
        """By uid."""
        return {uid: self._seats[uid] for uid in sorted(self._seated.get(workload, ()))}

    def all_planned(self) -> list[tuple[str, tuple[str, Slot]]]:
        return list(self._planned.items())

    def planned(self, uid: str) -> tuple[str, Slot] | None:
        return self._planned.get(uid)

    def holder(self, workload: str, slot: Slot) -> str | None:
        return self._holders.get((workload, slot))

    def plan(self, uid: str, workload: str, slot: Slot) -> None:
        self._planned[uid], self._holders[workload, slot] = (workload, slot), uid

    def unplan(self, uid: str) -> None:
        place = self._planned.pop(uid, None)
        if place is not None and self._holders.get(place) == uid:
            del self._holders[place]

    def sit(self, uid: str, seat: Seat) -> None:
        self._seats[uid] = seat
        self._seated.setdefault(seat.workload, set()).add(uid)
        self.plan(uid, seat.workload, seat.slot)

    def stand_up(self, uid: str) -> Seat:
        seat = self._seats.pop(uid)
        self._seated[seat.workload].discard(uid)
        if not self._seated[seat.workload]:
            del self._seated[seat.workload]
        self.unplan(uid)
        return seat
