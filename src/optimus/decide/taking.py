"""Taking room: reclaim for queues inside their share, preempt by priority or take turns inside a queue, consolidate by
moving.

All end the same way: a statement is turned into actions. Victims are evicted, shrunk or moved, and the room is
promised to the asker until it can start; nobody slips in between.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import structs

from optimus.decide import still_there
from optimus.decide.asks import Ask
from optimus.decide.boards import Board
from optimus.decide.clearing import movers_by_node, to_move, whole_free
from optimus.decide.durations import end_ms
from optimus.decide.entitlements import Entitlement, entitlement, is_guaranteed
from optimus.decide.holdings import amount_here, places_of
from optimus.decide.loans import Lenders
from optimus.decide.making_room import RoomSearch
from optimus.decide.placement.seating import Seating
from optimus.decide.quotas import breaks_rules, limits_allow_now, over_guarantee, over_limit, seats_over_guarantee
from optimus.decide.shares import Shares
from optimus.decide.victims import OWN_QUEUE, HoldingsCache, Unit, anybody_gives, candidates, with_steps_before
from optimus.decide.world import MINIMUM_KEPT, NEVER_TAKEN, World
from optimus.model.gangs import Part
from optimus.model.plans import Evict, Shrink
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import size_milli

DEFAULT_HORIZON_MS = 3_600_000
NEVER_MS = 1 << 62


class Taker:
    """Makes room for workloads that found none."""

    def __init__(self, world: World, shares: Shares, hopefuls: Sequence[int]) -> None:
        self.world = world
        self.shares = shares
        self.lenders = Lenders(world, hopefuls)
        self.searches = world.budget.victim_searches
        self.cache = HoldingsCache(world)
        self.worth_mattered = False
        """Moves were possible for somebody but not worth it: the run time makes a difference."""
        self._movable_units: dict[int, tuple[int, list[Unit]]] = {}
        """By pool, for one version of the plan."""
        self._not_coming: dict[tuple[int, int], int] = {}
        """By ask and pool: the version of the board at which what is coming was not enough for its minimum."""
        self._hopeless: dict[tuple[object, ...], int] = {}
        """Questions answered with no in this pass, and how many had been told to leave by then."""

    def new_pass(self) -> None:
        """Everything may be asked again."""
        self._hopeless.clear()
        self.worth_mattered = False

    def depends_on_run_time(self, row: int, ask: Ask) -> tuple[object, ...]:
        """What else tells equal workloads apart: whose turns they may take, the reservations they would outlast, and if
        moves are worth it."""
        world = self.world
        told: list[object] = [world.turns.get(row, 0)]
        if self.worth_mattered:
            told.append(int(world.columns.expected[row]))
        for pool in ask.pools:
            shadows = world.boards[pool].shadows
            if shadows:
                end = end_ms(world, row)
                told.extend(shadow.at_ms < end for shadow in shadows)
        return tuple(told)

    def take_back(self, row: int, pool: int) -> bool:
        """Reclaim and preempt for a workload that waits. True if its room is promised (or it started)."""
        ask = self.world.ask(row)
        amount = ask.least_amount(pool)
        queue, priority = int(self.world.columns.queue[row]), int(self.world.columns.priority[row])
        key = ("take", queue, priority, id(ask), pool, *self.depends_on_run_time(row, ask))
        if self._is_hopeless(key) or not self._may_search():
            return False
        for nodes in ask.evenly(pool):
            if self._search(row, pool, ask, ask.minimum, amount, whole=True, grows=False, within=nodes):
                return True
        self._hopeless[key] = self.world.script.departures
        return False

    def take_surplus(self, row: int, pool: int, step: Part, amount: Ints, within: Bools | None) -> bool:
        """Let an elastic workload grow inside its share at the cost of others' surplus above theirs."""
        if not self._may_search():
            return False
        ask = self.world.ask(row)
        return self._search(row, pool, ask, step, amount, whole=False, grows=True, within=within)

    def consolidate(self, row: int, pool: int) -> bool:
        """Move checkpointable work so that scattered room becomes room for this workload; nobody is lost."""
        world, ask = self.world, self.world.ask(row)
        key = ("move", id(ask), pool)
        queue = int(world.columns.queue[row])
        amount = ask.least_amount(pool)
        if not world.settings.consolidation or self._is_hopeless(key) or not self._may_search():
            return False
        board = world.boards[pool]
        if over_limit(world, queue, pool, amount) is not None:
            return False
        free = np.maximum(board.promising.gpus, 0).sum(), np.maximum(board.promising.scalars, 0).sum(axis=0)
        if amount[GPU_COLUMN] > free[0] or (amount[1:] > free[1]).any():
            return False
        guaranteed = is_guaranteed(world, queue, pool, amount)
        if ask.evenly(pool)[0] is not None:
            return False  # room is gathered on equally fast devices only, which matching sees to
        movable = self._worth_moving(ask, pool)
        for memory_mib in ask.memory_steps(pool):  # where a share is too much, smaller ones on larger devices
            room = board.room_to_promise(None if guaranteed else end_ms(world, row))
            search = RoomSearch(world, row, ask, ask.minimum, amount, room, (), memory_mib=memory_mib)
            found = search.find(movable)
            if found is None:
                break
            victims, seating = found
            if not self._is_lawful(row, search, victims, seating, grows=False):
                continue
            moves = search.replace_victims(victims, seating)
            if len(moves) != len(victims):
                break
            if not self._worth_it(row, amount, victims):
                self.worth_mattered = True
                return False
            if victims:
                self._state(row, victims, seating, moves, grows=False)
            else:
                self._promise(row, seating, [], grows=False)
            return True
        self._hopeless[key] = world.script.departures
        return False

    def fulfil_promises(self) -> None:
        """What this plan promised may have come free in it, where those in the way only held their room."""
        world = self.world
        for row, draft in world.drafts.items():
            promised = [a.seating for a in draft.additions if a.promised]
            if not promised or draft.evicted or world.table.leaving[row]:
                continue
            board, queue = world.boards[promised[0].pool], int(world.columns.queue[row])
            amount = sum((seating.amount() for seating in promised), np.zeros_like(draft.change))
            whole = Seating(promised[0].pool, [seats for seating in promised for seats in seating.seats])
            free = _is_free_now(whole, board.now.scalars, board.now.gpus) and not still_there.blocks(world, whole)
            if free and limits_allow_now(world, queue, whole.pool, amount):
                world.fulfil(row)

    def is_free_now(self, row: int, seating: Seating) -> bool:
        """Whether the workload could have these seats at once."""
        world = self.world
        board, queue = world.boards[seating.pool], int(world.columns.queue[row])
        free = _is_free_now(seating, board.now.scalars, board.now.gpus) and not still_there.blocks(world, seating)
        return free and over_limit(world, queue, seating.pool, seating.amount()) is None

    def give(self, row: int, seating: Seating, *, grows: bool) -> None:
        """Seats that were found for a workload: it has them at once, or when those that leave have left."""
        self._promise(row, seating, [], grows=grows)

    # -- searching --------------------------------------------------------------------------------------------

    def _search(
        self, row: int, pool: int, ask: Ask, part: Part, amount: Ints, *, whole: bool, grows: bool, within: Bools | None
    ) -> bool:
        world = self.world
        queue = int(world.columns.queue[row])
        fixed = world.fixed_amount(row, pool) if not grows else amount * (world.columns.preemptible[row] == NEVER_TAKEN)
        if over_guarantee(world, queue, pool, fixed) is not None:
            return False
        entitled = entitlement(world, self.shares, queue, pool, amount)
        units: list[Unit] = []
        if anybody_gives(world, self.cache, row, pool, entitled):
            useful = np.logical_or.reduce([ask.shape(pool, cell.role_index).allowed for cell in part.all_cells()])
            lacking = int(amount[GPU_COLUMN] - np.maximum(world.boards[pool].promising.gpus, 0).sum())
            units = candidates(
                world, self.shares, self.cache, row, pool, entitled, whole=whole, useful=useful, lacking_milli=lacking
            )
        if grows:
            units = [unit for unit in units if unit.side >= 0 and self._stays_above(unit, entitled, pool)]
        board = world.boards[pool]
        if not units and not self._is_coming(ask, board, part, within):
            return False  # nobody can give, and what is coming is not enough: the common case, and a cheap one
        guaranteed = is_guaranteed(world, queue, pool, amount)
        # who has others stopped to go above its share does not backfill, however short it is: the reservation waits for
        # those others, and would take their room at once
        end = end_ms(world, row) if entitled.orphans or not units else NEVER_MS
        for memory_mib in ask.memory_steps(pool):  # where a share is too much, smaller ones on larger devices
            room = board.room_to_promise(None if guaranteed else end)
            search = RoomSearch(
                world, row, ask, part, amount, room, entitled.sides, within=within, memory_mib=memory_mib
            )
            found = search.find(units)
            if found is None:
                return False
            victims, seating = found
            if self._is_lawful(row, search, victims, seating, grows=grows) and self._still_entitled(
                row, entitled, victims, amount, seating
            ):
                break
        else:
            return False
        if not victims:
            if grows:
                return False  # growth waits for room that is coming, it does not hold it
            self._promise(row, seating, [], grows=False)
            return True
        if self._is_lent(row, victims, seating):
            return False
        if board.shadows and not guaranteed and self._undo_growth(victims):
            # without it the asker may be inside its guarantee, and no reservation binds it: fewer have to go
            return self._search(row, pool, ask, part, amount, whole=whole, grows=grows, within=within)
        moves = search.replace_victims(victims, seating)
        self._state(row, victims, seating, moves, grows=grows, entitled=entitled)
        return True

    def _is_coming(self, ask: Ask, board: Board, part: Part, within: Bools | None) -> bool:
        """Whether what is free once everybody has left is enough, if that is more than what is free now."""
        if board.calm:
            return False
        key = (id(ask), board.view.index)
        known = part is ask.minimum and within is None
        if known and self._not_coming.get(key) == board.version:
            return False
        coming = ask.seater(board.promising).seat(part, within=within) is not None
        if known and not coming:
            self._not_coming[key] = board.version
        return coming

    def _still_entitled(
        self, row: int, entitled: Entitlement, victims: list[Unit], asked: Ints, seating: Seating
    ) -> bool:
        """Whether the victims were the asker's to take for the very seats that were found: a share that follows from
        the memory of a device can be larger than the least that was asked about."""
        amount, columns = seating.amount(), self.world.columns
        taken = [unit for unit in victims if unit.side >= 0]
        if not taken or (amount <= asked).all():
            return True
        really = entitlement(self.world, self.shares, int(columns.queue[row]), seating.pool, amount)
        for unit in taken:
            side = int(really.side_of[columns.queue[unit.row]])
            if side < 0 or (really.sides[side].bound > entitled.sides[unit.side].bound).any():
                return False
        return True

    def _is_lent(self, row: int, victims: list[Unit], seating: Seating) -> bool:
        """Whether others of its own queue would be stopped for room that is called back at once."""
        own = [unit.amount for unit in victims if unit.side == OWN_QUEUE]
        if not own or self.world.is_fixed(row):
            return False
        amount, queue = seating.amount(), int(self.world.columns.queue[row])
        return self.lenders.call_back(self.shares, queue, seating.pool, amount, amount - sum(own))

    def _undo_growth(self, victims: list[Unit]) -> bool:
        """Take back growth of this very plan that is in the way of the asker, where others would have to go as well."""
        whole = {unit.row for unit in victims if unit.whole}
        growth = [unit for unit in victims if unit.fresh is not None and unit.row not in whole]
        if len(growth) == len(victims):
            return False
        for unit in growth:
            if unit.fresh is not None:
                self.world.take_back_growth(unit.row, unit.fresh)
        return bool(growth)

    def _is_lawful(self, row: int, search: RoomSearch, victims: list[Unit], seating: Seating, *, grows: bool) -> bool:
        """Limits and guarantee for the very seats that were found, once the victims have left."""
        world = self.world
        if not search.limits_hold(victims, seating.amount()):
            return False
        if seats_over_guarantee(world, row, seating, grows=grows) is not None:
            return False
        return bool(victims) or breaks_rules(world, row, seating, grows=grows) is None

    def _stays_above(self, unit: Unit, entitled: Entitlement, pool: int) -> bool:
        """Growth takes only what leaves the other side at its share or above: else the two would swap for ever."""
        side = entitled.sides[unit.side]
        given = sum((each.amount for each in with_steps_before([unit])), np.zeros_like(unit.amount))
        after = self.world.used_coming[side.queue, pool] - given
        return all(after[c] >= self.shares.share[side.queue, pool, c] for c in self.world.ordering_columns(unit.amount))

    def _worth_moving(self, ask: Ask, pool: int) -> list[Unit]:
        """Work that could be moved to gather room for the asker; the few units that do it, where counting tells."""
        units = self.movable(pool)
        shape = ask.plain_shape(pool)
        if shape is None or not shape.whole:
            return units
        board, replicas = self.world.boards[pool], ask.minimum.replicas()
        return to_move(
            whole_free(board.promising.gpus), movers_by_node(units), shape.allowed, shape.gpu_count, replicas
        )

    def movable(self, pool: int) -> list[Unit]:
        version = self.world.script.version
        kept = self._movable_units.get(pool)
        if kept is None or kept[0] != version:
            kept = self._movable_units[pool] = (version, self._find_movable(pool))
        return kept[1]

    def _find_movable(self, pool: int) -> list[Unit]:
        world = self.world
        holdings = self.cache.holdings(pool)
        units = []
        for i, row in enumerate(holdings.rows):
            started = int(holdings.started[i])
            fixed = holdings.kind[i] in (NEVER_TAKEN, MINIMUM_KEPT)
            if started < 0 or fixed or int(row) in world.drafts or holdings.queue[i] < 0:
                continue
            if world.table.leaving[int(row)]:
                continue  # in the middle of a change of its size
            spec = world.spec(int(row))
            if spec.checkpoint is None or (holdings.amount[i] != holdings.least[i]).any():
                continue
            if world.now_ms - started < self.cache.before_preempt[holdings.queue[i]]:
                continue
            cost, amount = int(holdings.cost[i]), amount_here(world, int(row), holdings.amount[i])
            places = places_of(world, int(row))
            units.append(Unit(int(row), None, OWN_QUEUE, amount, 0, 0, cost, places))
        units.sort(key=lambda unit: (unit.cost, int(unit.amount[GPU_COLUMN]), world.spec(unit.row).id))
        return units

    def _worth_it(self, row: int, amount: Ints, victims: list[Unit]) -> bool:
        expected = int(self.world.columns.expected[row])
        horizon = expected if expected > 0 else DEFAULT_HORIZON_MS
        gain = size_milli(int(amount[GPU_COLUMN]), int(amount[CPU_COLUMN])) * horizon
        return gain >= self.world.settings.consolidation_payback * sum(unit.cost for unit in victims)

    def _may_search(self) -> bool:
        if self.searches <= 0:
            self.world.unreached.add("victims")
            return False
        self.searches -= 1
        return True

    def _is_hopeless(self, key: tuple[object, ...]) -> bool:
        """The same question was answered with no in this pass, and nobody has been told to leave since: starts in
        between leave less room, not more."""
        return self._hopeless.get(key) == self.world.script.departures

    # -- acting -----------------------------------------------------------------------------------------------

    def _state(
        self,
        row: int,
        victims: list[Unit],
        seating: Seating,
        moves: dict[int, Seating],
        *,
        grows: bool,
        entitled: Entitlement | None = None,
    ) -> None:
        """Turn a statement into actions: who leaves, who moves, and for whom."""
        world = self.world
        asker = world.spec(row)
        whole = {unit.row: unit for unit in victims if unit.whole}
        shrunk: dict[int, list[int]] = {}
        for unit in victims:
            if unit.row in whole:
                continue
            if unit.fresh is not None:
                world.take_back_growth(unit.row, unit.fresh)
            elif unit.slots:
                shrunk.setdefault(unit.row, []).extend(unit.slots)
        leaving = []
        grace = 0
        for victim, slots in shrunk.items():
            cause = reason(Code.SHRUNK, replicas=counted(len(slots), "replica"), beneficiary=asker.id)
            world.shrink(victim, slots, cause, asker.id)
            leaving.append(victim)
        for victim in whole:
            cause = self._cause(row, victim, entitled)
            if world.is_new(victim):  # what was freed for it is freed for the asker now
                self._hand_over(victim, row, entitled)
            if victim in moves:
                moved = reason(Code.MOVED, beneficiary=asker.id)
                world.evict(victim, moved, beneficiary=asker.id, if_not_moved=cause)
            else:
                world.evict(victim, cause, beneficiary=asker.id)
            leaving.append(victim)
        names = []
        for victim in leaving:
            spec = world.spec(victim)
            if world.columns.started[victim] >= 0:
                names.append(spec.id)
                grace = max(grace, spec.grace_ms)
        self._promise(row, seating, names, grows=grows, grace_ms=grace)
        for victim, place in moves.items():
            until = world.now_ms + grace + world.settings.hold_ms
            world.promise(victim, place, until, [world.spec(victim).id])

    def _promise(self, row: int, seating: Seating, names: list[str], *, grows: bool, grace_ms: int = 0) -> None:
        """Hold the room, or start at once where everything that was in the way only held it."""
        world = self.world
        if self.is_free_now(row, seating):
            (world.grow if grows else world.start)(row, seating)
            return
        if not names:
            names = list(world.leaving_from(seating.pool, seating.nodes()))
        world.promise(row, seating, world.now_ms + grace_ms + world.settings.hold_ms, names)

    def _hand_over(self, victim: int, row: int, entitled: Entitlement | None) -> None:
        """Whoever left in this plan for a workload that now gives way itself, left for the new asker. The cause stays
        as it was where the new asker could not have asked."""
        script, old, new = self.world.script, self.world.spec(victim).id, self.world.spec(row).id
        for number, action in script.numbered():
            if isinstance(action, Evict) and action.beneficiary == old:
                lost = self.world.table.row_of[action.workload]
                moved = reason(Code.MOVED, beneficiary=new)
                own = self._cause(row, lost, entitled) if self._could_ask(row, lost, entitled) else action.cause
                cause = moved if action.moved else own
                script.replace(number, structs.replace(action, beneficiary=new, cause=cause))
            elif isinstance(action, Shrink) and action.beneficiary == old:
                cause = reason(Code.SHRUNK, replicas=counted(len(action.slots), "replica"), beneficiary=new)
                script.replace(number, structs.replace(action, beneficiary=new, cause=cause))

    def _could_ask(self, row: int, lost: int, entitled: Entitlement | None) -> bool:
        columns = self.world.columns
        if columns.queue[lost] == columns.queue[row]:
            return bool(columns.priority[lost] < columns.priority[row]) or self._stands_later(row, lost)
        return columns.queue[lost] < 0 or (entitled is not None and entitled.side_of[columns.queue[lost]] >= 0)

    def _is_equal(self, row: int, other: int) -> bool:
        return bool(self.world.columns.priority[row] == self.world.columns.priority[other])

    def _stands_later(self, row: int, other: int) -> bool:
        standing = self.world.standing
        return self._is_equal(row, other) and standing.get(other, -1) > standing.get(row, 1 << 62)

    def _cause(self, row: int, victim: int, entitled: Entitlement | None) -> Reason:
        asker = self.world.spec(row)
        queue = int(self.world.columns.queue[victim])
        side = int(entitled.side_of[queue]) if entitled is not None and queue >= 0 else -1
        if queue == self.world.columns.queue[row] and self._is_equal(row, victim):
            return reason(Code.TURN_OVER, beneficiary=asker.id, queue=asker.queue)
        if entitled is None or (side < 0 and queue >= 0):
            return reason(Code.PREEMPTED, beneficiary=asker.id, priority=int(self.world.columns.priority[row]))
        by = entitled.sides[side].by if queue >= 0 else entitled.orphans
        return reason(Code.RECLAIMED, beneficiary=asker.id, queue=asker.queue, entitlement=by)


def _is_free_now(seating: Seating, scalars: Ints, gpus: Ints) -> bool:
    need_scalars: dict[int, Ints] = {}
    need_gpus: dict[tuple[int, int], int] = {}
    for seats in seating.seats:
        for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
            need_scalars[node] = need_scalars.get(node, 0) + seats.shape.scalars
            for device in devices:
                need_gpus[(node, device)] = need_gpus.get((node, device), 0) + milli
    return all((need == 0).all() or (scalars[n] >= need)[need > 0].all() for n, need in need_scalars.items()) and all(
        gpus[at] >= milli for at, milli in need_gpus.items()
    )
