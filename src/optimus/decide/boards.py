"""The rooms of one pool while a plan is being made.

Two ledgers are copied from the snapshot, *now* and *coming*. Every reservation adds a third kind, a *shadow*: what is
free at the reserved time without touching the reservation. A placement must fit the elementwise minimum of the
ledgers that bind it, so "nobody slips into room kept for another" is arithmetic.

    starts now ............ min(now, coming)      and every shadow it would outlast
    is promised room ...... coming                likewise
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimus.decide.placement.rooms import Room, ScoreFunction
from optimus.decide.placement.seating import Seating
from optimus.state.arrays import Ints
from optimus.state.snapshot import PoolView, Snapshot

FEW = 4
"""Up to so many seats are counted one by one; arrays pay off only above."""


@dataclass(slots=True, eq=False)
class Ledger:
    scalars: Ints
    gpus: Ints
    activity: Ints
    """Predicted load by device; the opposite of room."""

    def copy(self) -> Ledger:
        return Ledger(self.scalars.copy(), self.gpus.copy(), self.activity.copy())

    def take(self, node: int, scalars: Ints, devices: tuple[int, ...], milli: int, activity_milli: int) -> None:
        self.scalars[node] -= scalars
        for device in devices:
            self.gpus[node, device] -= milli
            self.activity[node, device] += activity_milli


@dataclass(slots=True, eq=False)
class Shadow:
    """A reservation: who is to run where, from when to when if it ends as predicted."""

    at_ms: int
    end_ms: int
    row: int
    seating: Seating
    ledger: Ledger
    """What is free when it starts, without its seats."""

    def runs_at(self, at_ms: int) -> bool:
        return self.at_ms <= at_ms < self.end_ms


class Board:
    def __init__(self, snapshot: Snapshot, view: PoolView, score: ScoreFunction, boards: Sequence[Board] = ()) -> None:
        """`boards`: those of all pools, this one included; rules about neighbours do not end at pools."""
        self.view = view
        self._score = score
        self._boards = boards
        width = view.capacity_gpus.shape[1]
        rows = view.rows
        self.now = Ledger(
            snapshot.now_scalars[rows], snapshot.now_gpus[rows, :width], snapshot.now_activity[rows, :width]
        )
        self.coming = Ledger(
            snapshot.coming_scalars[rows], snapshot.coming_gpus[rows, :width], snapshot.coming_activity[rows, :width]
        )
        self.calm = bool((self.now.gpus == self.coming.gpus).all() and (self.now.scalars == self.coming.scalars).all())
        """Nothing is leaving and nothing is promised: one ledger does for now and coming."""
        if self.calm:
            self.coming = self.now
            self.starting = self.promising = self._room_of(self.now)
        else:
            self.starting = self.combined(self.now, self.coming)
            self.promising = self._room_of(self.coming)
        self.shadows: list[Shadow] = []
        self._beside: dict[tuple[int, ...], Room] = {}
        """Room for starts that must not touch some of the reservations, by their numbers."""
        self._empty: Room | None = None
        self.version = 0
        """Changes with the room and the reservations; equal numbers mean that nothing has happened in between."""

    def empty(self) -> Room:
        """The pool without any work of ours."""
        if self._empty is None:
            quiet = np.zeros_like(self.now.activity)
            self._empty = Room(self.view, self.view.capacity_scalars, self.view.capacity_gpus, quiet, self._score, None)
        return self._empty

    def clear_shadows(self) -> None:
        self.shadows.clear()
        self._beside.clear()
        self.version += 1

    def cast_shadow(self, shadow: Shadow) -> None:
        self.shadows.append(shadow)
        self._beside.clear()  # the new reservation may have changed the others' shadows
        self.version += 1

    def outlasted(self, end_ms: int) -> list[Shadow]:
        """Reservations whose time comes before work that starts now has ended."""
        return [shadow for shadow in self.shadows if shadow.at_ms < end_ms]

    def starting_beside(self, end_ms: int) -> Room:
        """Room for a start that ends at `end_ms` and must leave reservations alone."""
        numbers = tuple(i for i, shadow in enumerate(self.shadows) if shadow.at_ms < end_ms)
        if not numbers:
            return self.starting
        room = self._beside.get(numbers)
        if room is None:
            ledgers = [self.shadows[i].ledger for i in numbers]
            room = self._beside[numbers] = self.combined(self.now, self.coming, *ledgers)
        return room

    def beside_one(self, shadow: Shadow) -> Room:
        """Room for a start that must leave just this reservation alone."""
        return self.combined(self.now, self.coming, shadow.ledger)

    def room_to_promise(self, end_ms: int | None) -> Room:
        """A copy of the coming room to try victims in; beside the reservations that `end_ms` outlasts."""
        shadows = [] if end_ms is None else self.outlasted(end_ms)
        if shadows:
            return self.combined(self.coming, *(shadow.ledger for shadow in shadows)).copy()
        return self.promising.copy()

    def change(self, seating: Seating, sign: int, *, now: bool, shadows: list[Ledger]) -> None:
        """Take (+1) or give back (-1) seats: in the coming ledger, in the one of `now`, and in shadows."""
        ledgers = self._ledgers(now=now, coming=True, shadows=shadows)
        for seats in seating.seats:
            scalars = sign * seats.shape.scalars
            if len(seats.nodes) <= FEW:
                for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
                    for ledger in ledgers:
                        ledger.take(node, scalars, devices, sign * milli, sign * seats.shape.activity_milli)
                continue
            nodes = np.array(seats.nodes, dtype=np.int64)
            owners = np.repeat(nodes, seats.shape.gpu_count)
            devices_of_all = np.array(seats.devices, dtype=np.int64).ravel()
            milli_of_all = sign * np.repeat(np.array(seats.milli, dtype=np.int64), seats.shape.gpu_count)
            for ledger in ledgers:
                np.subtract.at(ledger.scalars, nodes, scalars)
                if seats.shape.gpu_count:
                    np.subtract.at(ledger.gpus, (owners, devices_of_all), milli_of_all)
                if seats.shape.activity_milli:
                    np.add.at(ledger.activity, (owners, devices_of_all), sign * seats.shape.activity_milli)
        self._settle(sorted(seating.nodes()))

    def change_slot(
        self,
        node: int,
        scalars: Ints,
        devices: tuple[int, ...],
        milli: int,
        activity_milli: int,
        *,
        now: bool,
        coming: bool,
        shadows: list[Ledger],
    ) -> None:
        """The same for one slot of the snapshot."""
        for ledger in self._ledgers(now=now, coming=coming, shadows=shadows):
            ledger.take(node, scalars, devices, milli, activity_milli)
        self._settle([node])

    def _ledgers(self, *, now: bool, coming: bool, shadows: list[Ledger]) -> list[Ledger]:
        if self.calm and now != coming:
            self._diverge()
        both = [self.now] if self.calm else [self.now] * now + [self.coming] * coming
        return both + shadows

    def _diverge(self) -> None:
        """Somebody leaves or is promised room: now and coming are different things from here on."""
        self.calm = False
        self.coming = self.now.copy()
        self.starting = self.combined(self.now, self.coming)
        self.promising = self._room_of(self.coming)
        self._beside.clear()

    def _settle(self, nodes: list[int]) -> None:
        """Bring the rooms in line with the ledgers at these nodes."""
        self.version += 1
        self.starting.touched(nodes)
        if self.calm and not self._beside:
            return
        at = np.array(nodes, dtype=np.int64)
        if not self.calm:
            _bring_in_line(self.starting, at, [self.now, self.coming])
            self.promising.touched(nodes)
        for numbers, room in self._beside.items():
            _bring_in_line(room, at, [self.now, self.coming, *(self.shadows[i].ledger for i in numbers)])
            room.touched(nodes)

    def _room_of(self, ledger: Ledger) -> Room:
        """A room that is the ledger itself."""
        return Room(self.view, ledger.scalars, ledger.gpus, ledger.activity, self._score, self._elsewhere)

    def combined(self, *ledgers: Ledger) -> Room:
        """Room that is free in all of these ledgers."""
        scalars = np.minimum.reduce([ledger.scalars for ledger in ledgers])
        gpus = np.minimum.reduce([ledger.gpus for ledger in ledgers])
        activity = np.maximum.reduce([ledger.activity for ledger in ledgers])
        return Room(self.view, scalars, gpus, activity, self._score, self._elsewhere)

    def _elsewhere(self) -> list[Room]:
        return [board.starting for board in self._boards]


def _bring_in_line(room: Room, at: Ints, ledgers: list[Ledger]) -> None:
    room.scalars[at] = np.minimum.reduce([ledger.scalars[at] for ledger in ledgers])
    room.gpus[at] = np.minimum.reduce([ledger.gpus[at] for ledger in ledgers])
    room.activity[at] = np.maximum.reduce([ledger.activity[at] for ledger in ledgers])
