"""Allocate: turn by turn, each waiting workload gets the best answer there is.

    1. idle room in a pool it lists             -> Start
    2. room taken back by right or by priority  -> victims leave, Hold
    3. room made by moving others               -> they move, Hold
    4. a time, if it is first in line           -> Reservation; later work may not push it back
    otherwise it waits, with a reason

What may not run (limit, guarantee, no such device) never blocks the next one. Workloads of the same signature and
queue share their refusal, if they may do no more than the one that was refused: fifty thousand equal pods are refused
once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.boards import Board
from optimus.decide.durations import end_ms, ends_ms, is_known, remaining_ms
from optimus.decide.entitlements import is_guaranteed
from optimus.decide.explaining import why_never, why_no_room
from optimus.decide.obeying import lawful_seats
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seating
from optimus.decide.quotas import over_guarantee, over_limit
from optimus.decide.reserving import Opening, Reserver, finish_ms, slowest_percent
from optimus.decide.shares import Shares, share_when_asking
from optimus.decide.taking import Taker
from optimus.decide.turns import Turns
from optimus.decide.world import World
from optimus.model.plans import Reservation
from optimus.model.reasons import Code, Reason, named, reason
from optimus.model.units import format_moment_ms
from optimus.state.arrays import Ints


@dataclass(slots=True)
class Waiting:
    """What is known about those that wait, at the end of a pass."""

    reasons: dict[int, Reason] = field(default_factory=dict)
    reservations: list[Reservation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a workload found no room, and what it was allowed to do. Who may do no more finds none either."""

    why: Reason
    moment: tuple[int, int]
    """How many had been told to leave, and how many had reserved: it holds as long as both stay as they are."""
    turns: int
    end_ms: int
    """It had to fit beside the reservations that come before this."""
    expected_ms: int | None
    """Where it made a difference."""


