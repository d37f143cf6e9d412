"""The rooms of one pool while a plan is being made.

Two ledgers are copied from the snapshot, *now* and *coming*; a third, the *shadow*, appears when a workload has
reserved room at a later time: what is free at that time without touching the reservation. A placement must fit the
elementwise minimum of the ledgers that bind it, so "nobody slips into room kept for another" is arithmetic.

    starts now ............ min(now, coming)      and the shadow, if it would outlast the reservation
    is promised room ...... coming                and the shadow, likewise
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimus.decide.placement.rooms import Room, ScoreFunction
from optimus.decide.placement.seating import Seating
from optimus.state.arrays import Ints
from optimus.state.snapshot import PoolView, Snapshot


@dataclass(slots=True, eq=False)
class Ledger:
    scalars: Ints
    gpus: Ints

    def copy(self) -> Ledger:
        return Ledger(self.scalars.copy(), self.gpus.copy())


class Board:
    def __init__(self, snapshot: Snapshot, view: PoolView, score: ScoreFunction) -> None:
        self.view = view
        self._score = score
        width = view.capacity_gpus.shape[1]
        self.now = Ledger(snapshot.now_scalars[view.rows], snapshot.now_gpus[view.rows, :width])
        self.coming = Ledger(snapshot.coming_scalars[view.rows], snapshot.coming_gpus[view.rows, :width])
        self.activity: Ints = snapshot.activity[view.rows, :width]
        self.starting = self._combined(self.now, self.coming)
        self.promising = Room(view, self.coming.scalars, self.coming.gpus, self.activity, score)
        self.shadow: Ledger | None = None
        self.shadow_at_ms = 0
        self.starting_beside: Room | None = None
        """Room for a start that must not touch the reservation."""
        self._empty: Room | None = None

    def empty(self) -> Room:
        """The pool without any work of ours."""
        if self._empty is None:
            quiet = np.zeros_like(self.activity)
            self._empty = Room(self.view, self.view.capacity_scalars, self.view.capacity_gpus, quiet, self._score)
        return self._empty

    def cast_shadow(self, shadow: Ledger | None, at_ms: int = 0) -> None:
        """`at_ms`: the time of the reservation; work that ends before it is not bound by it."""
        self.shadow = shadow
        self.shadow_at_ms = at_ms
        self.starting_beside = None if shadow is None else self._combined(self.now, self.coming, shadow)

    def room_to_promise(self, beside_reservation: bool) -> Room:
        """A copy of the coming room to try victims in."""
        if beside_reservation and self.shadow is not None:
            return self._combined(self.coming, self.shadow)
        return self.promising.copy()

    def change(self, seating: Seating, sign: int, ledgers: list[Ledger]) -> None:
        """Take (+1) or give back (-1) seats in the given ledgers."""
        for seats in seating.seats:
            nodes = np.array(seats.nodes, dtype=np.int64)
            scalars = sign * seats.shape.scalars
            for ledger in ledgers:
                np.subtract.at(ledger.scalars, nodes, scalars)
            if seats.shape.gpu_count:
                devices = np.array(seats.devices, dtype=np.int64).ravel()
                owners = np.repeat(nodes, seats.shape.gpu_count)
                milli = sign * np.repeat(np.array(seats.milli, dtype=np.int64), seats.shape.gpu_count)
                for ledger in ledgers:
                    np.subtract.at(ledger.gpus, (owners, devices), milli)
        self.settle(sorted(seating.nodes()))

    def change_slot(self, node: int, scalars: Ints, devices: tuple[int, ...], milli: int, ledgers: list[Ledger]) -> None:
        """The same for one slot of the snapshot; the caller settles."""
        for ledger in ledgers:
            ledger.scalars[node] -= scalars
            for device in devices:
                ledger.gpus[node, device] -= milli

    def settle(self, nodes: list[int]) -> None:
        """Bring the rooms in line with the ledgers at these nodes."""
        at = np.array(nodes, dtype=np.int64)
        low = np.minimum(self.now.scalars[at], self.coming.scalars[at])
        low_gpus = np.minimum(self.now.gpus[at], self.coming.gpus[at])
        self.starting.scalars[at] = low
        self.starting.gpus[at] = low_gpus
        self.starting.touched(nodes)
        self.promising.touched(nodes)
        if self.shadow is not None and self.starting_beside is not None:
            self.starting_beside.scalars[at] = np.minimum(low, self.shadow.scalars[at])
            self.starting_beside.gpus[at] = np.minimum(low_gpus, self.shadow.gpus[at])
            self.starting_beside.touched(nodes)

    def _combined(self, *ledgers: Ledger) -> Room:
        scalars = np.minimum.reduce([ledger.scalars for ledger in ledgers])
        gpus = np.minimum.reduce([ledger.gpus for ledger in ledgers])
        return Room(self.view, scalars, gpus, self.activity, self._score)
