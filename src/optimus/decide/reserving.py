"""Reserve and backfill: the first workload that waits for capacity gets a time, and later work may not push it back.

The earliest time is found by letting running work end as predicted (`durations`), in order, until the workload fits.
What is free at that time without its seats is the *shadow*; work that would still run then must fit into it too.
Only work inside its share reserves, and a reservation yields to work inside its guarantee. One reservation per pool is
the EASY rule; more (`Budget.reservations_per_pool`) is the conservative option: a reservation has an expected end like
running work, and a time may lie behind it, or before it if the run is over by then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.boards import Board, Ledger, Shadow
from optimus.decide.durations import ends_ms, is_known, remaining_ms
from optimus.decide.placement.seating import Seating
from optimus.decide.placement.shapes import NO_SHARE
from optimus.decide.world import World
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.plans import Reservation
from optimus.model.slots import Phase
from optimus.state.arrays import Ints
from optimus.state.resources import GPU_COLUMN

NEVER_MS = 1 << 62


class Releases:
    """Room that running work of one pool gives back, by the time it is expected to end."""

    def __init__(self, world: World, pool: int) -> None:
        slots = world.slots
        phase = slots.view("phase")
        mine = np.flatnonzero(
            (phase >= Phase.HELD) & (phase < Phase.RELEASING) & (world.snapshot.node_pool[slots.view("node")] == pool)
        )
        removed = [slot for draft in world.drafts.values() for slot in draft.removed]
        if removed:
            mine = mine[~np.isin(mine, removed)]
        added = [
            (row, seats)
            for row, draft in world.drafts.items()
            for addition in draft.additions
            if addition.seating.pool == pool
            for seats in addition.seating.seats
        ]
        rows = np.concatenate([slots.workload[mine], *(np.full(len(s.nodes), row) for row, s in added)])
        nodes = np.concatenate([world.node_index[slots.node[mine]], *(s.nodes for _, s in added)]).astype(np.int64)
        scalars = np.concatenate(
            [slots.amount[mine, 1:], *(np.tile(s.shape.scalars, (len(s.nodes), 1)) for _, s in added)]
        )
        milli = np.concatenate([slots.milli[mine], *(s.milli for _, s in added)]).astype(np.int64)
        held = world.snapshot.slots.devices
        devices = [held[slot] for slot in mine.tolist()] + [chosen for _, s in added for chosen in s.devices]
        activity = world.activity_of(mine, [s for _, s in added])
        ends = ends_ms(world, rows)
        order = np.argsort(ends, kind="stable")
        self.ends = ends[order]
        self.rows = rows[order]
        self.nodes = nodes[order]
        self._queues = world.columns.queue[self.rows]
        self._scalars = scalars[order]
        each = milli[order]
        sorted_devices = [devices[i] for i in order.tolist()]
        counts = np.array([len(chosen) for chosen in sorted_devices], dtype=np.int64)
        self._gpu_milli = each * counts
        self._whole_at: Ints | None = None
        self._device_counts = np.cumsum(counts)
        self._device_nodes = np.repeat(self.nodes, counts)
        self._devices = np.array([device for chosen in sorted_devices for device in chosen], dtype=np.int64)
        self._milli = np.repeat(each, counts)
        self._activity = np.repeat(activity[order], counts)

    def given_back(self, queue: int, at_ms: int) -> Ints:
        """By resource: what work of the queue itself has given back by then."""
        mine = (self._queues == queue) & (self.ends <= at_ms)
        return np.concatenate([[self._gpu_milli[mine].sum()], self._scalars[mine].sum(axis=0)])

    def not_before_ms(self, board: Board, ask: Ask) -> int:
        """A time before which there are too few free devices for it, by their number alone; NEVER_MS if at no time."""
        pool = board.view.index
        shape = ask.plain_shape(pool)
        if shape is None or not shape.whole:
            lacking = int(ask.least_amount(pool)[GPU_COLUMN]) - int(np.maximum(board.coming.gpus, 0).sum())
            return self._first_ms(self.ends, self._gpu_milli, lacking)
        usable = shape.allowed[:, None] & (shape.share < NO_SHARE)
        free_at = np.sort(np.where(usable, self._devices_whole_at(board), NEVER_MS), axis=1)
        seats = free_at[:, shape.gpu_count - 1 :: shape.gpu_count].ravel()  # when each node has its 1st, 2nd … seat
        replicas = ask.minimum.replicas()
        return int(np.partition(seats, replicas - 1)[replicas - 1]) if replicas <= len(seats) else NEVER_MS

    def due_not_before_ms(self, queue: int, column: int, lacking: int) -> int:
        """When work of the queue itself has given back so much of a resource."""
        mine = self._queues == queue
        given = self._gpu_milli if column == GPU_COLUMN else self._scalars[:, column - 1]
        return self._first_ms(self.ends[mine], given[mine], lacking)

    def _first_ms(self, ends: Ints, given: Ints, lacking: int) -> int:
        if lacking <= 0:
            return 0
        first = int(np.searchsorted(np.cumsum(given), lacking))
        return int(ends[first]) if first < len(ends) else NEVER_MS

    def _devices_whole_at(self, board: Board) -> Ints:
        """[node, device] when the last of those that hold a part of it has ended."""
        if self._whole_at is None:
            last = np.full(board.coming.gpus.shape, -1, dtype=np.int64)
            counts = np.diff(self._device_counts, prepend=0)
            np.maximum.at(last, (self._device_nodes, self._devices), np.repeat(self.ends, counts))
            occupied = np.where(last >= 0, last, NEVER_MS)
            self._whole_at = np.where(board.coming.gpus >= WHOLE_DEVICE_MILLI, 0, occupied)
        return self._whole_at

    def ledger_at(self, board: Board, at_ms: int) -> Ledger:
        """What is free at that time, if everything ends as predicted and nothing starts but what is reserved."""
        ledger = board.coming.copy()
        count = int(np.searchsorted(self.ends, at_ms, side="right"))
        if count:
            np.add.at(ledger.scalars, self.nodes[:count], self._scalars[:count])
            entries = int(self._device_counts[count - 1])
            at = (self._device_nodes[:entries], self._devices[:entries])
            np.add.at(ledger.gpus, at, self._milli[:entries])
            if self._activity.any():
                np.subtract.at(ledger.activity, at, self._activity[:entries])
        for shadow in board.shadows:
            if shadow.runs_at(at_ms):
                _occupy(ledger, shadow.seating)
        return ledger


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """The earliest time at which a waiting workload fits into a pool, and its seats there."""

    at_ms: int
    seating: Seating

    @property
    def pool(self) -> int:
        return self.seating.pool

    def finish_ms(self, run_ms: int) -> int:
        return finish_ms(self.at_ms, run_ms, slowest_percent(self.seating))


class Reserver:
    """Finds openings and reserves them. What was found holds as long as the pool does not change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._releases: dict[int, tuple[int, Releases]] = {}
        self._openings: dict[tuple[int, ...], tuple[int, Opening | None]] = {}

    def find(self, row: int, ask: Ask, pool: int, due: Ints) -> Opening | None:
        """When it fits in this pool, and when its queue, with what still runs of it then, stays inside what it is due.
        None if there is no such time in sight."""
        world, board = self._world, self._world.boards[pool]
        run_ms = remaining_ms(world, row)
        signature, queue = int(world.columns.signature[row]), int(world.columns.queue[row])
        key = (signature, queue, pool, run_ms if board.shadows else 0)
        kept = self._openings.get(key)
        if kept is None or kept[0] != board.version:
            kept = self._openings[key] = (board.version, self._earliest(queue, ask, board, due, run_ms))
        return kept[1]

    def reserve(self, row: int, opening: Opening) -> Reservation:
        """Cast the shadow."""
        world, board = self._world, self._world.boards[opening.pool]
        at_ms, seating = opening.at_ms, opening.seating
        shadow = Shadow(at_ms, at_ms + remaining_ms(world, row), row, seating, self._at(board, at_ms))
        _occupy(shadow.ledger, seating)
        for other in board.shadows:
            if shadow.runs_at(other.at_ms):
                _occupy(other.ledger, seating)
        board.cast_shadow(shadow)
        names = tuple(sorted({board.view.nodes[node].name for node in seating.nodes()}))
        return Reservation(world.spec(row).id, board.view.pool.name, at_ms, names)

    def behind(self, opening: Opening) -> list[str]:
        """Whose expected end makes the time: those on its nodes or, if room was not what it lacked, all of them."""
        board = self._world.boards[opening.pool]
        releases, nodes = self._of(board), opening.seating.nodes()
        last = releases.ends == opening.at_ms
        ended = [shadow for shadow in board.shadows if shadow.end_ms == opening.at_ms]
        near = set(releases.rows[last & np.isin(releases.nodes, sorted(nodes))].tolist())
        near |= {shadow.row for shadow in ended if shadow.seating.nodes() & nodes}
        rows = near or {*releases.rows[last].tolist(), *(shadow.row for shadow in ended)}
        return sorted(self._world.spec(row).id for row in rows)

    def is_sure(self, opening: Opening) -> bool:
        """Whether everything that has to end on its nodes by then has a known run time."""
        board = self._world.boards[opening.pool]
        releases, nodes = self._of(board), opening.seating.nodes()
        gone = (releases.ends <= opening.at_ms) & np.isin(releases.nodes, sorted(nodes))
        rows = set(releases.rows[gone].tolist())
        rows |= {s.row for s in board.shadows if s.end_ms <= opening.at_ms and s.seating.nodes() & nodes}
        return all(is_known(self._world, row) for row in rows)

    def _of(self, board: Board) -> Releases:
        pool = board.view.index
        kept = self._releases.get(pool)
        if kept is None or kept[0] != board.version:
            kept = self._releases[pool] = (board.version, Releases(self._world, pool))
        return kept[1]

    def _at(self, board: Board, at_ms: int) -> Ledger:
        return self._of(board).ledger_at(board, at_ms)

    def _earliest(self, queue: int, ask: Ask, board: Board, due: Ints, run_ms: int) -> Opening | None:
        """Room only grows with time, except where a run begun then would reach one more reservation: between such
        times the first that fits is found by halving, from the first that is possible by count: mostly it is that."""
        times: list[int] = np.unique(self._of(board).ends).tolist()
        if board.shadows:
            times = sorted({*times, *(shadow.end_ms for shadow in board.shadows)})
        first = bisect_left(times, self._not_before_ms(queue, ask, board, due))
        cuts = sorted(bisect_right(times, shadow.at_ms - run_ms) for shadow in board.shadows)
        for part in pairwise([0, *cuts, len(times)]):
            found = None
            low, high = max(part[0], first), part[1]
            middle = low
            while low < high:
                opening = self._opening(queue, ask, board, due, times[middle], run_ms)
                if opening is None:
                    low = middle + 1
                else:
                    found, high = opening, middle
                middle = (low + high) // 2
            if found is not None:
                return found
        return None

    def _not_before_ms(self, queue: int, ask: Ask, board: Board, due: Ints) -> int:
        """Neither devices nor what the queue is due allow it before."""
        releases, pool = self._of(board), board.view.index
        lacking = self._world.used_coming[queue, pool] + ask.least_amount(pool) - due
        columns = self._world.measures(queue, pool, ask.least_amount(pool))
        times = [releases.due_not_before_ms(queue, c, int(lacking[c])) for c in columns]
        return max(releases.not_before_ms(board, ask), *times)

    def _opening(self, queue: int, ask: Ask, board: Board, due: Ints, at_ms: int, run_ms: int) -> Opening | None:
        """Seats for a run from that time on, beside the reservations that run then or begin while it runs."""
        later = [shadow for shadow in board.shadows if at_ms < shadow.at_ms < at_ms + run_ms]
        room = board.combined(self._at(board, at_ms), *(shadow.ledger for shadow in later))
        seating = ask.seater(room).seat(ask.minimum)
        if seating is None:
            return None
        times = [at_ms, *(shadow.at_ms for shadow in later)]
        amount = seating.amount()
        columns = self._world.measures(queue, board.view.index, amount)
        inside = all(self._used(queue, board, t)[c] + amount[c] <= due[c] for t in times for c in columns)
        return Opening(at_ms, seating) if inside else None

    def _used(self, queue: int, board: Board, at_ms: int) -> Ints:
        """By resource: what the queue uses at that time, its other reservations included."""
        used: Ints = self._world.used_coming[queue, board.view.index] - self._of(board).given_back(queue, at_ms)
        for shadow in board.shadows:
            if shadow.runs_at(at_ms) and self._world.columns.queue[shadow.row] == queue:
                used = used + shadow.seating.amount()
        return used


def finish_ms(start_ms: int, run_ms: int, speed_percent: int) -> int:
    """When a run that takes so long at speed 100 % ends at this speed."""
    return start_ms - (-run_ms * 100 // max(speed_percent, 1))


def slowest_percent(seating: Seating) -> int:
    """The speed of a gang: that of its slowest seat."""
    return min(int(seats.shape.speed_percent[node]) for seats in seating.seats for node in seats.nodes)


def _occupy(ledger: Ledger, seating: Seating) -> None:
    for seats in seating.seats:
        for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
            ledger.take(node, seats.shape.scalars, devices, milli, seats.shape.activity_milli)
