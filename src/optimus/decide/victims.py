"""Whom to ask: running work that may be taken out or made smaller for an asker, in the order in which to ask.

    the queue furthest above its share  ->  lowest priority  ->  surplus before whole workloads  ->  last in line
    ->  least cost  ->  newer  ->  smaller  ->  name

Places in line count among equals of the asker's own queue, where its policy lets work take turns.

Protected: work that may never be preempted, minimums that are kept, work inside a guarantee (from other queues),
work that has not run for its queue's minimum time yet, and work whose promised room is not free yet: others left for
it, and nobody slips in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimus.decide.drafts import Addition
from optimus.decide.entitlements import Entitlement, Side, attribute
from optimus.decide.holdings import (
    Holdings,
    Ledgerbook,
    Place,
    amount_here,
    places_of,
    places_of_each,
    seating_places,
)
from optimus.decide.quotas import waited_too_long
from optimus.decide.shares import Shares
from optimus.decide.turns import RATIO
from optimus.decide.world import MINIMUM_KEPT, NEVER_TAKEN, World
from optimus.model import gangs
from optimus.model.queues import WaitAction
from optimus.model.workloads import Preemptible, is_kept_inside
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import CPU_MILLI_PER_GPU, PREEMPTIBLE_CODE

MAYBE_KEPT = (PREEMPTIBLE_CODE[Preemptible.DEFAULT], PREEMPTIBLE_CODE[Preemptible.LENT])
OWN_QUEUE = -2
"""The side of a victim in the asker's own queue: no share is asked about."""
TURN_RESTARTS = 2
"""A turn lasts at least this many times the restart it costs."""
ORPHAN = -3
"""The side of work whose queue is gone."""
NOBODY = 1 << 62
"""Above every priority."""


@dataclass(slots=True, eq=False)
class Unit:
    """The smallest thing that can be asked for: a whole workload, or one step of its surplus."""

    row: int
    slots: list[int] | None
    """None: the whole workload, or what its surplus steps leave of it."""
    side: int
    """Number of the entitlement's side, or OWN_QUEUE."""
    amount: Ints
    priority: int
    tier: int
    cost: int
    places: list[Place]
    after: tuple[Unit, ...] = ()
    """Surplus steps that must go first."""
    fresh: Addition | None = None
    """A step of growth of this very plan: asking for it means not doing it."""
    standing: int = -1
    """Its place in line, where it gives its turn; -1 otherwise."""

    @property
    def whole(self) -> bool:
        return self.slots is None