class Allocator:
    def __init__(self, world: World, shares: Shares, taker: Taker) -> None:
        self.world = world
        self.shares = shares
        self.taker = taker
        self.reserver = Reserver(world)
        self.waiting = Waiting()
        self._starts_left = world.budget.starts
        self._refused: dict[tuple[int, ...], Refusal] = {}
        self._kinds: dict[int, tuple[int, ...]] = {}
        """By workload: what it asks for, in which queue, with which rights."""
        self._ends: dict[int, int] | None = None
        self._dues: dict[tuple[int, int, int], Ints] = {}
        self._full: dict[tuple[int, int], int] = {}
        """By ask and room: the version of the board at which there were no seats for it."""
        self._why_full: dict[tuple[int, int], tuple[int, Reason]] = {}
        """By ask and pool, for a version of the board: what is said where no reservation is in the way."""
        self.is_served: Callable[[int], bool] = lambda _row: False
        """Whether room for a workload is made by sizing when everybody has had a turn."""

    def run(self, lines: dict[int, list[int]]) -> None:
        """One pass over all that wait, in turns."""
        world = self.world
        self.waiting = Waiting()
        self._refused.clear()
        in_line = [row for line in lines.values() for row in line]
        at = np.array(in_line, dtype=np.int64)
        columns = (world.columns.signature, world.columns.queue, world.columns.preemptible, world.columns.priority)
        self._kinds = dict(zip(in_line, zip(*(column[at].tolist() for column in columns), strict=True), strict=True))
        self._ends = None
        self._dues.clear()
        self.taker.new_pass()
        for board in world.boards:
            board.clear_shadows()
        turns = Turns(world, self.shares.lending, lines, self._need)
        while (row := turns.next()) is not None:
            before = world.script.departures
            why = self._try(row) if self._starts_left > 0 else reason(Code.NOT_REACHED)
            if self._starts_left <= 0:
                world.unreached.add("allocate")
            if why is not None:
                self.waiting.reasons[row] = why
                for other in turns.take_while(self._refused_like(row)):
                    self.waiting.reasons[other] = why
            self._starts_left -= why is None
            turns.done()
            if world.script.departures > before:  # others leave or move: their queues' turns have changed
                turns.rebuild()

    def _need(self, row: int) -> tuple[int, Ints]:
        ask = self.world.ask(row)
        pool = ask.home()
        pool = ask.pools[0] if pool is None else pool
        return pool, ask.least_amount(pool)

    def _try(self, row: int) -> Reason | None:
        """None when it starts or has its room promised, else why it waits."""
        world = self.world
        refused = self._refusal(row)
        if refused is not None:
            return refused.why
        ask = world.ask(row)
        pools = [pool for pool in ask.pools if ask.possible(pool)]
        if not pools:
            return self._refuse(row, why_never(world, ask, ask.pools[0]))
        refusals = {}
        open_pools = []
        last_resorts: list[int] = []
        for pool in chain(pools, last_resorts):
            refusal = self._guarantee_refusal(row, pool)
            if refusal is not None:
                refusals[pool] = refusal
                continue
            open_pools.append(pool)
            found = self._seats(row, ask, pool)
            if isinstance(found, Seating):
                if pool not in last_resorts and len(pools) > 1 and ask.is_last_resort(found):
                    last_resorts.append(pool)  # where it has failed, if no other pool has a place
                    continue
                later = self._ends_sooner(row, ask, refusals, slowest_percent(found))
                if later is not None:
                    names = {"slower": world.pool_name(pool), "pool": world.pool_name(later.pool)}
                    return reason(Code.FASTER_LATER, **names, **self._reserve(row, later))
                world.start(row, found)
                return None
            refusals[pool] = found
        if self.is_served(row):
            return refusals[pools[0]]
        hurried = [p for p in open_pools if self._ends_sooner(row, ask, refusals, ask.speed_percent(p)) is None]
        if any(self.taker.take_back(row, pool) for pool in hurried):
            return None
        if any(self.taker.consolidate(row, pool) for pool in hurried if _lacks_room(refusals[pool])):
            return None
        opening = self._first_opening(row, ask, refusals)
        if opening is not None:
            return reason(Code.RESERVED, why=refusals[opening.pool].text(), **self._reserve(row, opening))
        return self._refuse(row, refusals[pools[0]])

    def _ends_sooner(self, row: int, ask: Ask, refusals: dict[int, Reason], speed_percent: int) -> Opening | None:
        """With `any`: a time in a faster pool that is worth waiting for, because it ends sooner there than it would if
        it started now at this speed. Only known run times count: nobody leaves room alone for a guess."""
        world = self.world
        faster = {p: why for p, why in refusals.items() if ask.any_pool and ask.speed_percent(p) > speed_percent}
        if not faster or not is_known(world, row):
            return None
        opening, run_ms = self._first_opening(row, ask, faster), remaining_ms(world, row)
        if opening is None or opening.finish_ms(run_ms) >= finish_ms(world.now_ms, run_ms, speed_percent):
            return None
        return opening if self.reserver.is_sure(opening) else None

    def _first_opening(self, row: int, ask: Ask, refusals: dict[int, Reason]) -> Opening | None:
        """Of the pools that only lack room: where it can start first, or end first if the choice is ours; else the
        first listed."""
        lacking = [pool for pool, why in refusals.items() if _lacks_room(why)]
        openings = [opening for pool in lacking if (opening := self._opening(row, ask, pool)) is not None]
        if ask.any_pool:
            run_ms = remaining_ms(self.world, row)
            return min(openings, key=lambda o: (o.finish_ms(run_ms), o.at_ms), default=None)
        return min(openings, key=lambda o: o.at_ms, default=None)

    def _reserve(self, row: int, opening: Opening) -> dict[str, str]:
        """Reserve, and say when and behind whom."""
        behind = named(self.reserver.behind(opening))
        self.waiting.reservations.append(self.reserver.reserve(row, opening))
        return {"at": format_moment_ms(opening.at_ms, self.world.now_ms), "workloads": behind}

    def _refuse(self, row: int, why: Reason) -> Reason:
        turns = self.world.turns.get(row, 0)
        expected = int(self.world.columns.expected[row]) if self.taker.worth_mattered else None
        self._refused[self._kinds[row]] = Refusal(why, self._moment(), turns, self._end_ms(row), expected)
        return why

    def _refusal(self, row: int) -> Refusal | None:
        """That of an equal workload which was allowed as much or more."""
        found = self._refused.get(self._kinds[row])
        if found is None or found.moment != self._moment():
            return None
        return found if self._holds_for(row, found) else None

    def _holds_for(self, row: int, found: Refusal) -> bool:
        if self.world.turns.get(row, 0) > found.turns or not self._is_bound_as(row, found.end_ms):
            return False
        return not self.taker.worth_mattered or int(self.world.columns.expected[row]) == found.expected_ms

    def _refused_like(self, row: int) -> Callable[[int], bool]:
        """Whether another is refused as this one was: asked of thousands in line, while nothing is decided."""
        kinds, kind = self._kinds, self._kinds[row]
        found = self._refused.get(kind)
        if found is None or found.moment != self._moment():
            return lambda _other: False
        return lambda other: kinds[other] == kind and self._holds_for(other, found)

    def _moment(self) -> tuple[int, int]:
        return self.world.script.departures, len(self.waiting.reservations)

    def _is_bound_as(self, row: int, end_ms: int) -> bool:
        """Whether it would outlast every reservation that work ending then does."""
        end = self._end_ms(row)
        return end >= end_ms or not any(end <= s.at_ms < end_ms for board in self.world.boards for s in board.shadows)

    def _end_ms(self, row: int) -> int:
        if self._ends is None:
            ends = ends_ms(self.world, np.array(list(self._kinds), dtype=np.int64))
            self._ends = dict(zip(self._kinds, ends.tolist(), strict=True))
        return self._ends[row]

    def _guarantee_refusal(self, row: int, pool: int) -> Reason | None:
        if not self.world.is_fixed(row):
            return None
        queue = int(self.world.columns.queue[row])
        return over_guarantee(self.world, queue, pool, self.world.fixed_amount(row, pool))

    def _seats(self, row: int, ask: Ask, pool: int) -> Seating | Reason:
        """Idle room in this pool to start in, or why there is none."""
        world = self.world
        queue = int(world.columns.queue[row])
        amount = ask.least_amount(pool)
        refusal = over_limit(world, queue, pool, amount)
        if refusal is not None:
            return refusal
        board = world.boards[pool]
        room = self._room_for(row, board, queue, amount)
        key = (id(ask), id(room))
        for nodes in ask.evenly(pool) if self._full.get(key) != board.version else ():
            found = lawful_seats(world, row, room, ask.minimum, grows=False, within=nodes)
            if found is not None:
                return found
        self._full[key] = board.version
        why = self._why_full.get((id(ask), pool))
        if why is None or why[0] != board.version:
            beside = room is not board.starting and ask.seater(board.starting).seat(ask.minimum) is not None
            if beside:
                return self._why_beside(row, ask, board)
            why = self._why_full[id(ask), pool] = (board.version, why_no_room(world, ask, pool, board.starting))
        return why[1]

    def _why_beside(self, row: int, ask: Ask, board: Board) -> Reason:
        """Which reservation is in the way: the first that refuses it even alone."""
        outlasted = board.outlasted(end_ms(self.world, row))
        refusing = [s for s in outlasted if ask.seater(board.beside_one(s)).seat(ask.minimum) is None]
        first = refusing[0] if refusing else outlasted[-1]
        at = format_moment_ms(first.at_ms, self.world.now_ms)
        return reason(Code.RESERVED_FOR_OTHER, workload=self.world.spec(first.row).id, at=at)

    def _room_for(self, row: int, board: Board, queue: int, amount: Ints) -> Room:
        """A reservation binds work that would outlast it, unless that work is inside its guarantee."""
        if not board.shadows or is_guaranteed(self.world, queue, board.view.index, amount):
            return board.starting
        return board.starting_beside(end_ms(self.world, row))

    def _opening(self, row: int, ask: Ask, pool: int) -> Opening | None:
        """A time for it in this pool. Only work that lies inside its queue's share by itself gets one; `Reserver` looks
        at what runs beside it then."""
        world = self.world
        if len(world.boards[pool].shadows) >= world.budget.reservations_per_pool:
            return None
        queue = int(world.columns.queue[row])
        due = self.shares.share[queue, pool]
        if pool != ask.home():
            due = self._due_elsewhere(queue, ask, pool)
        amount = ask.least_amount(pool)
        if any(amount[c] > due[c] for c in world.measures(queue, pool, amount)):
            return None
        return self.reserver.find(row, ask, pool, due)

    def _due_elsewhere(self, queue: int, ask: Ask, pool: int) -> Ints:
        key = (queue, id(ask), pool)
        if key not in self._dues:
            amount = ask.most_amount(pool)
            self._dues[key] = share_when_asking(self.world, self.shares, queue, pool, amount)
        return self._dues[key]


def _lacks_room(refusal: Reason) -> bool:
    return refusal.code in (
        Code.NO_ROOM,
        Code.FRAGMENTED,
        Code.DOMAIN_TOO_FULL,
        Code.NO_ROOM_FOR_ALL,
        Code.RESERVED_FOR_OTHER,
    )
