"""Whom to ask: running work that may be taken out or made smaller for an asker, in the order in which to ask.

    the queue furthest above its share  ->  lowest priority  ->  surplus before whole workloads  ->  least cost
    ->  newer  ->  smaller  ->  name

Protected: work that may never be preempted, minimums that are kept, work inside a guarantee (from other queues),
and work that has not run for its queue's minimum time yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimus.decide.entitlements import Entitlement, attribute
from optimus.decide.holdings import Holdings, Place, holdings_of, places_of
from optimus.decide.shares import Shares
from optimus.decide.turns import RATIO
from optimus.decide.world import MINIMUM_KEPT, NEVER_TAKEN, World
from optimus.model import gangs
from optimus.model.workloads import Preemptible, WorkloadClass
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import GPU_COLUMN
from optimus.state.workload_table import PREEMPTIBLE_CODE, size_milli

DEFAULT_KIND = PREEMPTIBLE_CODE[Preemptible.DEFAULT]
OWN_QUEUE = -2
"""The side of a victim in the asker's own queue: no share is asked about."""


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
    after: Unit | None = None
    """The surplus step that must go first."""

    @property
    def whole(self) -> bool:
        return self.slots is None


class HoldingsCache:
    """Holdings and attribution per pool, kept while the plan does not change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._kept: dict[int, tuple[int, Holdings, Ints, Ints]] = {}

    def get(self, pool: int) -> tuple[Holdings, Ints, Ints]:
        kept = self._kept.get(pool)
        version = self._world.acted()
        if kept is None or kept[0] != version:
            holdings = holdings_of(self._world, pool)
            inside_minimum, inside_surplus = attribute(self._world, holdings, pool)
            kept = self._kept[pool] = (version, holdings, inside_minimum, inside_surplus)
        return kept[1:]


def candidates(
    world: World, shares: Shares, cache: HoldingsCache, row: int, pool: int, entitled: Entitlement, *, whole: bool = True
) -> list[Unit]:
    """Units that may be asked to leave for the workload in `row`, best to ask first. `whole`: not only surplus."""
    holdings, inside_minimum, inside_surplus = cache.get(pool)
    if not len(holdings.rows):
        return []
    queue = int(world.columns.queue[row])
    known = np.maximum(holdings.queue, 0)
    side = np.where(holdings.queue >= 0, entitled.side_of[known], -1)
    own = holdings.queue == queue
    side = np.where(own, OWN_QUEUE, side)
    reach = np.zeros(len(side), dtype=np.int64)  # bits of the guarantees that protect from this asker
    for number, each in enumerate(entitled.sides):
        mine = side == number
        reach[mine] = ~((1 << (each.depth - 1)) - 1)
    asker = holdings.rows == row
    free_surplus = ((inside_surplus & reach) == 0) & (holdings.kind != NEVER_TAKEN) & (side != -1) & ~asker
    over = overage(world, shares, pool)
    tier = np.where(holdings.queue >= 0, -over[known], -(1 << 60))
    units: list[Unit] = []
    last_step: dict[int, Unit] = {}
    for i in np.flatnonzero(free_surplus & (holdings.amount != holdings.least).any(axis=1)):
        for unit in _surplus_units(world, holdings, int(i), int(side[i]), int(tier[i])):
            units.append(unit)
            last_step[int(i)] = unit
    if whole:
        may = _may_take_whole(world, holdings, inside_minimum, reach, side, row) & ~asker
        for i in np.flatnonzero(may):
            units.append(_whole_unit(world, holdings, int(i), int(side[i]), int(tier[i]), last_step.get(int(i))))
    return _in_order(world, holdings, units)


def shedding_units(world: World, shares: Shares, cache: HoldingsCache, pool: int, inside: Ints) -> list[Unit]:
    """Everything below a queue that is above its limit and may be stopped, whatever its guarantee; `inside` is not
    negative for queues below it."""
    holdings, _, _ = cache.get(pool)
    known = np.maximum(holdings.queue, 0)
    mine = (holdings.queue >= 0) & (inside[known] >= 0) & (holdings.kind != NEVER_TAKEN)
    tier = -overage(world, shares, pool)[known]
    units: list[Unit] = []
    for i in np.flatnonzero(mine):
        last: Unit | None = None
        if (holdings.amount[i] != holdings.least[i]).any():
            for unit in _surplus_units(world, holdings, int(i), OWN_QUEUE, int(tier[i])):
                units.append(unit)
                last = unit
        if holdings.kind[i] != MINIMUM_KEPT:
            units.append(_whole_unit(world, holdings, int(i), OWN_QUEUE, int(tier[i]), last))
    return _in_order(world, holdings, units)


def _in_order(world: World, holdings: Holdings, units: list[Unit]) -> list[Unit]:
    started = {int(r): int(s) for r, s in zip(holdings.rows, holdings.started, strict=True)}

    def preference(unit: Unit) -> tuple[int, bool, int, int, bool, int, int, int, str]:
        size = size_milli(int(unit.amount[GPU_COLUMN]), int(unit.amount[1]))
        return (
            unit.tier,
            unit.whole,  # surplus is below every minimum of its queue, whatever the priority
            unit.priority if unit.whole else 0,
            unit.cost,
            started[unit.row] >= 0,
            -started[unit.row],
            size,
            _steps_before(unit),
            world.spec(unit.row).id,
        )

    units.sort(key=preference)
    return units


def overage(world: World, shares: Shares, pool: int) -> Ints:
    """By queue: how far above its GPU share (CPU in a pool without GPUs); a queue due nothing comes first of all."""
    column = GPU_COLUMN if world.boards[pool].view.capacity_gpus.any() else 1
    used = world.used_coming[:, pool, column]
    due = shares.share[:, pool, column]
    ratio = np.clip((used - due) * RATIO // np.maximum(due, 1), -(1 << 50), 1 << 50)
    nothing = (world.tree.guarantee[:, pool, column] == 0) & (world.tree.weight[:, pool, column] == 0)
    return np.where(nothing, 1 << 55, ratio)


def _may_take_whole(
    world: World, holdings: Holdings, inside: Ints, reach: Ints, side: Ints, row: int
) -> Bools:
    own = side == OWN_QUEUE
    other = side >= 0
    lower = holdings.priority < int(world.columns.priority[row])
    takeable = (holdings.kind != NEVER_TAKEN) & (holdings.kind != MINIMUM_KEPT)
    waited_preempt, waited_reclaim = _ran_long_enough(world, holdings)
    guarded = np.zeros(len(own), dtype=np.bool_)  # interactive and inference work inside the guarantee of its queue
    for i in np.flatnonzero(own & lower & (holdings.kind == DEFAULT_KIND) & (inside != 0)):
        guarded[i] = world.spec(int(holdings.rows[i])).workload_class is not WorkloadClass.UNATTENDED
    preempt = own & lower & waited_preempt & ~guarded
    reclaim = other & ((inside & reach) == 0) & waited_reclaim
    allowed: Bools = takeable & (preempt | reclaim)
    return allowed


def _ran_long_enough(world: World, holdings: Holdings) -> tuple[Bools, Bools]:
    """Against preemption and against reclaim: the nearest queue that says something counts."""
    ran = np.where(holdings.started < 0, 1 << 60, world.now_ms - holdings.started)
    needed = np.zeros((2, len(ran)), dtype=np.int64)
    for queue in np.unique(holdings.queue):
        if queue < 0:
            continue
        policies = [world.tree.queues[q].policy for q in world.tree.paths[int(queue)]]
        mine = holdings.queue == queue
        needed[0, mine] = next((p.min_runtime_before_preempt_ms for p in policies if p.min_runtime_before_preempt_ms), 0)
        needed[1, mine] = next((p.min_runtime_before_reclaim_ms for p in policies if p.min_runtime_before_reclaim_ms), 0)
    return ran >= needed[0], ran >= needed[1]


def _whole_unit(world: World, holdings: Holdings, i: int, side: int, tier: int, last_step: Unit | None) -> Unit:
    """The workload without what its surplus steps, which go first, give back."""
    row = int(holdings.rows[i])
    amount = holdings.amount[i]
    places = None
    if last_step is not None:
        before: set[int] = set()
        step: Unit | None = last_step
        while step is not None:
            before.update(step.slots or ())
            amount = amount - step.amount
            step = step.after
        places = places_of(world, row, [slot for slot in world.slots_of(row) if slot not in before])
    return Unit(
        row=row,
        slots=None,
        side=side,
        amount=amount,
        priority=int(holdings.priority[i]),
        tier=tier,
        cost=int(holdings.cost[i]),
        places=places_of(world, row) if places is None else places,
        after=last_step,
    )


def _surplus_units(world: World, holdings: Holdings, i: int, side: int, tier: int) -> Iterator[Unit]:
    """Steps down to the minimum, in the order in which they must go."""
    row = int(holdings.rows[i])
    if holdings.fresh[i]:
        return
    by_key = {(int(world.slots.role[s]), int(world.slots.ordinal[s])): s for s in world.slots_of(row)}
    present = {role: set(ordinals) for role, ordinals in world.present(row).items()}
    previous: Unit | None = None
    while step := gangs.surplus_step(world.spec(row).gang, present):
        slots = [by_key[(cell.role_index, o)] for cell in step for o in cell.ordinals if (cell.role_index, o) in by_key]
        for cell in step:
            present[cell.role_index] -= set(cell.ordinals)
        if len(slots) != sum(len(cell.ordinals) for cell in step):
            continue  # seats of this very plan: nothing to stop
        amount = world.slots.amount[slots].sum(axis=0)
        idle = holdings.started[i] < 0
        cost = 0 if idle else world.spec(row).restart_cost_ms * 1000 if previous is None else 0
        unit = Unit(row, slots, side, amount, int(holdings.priority[i]), tier, cost, places_of(world, row, slots), previous)
        yield unit
        previous = unit


def _steps_before(unit: Unit) -> int:
    count = 0
    while unit.after is not None:
        unit = unit.after
        count += 1
    return count