class HoldingsCache:
    """Holdings and attribution per pool, kept while the plan does not change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._books: dict[int, Ledgerbook] = {}
        self._holdings: dict[int, tuple[int, Holdings]] = {}
        self._inside: dict[int, tuple[int, Ints, Ints]] = {}
        queues = world.tree.queues
        self.before_preempt: Ints = np.zeros(len(queues) + 1, dtype=np.int64)
        """By queue: how long work must have run; the nearest queue that says something counts."""
        self.before_reclaim: Ints = np.zeros(len(queues) + 1, dtype=np.int64)
        for q, path in enumerate(world.tree.paths):
            policies = [queues[above].policy for above in path]
            self.before_preempt[q] = next(
                (p.min_runtime_before_preempt_ms for p in policies if p.min_runtime_before_preempt_ms), 0
            )
            self.before_reclaim[q] = next(
                (p.min_runtime_before_reclaim_ms for p in policies if p.min_runtime_before_reclaim_ms), 0
            )
        self._lowest_held: list[int] | None = None

    def lowest_held(self, queue: int) -> int:
        """The lowest priority of work that held or was promised room in the queue when the plan began; of work whose
        queue is gone with -1. NOBODY where there is none."""
        if self._lowest_held is None:
            columns = self._world.columns
            lowest = np.full(len(self._world.tree.queues) + 1, NOBODY, dtype=np.int64)
            holding = columns.view("held") + columns.view("promised") > 0
            holding &= columns.view("alive") > 0
            np.minimum.at(lowest, columns.view("queue")[holding], columns.view("priority")[holding])
            self._lowest_held = lowest.tolist()
        return self._lowest_held[queue]

    def holdings(self, pool: int) -> Holdings:
        kept = self._holdings.get(pool)
        version = self._world.script.version
        if kept is None or kept[0] != version:
            if pool not in self._books:
                self._books[pool] = Ledgerbook(self._world, pool)
            kept = self._holdings[pool] = (version, self._books[pool].now())
        return kept[1]

    def inside(self, pool: int) -> tuple[Ints, Ints]:
        """Of minimums and of surpluses: which guarantees they lie inside (`entitlements.attribute`)."""
        kept = self._inside.get(pool)
        version = self._world.script.version
        if kept is None or kept[0] != version:
            kept = self._inside[pool] = (version, *attribute(self._world, self.holdings(pool), pool))
        return kept[1:]


def candidates(
    world: World,
    shares: Shares,
    cache: HoldingsCache,
    row: int,
    pool: int,
    entitled: Entitlement,
    *,
    whole: bool = True,
    useful: Bools | None = None,
    lacking_milli: int = 0,
) -> list[Unit]:
    """Units that may be asked to leave for the workload in `row`, best to ask first; none where all of them together
    have fewer GPUs than are lacking. `whole`: not only surplus. `useful`: nodes the asker could use."""
    queue = int(world.columns.queue[row])
    holdings, giving = cache.holdings(pool), _giving_sides(world, pool, entitled)
    known = np.maximum(holdings.queue, 0)
    side = np.where(holdings.queue >= 0, giving[known], ORPHAN if entitled.orphans else -1)
    own = holdings.queue == queue
    side = np.where(own, OWN_QUEUE, side)
    has_surplus = (holdings.amount != holdings.least).any(axis=1) & (holdings.kind != NEVER_TAKEN)
    for grown, draft in world.drafts.items():
        if draft.growth() and not draft.evicted:
            has_surplus |= holdings.rows == grown
    lower = holdings.priority < int(world.columns.priority[row])
    later = _later_in_line(world, cache, holdings, row, own)
    may_be_asked = (side >= 0) | (side == ORPHAN) | (own & (has_surplus | lower | later))
    may_be_asked &= (holdings.rows != row) & ~holdings.promised & ~_stay(world, holdings)
    if not may_be_asked.any():
        return []
    inside_minimum, inside_surplus = cache.inside(pool)
    reach = np.zeros(len(side), dtype=np.int64)  # bits of the guarantees that protect from this asker
    for number, each in enumerate(entitled.sides):
        reach[side == number] = ~((1 << (each.depth - 1)) - 1)
    free_surplus = ((inside_surplus & reach) == 0) & has_surplus & may_be_asked
    may = np.zeros(len(side), dtype=np.bool_)
    if whole:
        may = _may_take_whole(world, cache, holdings, inside_minimum, reach, side, lower)
        may = (may | later) & may_be_asked
    if int(holdings.amount[may | free_surplus, GPU_COLUMN].sum()) < lacking_milli:
        return []
    tier = np.where(holdings.queue >= 0, -overage(world, shares, pool)[known], -(1 << 60))
    units: list[Unit] = []
    last_steps: dict[int, list[Unit]] = {}
    for i in np.flatnonzero(free_surplus):
        for unit in _surplus_units(world, holdings, int(i), int(side[i]), int(tier[i]), useful):
            units.append(unit)
            last_steps.setdefault(int(i), []).append(unit)
    if whole:
        asked = np.flatnonzero(may)
        places = places_of_each(world, holdings.rows[asked].tolist())
        units.extend(
            _whole_unit(world, holdings, i, int(side[i]), int(tier[i]), last_steps.get(i, []), room)
            for i, room in zip(asked.tolist(), places, strict=True)
        )
        for unit in units:
            if unit.whole and unit.side == OWN_QUEUE and unit.priority == int(world.columns.priority[row]):
                unit.standing = world.standing.get(unit.row, -1)
    return _in_order(holdings, units)


def anybody_gives(world: World, cache: HoldingsCache, row: int, pool: int, entitled: Entitlement) -> bool:
    """Whether there can be any candidate at all: the common case is that there is none, and this is cheap."""
    if any(_gives(world, pool, side) for side in entitled.sides):
        return True
    orphans = bool(entitled.orphans) and cache.lowest_held(-1) < NOBODY
    return orphans or _own_queue_gives(world, cache, row)


def _later_in_line(world: World, cache: HoldingsCache, holdings: Holdings, row: int, own: Bools) -> Bools:
    """Running work of the asker's queue and priority that stands behind it and has had a turn worth its restart."""
    later = np.zeros(len(own), dtype=np.bool_)
    if not world.turns_to_take(row):
        return later
    place = world.standing[row]
    equal = own & (holdings.priority == int(world.columns.priority[row])) & (holdings.started >= 0) & ~holdings.promised
    before_preempt = int(cache.before_preempt[int(world.columns.queue[row])])
    for i in np.flatnonzero(equal).tolist():
        victim = int(holdings.rows[i])
        turn = max(before_preempt, world.spec(victim).restart_cost_ms * TURN_RESTARTS)
        ran = world.now_ms - int(holdings.started[i])
        later[i] = world.standing.get(victim, -1) > place and ran >= turn
    return later


