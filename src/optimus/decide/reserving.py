"""Reserve and backfill: the first workload that waits for capacity gets a time, and later work may not push it back.

The earliest time is found by letting running work end as predicted (`durations`), in order, until the workload fits.
What is free at that time without its seats is the *shadow*; work that would still run then must fit into it too.
Only work inside its share reserves, and a reservation yields to work inside its guarantee. One reservation per pool is
the EASY rule; more (`Budget.reservations_per_pool`) is the conservative option.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.boards import Board, Ledger, Shadow
from optimus.decide.durations import end_ms, remaining_ms
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seating
from optimus.decide.world import World
from optimus.model.plans import Reservation
from optimus.model.slots import Phase
from optimus.state.arrays import Ints


class Releases:
    """Room that running work of one pool gives back, by the time it is expected to end."""

    def __init__(self, world: World, pool: int) -> None:
        self._world = world
        self.pool = pool
        slots = world.slots
        view = world.boards[pool].view
        phase = slots.view("phase")
        mine = np.flatnonzero(
            (phase >= Phase.HELD) & (phase < Phase.RELEASING) & (world.snapshot.node_pool[slots.view("node")] == pool)
        )
        ends: list[int] = []
        nodes: list[int] = []
        scalars: list[Ints] = []
        devices: list[tuple[int, ...]] = []
        milli: list[int] = []
        queues: list[int] = []
        end_of: dict[int, int] = {}
        for slot in mine:
            row = int(slots.workload[slot])
            draft = world.drafts.get(row)
            if draft is not None and int(slot) in draft.removed:
                continue
            if row not in end_of:
                end_of[row] = end_ms(world, row)
            ends.append(end_of[row])
            nodes.append(int(world.node_index[slots.node[slot]]))
            scalars.append(slots.amount[slot, 1:])
            devices.append(world.snapshot.slots.devices[slot])
            milli.append(int(slots.milli[slot]))
            queues.append(int(world.columns.queue[row]))
        for row, draft in world.drafts.items():
            for addition in draft.additions:
                if addition.seating.pool != pool:
                    continue
                for seats in addition.seating.seats:
                    ends.extend([end_ms(world, row)] * len(seats.nodes))
                    nodes.extend(seats.nodes)
                    scalars.extend([seats.shape.scalars] * len(seats.nodes))
                    devices.extend(seats.devices)
                    milli.extend(seats.milli)
                    queues.extend([int(world.columns.queue[row])] * len(seats.nodes))
        order = np.argsort(np.array(ends, dtype=np.int64), kind="stable")
        width = view.capacity_scalars.shape[1]
        self.ends = np.array(ends, dtype=np.int64)[order]
        self._nodes = np.array(nodes, dtype=np.int64)[order]
        self._scalars = np.array(scalars, dtype=np.int64).reshape(-1, width)[order]
        self._queues = np.array(queues, dtype=np.int64)[order]
        each = np.array(milli, dtype=np.int64)[order]
        sorted_devices = [devices[i] for i in order.tolist()]
        counts = np.array([len(chosen) for chosen in sorted_devices], dtype=np.int64)
        self._gpu_milli = each * counts
        self._device_counts = np.cumsum(counts)
        self._device_nodes = np.repeat(self._nodes, counts)
        self._devices = np.array([device for chosen in sorted_devices for device in chosen], dtype=np.int64)
        self._milli = np.repeat(each, counts)

    def given_back(self, queue: int, at_ms: int) -> Ints:
        """By resource: what work of the queue itself has given back by then."""
        mine = (self._queues == queue) & (self.ends <= at_ms)
        return np.concatenate([[self._gpu_milli[mine].sum()], self._scalars[mine].sum(axis=0)])

    def times(self) -> list[int]:
        return [int(t) for t in np.unique(self.ends)]

    def ledger_at(self, board: Board, at_ms: int) -> Ledger:
        """What is free at that time, if everything ends as predicted and nothing new starts."""
        ledger = board.coming.copy()
        count = int(np.searchsorted(self.ends, at_ms, side="right"))
        if count:
            np.add.at(ledger.scalars, self._nodes[:count], self._scalars[:count])
            entries = int(self._device_counts[count - 1])
            at = (self._device_nodes[:entries], self._devices[:entries])
            np.add.at(ledger.gpus, at, self._milli[:entries])
        return ledger


def reserve(world: World, row: int, ask: Ask, pool: int, due: Ints) -> Reservation | None:
    """Give the workload a time in this pool and cast its shadow: when it fits, and when its queue, with what still runs
    of it then, stays inside what it is due. None if there is no such time in sight."""
    board = world.boards[pool]
    releases = Releases(world, pool)
    reserved = [shadow.seating for shadow in board.shadows]
    times = releases.times()
    low, high = 0, len(times) - 1
    found: tuple[int, Seating, Ledger] | None = None
    while low <= high:
        middle = (low + high) // 2
        ledger = releases.ledger_at(board, times[middle])
        for earlier in reserved:
            _occupy(ledger, earlier)
        room = Room(board.view, ledger.scalars, ledger.gpus, board.activity, world.scorer.score)
        seating = ask.seater(room).seat(ask.minimum)
        if seating is not None and _inside(world, row, releases, times[middle], seating.amount(), due):
            found = (times[middle], seating, ledger)
            high = middle - 1
        else:
            low = middle + 1
    if found is None:
        return None
    at_ms, seating, ledger = found
    _occupy(ledger, seating)
    for shadow in board.outlasted(at_ms + remaining_ms(world, row)):
        if shadow.at_ms >= at_ms:  # an earlier time does not see this one: it has not begun then
            _occupy(shadow.ledger, seating)
    board.cast_shadow(Shadow(at_ms, ledger, world.spec(row).id, seating))
    names = tuple(sorted({board.view.nodes[node].name for node in seating.nodes()}))
    return Reservation(world.spec(row).id, board.view.pool.name, at_ms, names)


def _inside(world: World, row: int, releases: Releases, at_ms: int, amount: Ints, due: Ints) -> bool:
    queue = int(world.columns.queue[row])
    pool = releases.pool
    used = world.used_coming[queue, pool] - releases.given_back(queue, at_ms) + amount
    return all(used[c] <= due[c] for c in world.measures(queue, pool, amount))


def _occupy(ledger: Ledger, seating: Seating) -> None:
    for seats in seating.seats:
        for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
            ledger.scalars[node] -= seats.shape.scalars
            for device in devices:
                ledger.gpus[node, device] -= milli