def shedding_units(world: World, shares: Shares, cache: HoldingsCache, pool: int, inside: Ints) -> list[Unit]:
    """Everything below a queue that is above its limit and may be stopped, whatever its guarantee; `inside` is not
    negative for queues below it."""
    holdings = cache.holdings(pool)
    known = np.maximum(holdings.queue, 0)
    mine = (holdings.queue >= 0) & (inside[known] >= 0) & (holdings.kind != NEVER_TAKEN) & ~_stay(world, holdings)
    tier = -overage(world, shares, pool)[known]
    units: list[Unit] = []
    for i in np.flatnonzero(mine):
        steps: list[Unit] = []
        if (holdings.amount[i] != holdings.least[i]).any():
            for unit in _surplus_units(world, holdings, int(i), OWN_QUEUE, int(tier[i])):
                units.append(unit)
                steps.append(unit)
        if holdings.kind[i] != MINIMUM_KEPT:
            places = places_of(world, int(holdings.rows[i]))
            units.append(_whole_unit(world, holdings, int(i), OWN_QUEUE, int(tier[i]), steps, places))
    return _in_order(holdings, units)


def _stay(world: World, holdings: Holdings) -> Bools:
    """Those that somebody has just refused to stop."""
    stay: Bools = world.columns.stays_until[holdings.rows] > world.now_ms
    return stay


def _in_order(holdings: Holdings, units: list[Unit]) -> list[Unit]:
    if len(units) < 2:
        return units
    place = dict(zip(holdings.rows.tolist(), range(len(holdings.rows)), strict=True))
    at = np.array([place[unit.row] for unit in units], dtype=np.int64)
    gpus = np.array([unit.amount[GPU_COLUMN] for unit in units], dtype=np.int64)
    cpus = np.array([unit.amount[CPU_COLUMN] for unit in units], dtype=np.int64)
    whole = np.array([unit.whole for unit in units])
    preference = (
        np.array([unit.tier for unit in units], dtype=np.int64),
        whole,  # surplus is below every minimum of its queue, whatever the priority
        np.where(whole, np.array([unit.priority for unit in units], dtype=np.int64), 0),
        np.array([-unit.standing for unit in units], dtype=np.int64),
        np.array([unit.cost for unit in units], dtype=np.int64),
        holdings.started[at] >= 0,
        -holdings.started[at],
        np.where(gpus > 0, gpus, cpus // CPU_MILLI_PER_GPU),
        holdings.rank[at],
        np.array([_steps_before(unit) for unit in units], dtype=np.int64),
    )
    return [units[i] for i in np.lexsort(preference[::-1]).tolist()]


def overage(world: World, shares: Shares, pool: int) -> Ints:
    """By queue: how far above its GPU share (CPU in a pool without GPUs); a queue due nothing comes first of all."""
    column = GPU_COLUMN if world.boards[pool].view.capacity_gpus.any() else 1
    used = world.used_coming[:, pool, column]
    due = shares.share[:, pool, column]
    ratio = np.clip((used - due) * RATIO // np.maximum(due, 1), -(1 << 50), 1 << 50)
    nothing = (world.tree.guarantee[:, pool, column] == 0) & (world.tree.weight[:, pool, column] == 0)
    return np.where(nothing, 1 << 55, ratio)


def _giving_sides(world: World, pool: int, entitled: Entitlement) -> Ints:
    """By queue: the number of its side, -1 where the side has nothing above its bound."""
    gives = [_gives(world, pool, side) for side in entitled.sides]
    side_of = entitled.side_of
    return np.where(side_of >= 0, np.where(np.array([*gives, False])[side_of], side_of, -1), -1)


def _gives(world: World, pool: int, side: Side) -> bool:
    return bool((world.used_coming[side.queue, pool] > side.bound).any())


def _own_queue_gives(world: World, cache: HoldingsCache, row: int) -> bool:
    """Whether the asker's own queue has anything of lower priority, or surplus, at all."""
    columns, queue, priority = world.columns, int(world.columns.queue[row]), int(world.columns.priority[row])
    if min(world.lowest_started.get(queue, priority), cache.lowest_held(queue)) < priority:
        return True
    if world.turns_to_take(row):
        return True
    return any(
        columns.queue[r] == queue and (columns.held[r] + columns.promised[r] > 0 or r in world.drafts)
        for r in world.table.elastic
    )


def _may_take_whole(
    world: World, cache: HoldingsCache, holdings: Holdings, inside: Ints, reach: Ints, side: Ints, lower: Bools
) -> Bools:
    own, other = side == OWN_QUEUE, (side >= 0) | (side == ORPHAN)
    takeable = (holdings.kind != NEVER_TAKEN) & (holdings.kind != MINIMUM_KEPT)
    ran = np.where(holdings.started < 0, 0, world.now_ms - holdings.started)
    guarded = np.zeros(len(own), dtype=np.bool_)  # interactive and inference work inside the guarantee of its queue
    for i in np.flatnonzero(own & lower & np.isin(holdings.kind, MAYBE_KEPT) & (inside != 0)):
        guarded[i] = is_kept_inside(world.spec(int(holdings.rows[i])))
    patience = _patience_ms(world, cache, int(holdings.queue[own][0])) if own.any() else 0
    for i in np.flatnonzero(own & lower & (ran < patience)):  # overdue: it went first, and is not sent back at once
        guarded[i] |= waited_too_long(world, int(holdings.rows[i]), WaitAction.FIRST) is not None
    preempt = own & lower & (ran >= cache.before_preempt[holdings.queue]) & ~guarded
    reclaim = other & ((inside & reach) == 0) & (ran >= cache.before_reclaim[holdings.queue])
    allowed: Bools = takeable & (preempt | reclaim)
    return allowed


def _patience_ms(world: World, cache: HoldingsCache, queue: int) -> int:
    """How long work that waited too long may run before priority counts again: as the queue says, else as long as it
    had to wait."""
    waits = [world.tree.queues[above].policy.max_wait_ms for above in world.tree.paths[queue]]
    longest = max((wait for wait in waits if wait is not None), default=None)
    return 0 if longest is None else int(cache.before_preempt[queue]) or max(longest, 1)


def _whole_unit(
    world: World, holdings: Holdings, i: int, side: int, tier: int, steps: list[Unit], places: list[Place]
) -> Unit:
    """The workload without what its surplus steps, which go first, give back. `places`: all that it has."""
    row = int(holdings.rows[i])
    amount = amount_here(world, row, holdings.amount[i])
    if steps:
        before = {slot for step in steps for slot in step.slots or ()}
        undone = {id(step.fresh) for step in steps}
        amount = amount - sum(step.amount for step in steps)
        places = places_of(world, row, [slot for slot in world.slots_of(row) if slot not in before])
        for addition in world.additions_of(row):
            if id(addition) not in undone:
                places.extend(seating_places(addition.seating))
    return Unit(
        row=row,
        slots=None,
        side=side,
        amount=amount,
        priority=int(holdings.priority[i]),
        tier=tier,
        cost=int(holdings.cost[i]),
        places=places,
        after=tuple(steps),
    )


def _surplus_units(
    world: World, holdings: Holdings, i: int, side: int, tier: int, useful: Bools | None = None
) -> Iterator[Unit]:
    """Steps down to the minimum, in the order in which they must go. Each bears the restart: a set pays it once."""
    row, priority = int(holdings.rows[i]), int(holdings.priority[i])
    draft = world.drafts.get(row)
    growth = draft.growth() if draft is not None and not draft.evicted else []
    only_growth = bool(holdings.fresh[i]) or holdings.kind[i] == NEVER_TAKEN
    cost = 0 if holdings.started[i] < 0 else world.spec(row).restart_cost_ms * 1000
    signature = world.signature(row)
    only_growth &= not (holdings.fresh[i] and signature.any_will_do)
    any_order = signature.any_will_do and useful is not None and not only_growth

    def undo(addition: Addition, before: tuple[Unit, ...]) -> Unit:
        amount, places = addition.seating.amount(), seating_places(addition.seating)
        return Unit(row, [], side, amount, priority, tier, 0, places, before, addition)

    def stop(slots: list[int], before: tuple[Unit, ...]) -> Unit:
        here = [slot for slot in slots if slot not in world.strays]
        amount, places = world.slots.amount[here].sum(axis=0), places_of(world, row, here)
        return Unit(row, slots, side, amount, priority, tier, cost, places, before)

    if any_order:  # any replica will do: those on nodes the asker can use first, growth of this plan before what runs
        undone = [undo(addition, ()) for addition in (draft.additions if holdings.fresh[i] and draft else growth)]
        stopped = [stop([slot], ()) for slot in world.slots_of(row)]
        units, added = undone + stopped, sum(len(unit.places) for unit in undone)
        surplus = added + len(stopped) - signature.minimum_count
        if not holdings.fresh[i] and surplus < added:  # they replace what was lost
            yield from undone
            return
        units.sort(key=lambda unit: (not _is_useful(unit, useful), unit.fresh is None, -_last_ordinal(world, unit)))
        yield from units[: max(surplus, 0)]
        return
    steps: list[Addition | list[int]] = list(reversed(growth))
    if not only_growth:
        steps = _mixed_steps(world, row, growth) or [*steps, *steps_down(world, row)]
    before: tuple[Unit, ...] = ()
    for step in steps:
        unit = undo(step, before) if isinstance(step, Addition) else stop(step, before)
        before = (unit,)
        yield unit


def _mixed_steps(world: World, row: int, growth: list[Addition]) -> list[Addition | list[int]]:
    """Steps down through what it has and what it grows by in this plan, as the next cycle will see them. Empty where
    that cannot be: a step would break one of the growth, or growth replaces what was lost."""
    slot_of = _slots_by_key(world, row)
    owner = {
        (seats.role_index, o): addition
        for addition in growth
        for seats in addition.seating.seats
        for o in seats.ordinals
    }
    found: list[Addition | list[int]] = []
    for keys in _steps_down(world, row, {*slot_of, *owner}) if growth else ():
        additions = {id(owner[key]): owner[key] for key in keys if key in owner}
        if not additions:
            found.append([slot_of[key] for key in keys])
        elif len(additions) == 1 and all(key in owner for key in keys):
            found.extend(additions.values())
        else:
            return []
    undone = [step for step in found if isinstance(step, Addition)]
    return found if len(undone) == len(growth) == len({id(step) for step in undone}) else []


def _is_useful(unit: Unit, useful: Bools | None) -> bool:
    return useful is None or any(useful[place.node] for place in unit.places)


def _last_ordinal(world: World, unit: Unit) -> int:
    if unit.fresh is not None:
        return max(ordinal for seats in unit.fresh.seating.seats for ordinal in seats.ordinals)
    return max(int(world.slots.ordinal[slot]) for slot in unit.slots or ())


def steps_down(world: World, row: int) -> Iterator[list[int]]:
    """Slots to give up, step by step, the last first."""
    slot_of = _slots_by_key(world, row)
    for keys in _steps_down(world, row, set(slot_of)):
        yield [slot_of[key] for key in keys]


def _slots_by_key(world: World, row: int) -> dict[tuple[int, int], int]:
    return {(int(world.slots.role[s]), int(world.slots.ordinal[s])): s for s in world.slots_of(row)}


def _steps_down(world: World, row: int, replicas: set[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    present: dict[int, set[int]] = {}
    for role, ordinal in replicas:
        present.setdefault(role, set()).add(ordinal)
    while step := gangs.surplus_step(world.spec(row).gang, present):
        yield [(cell.role_index, o) for cell in step for o in cell.ordinals]
        for cell in step:
            present[cell.role_index] -= set(cell.ordinals)


def _steps_before(unit: Unit) -> int:
    return 1 + max(_steps_before(step) for step in unit.after) if unit.after else 0


def with_steps_before(units: list[Unit]) -> list[Unit]:
    """With every surplus step that must go before one of them."""
    found: dict[int, Unit] = {}

    def add(unit: Unit) -> None:
        if id(unit) not in found:
            found[id(unit)] = unit
            for step in unit.after:
                add(step)

    for unit in units:
        add(unit)
    return list(found.values())
