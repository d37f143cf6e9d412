"""Who holds room in a pool: one row per workload, for choosing whom to ask to leave.

Built at most once per pool and state of the plan, and only when somebody asks: most cycles never need it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimus.decide.policies.columns import VictimColumns
from optimus.decide.policies.policy import victim_costs
from optimus.decide.world import World
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import CPU_MILLI_PER_GPU


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Room that one replica would give back."""

    node: int
    scalars: Ints
    devices: tuple[int, ...]
    milli: int


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    rows: Ints
    """Workload rows, by name of the workload."""
    queue: Ints
    kind: Ints
    """Preemptibility."""
    priority: Ints
    started: Ints
    """-1: it only holds room, nothing runs yet."""
    amount: Ints
    least: Ints
    cost: Ints
    """Of taking it out whole."""
    fresh: Bools
    """Started by this very plan: taking it out means not starting it."""


def holdings_of(world: World, pool: int) -> Holdings:
    columns = world.columns
    alive = columns.view("alive") > 0
    holding = (columns.view("held") + columns.view("promised") > 0) & (columns.view("pool") == pool) & alive
    rows = {int(row) for row in np.flatnonzero(holding)}
    fresh = set()
    for row, draft in world.drafts.items():
        if draft.evicted or (draft.removed and not world.slots_of(row) and not draft.added):
            rows.discard(row)
        elif draft.start is not None and draft.added[0][0].pool == pool:
            rows.add(row)
            fresh.add(row)
    ordered = sorted(rows, key=lambda row: world.spec(row).id)
    at = np.array(ordered, dtype=np.int64)
    amount = columns.amount[at].copy()
    least = amount.copy()
    for i, row in enumerate(ordered):
        if row in world.drafts:
            amount[i] = world.held_amount(row)
            least[i] = amount[i]
        if row in world.table.elastic:
            least[i] = np.minimum(world.ask(row).least_amount(pool), amount[i])
    return Holdings(
        rows=at,
        queue=columns.queue[at],
        kind=columns.preemptible[at],
        priority=columns.priority[at],
        started=columns.started[at],
        amount=amount,
        least=least,
        cost=_costs(world, at, amount),
        fresh=np.array([row in fresh for row in ordered], dtype=np.bool_),
    )


def lost_ms(world: World, row: int) -> int:
    """Run time that would have to be repeated: since the reported checkpoint, else one interval, else all."""
    started = int(world.columns.started[row])
    if started < 0:
        return 0
    running = max(world.now_ms - started, 0)
    reported = int(world.columns.checkpoint_at[row])
    if reported >= started:
        return max(world.now_ms - reported, 0)
    checkpoint = world.spec(row).checkpoint
    if checkpoint is not None and checkpoint.interval_ms is not None:
        return min(checkpoint.interval_ms, running)
    return running


def _costs(world: World, rows: Ints, amount: Ints) -> Ints:
    started = world.columns.started[rows]
    idle = started < 0
    size = np.where(amount[:, GPU_COLUMN] > 0, amount[:, GPU_COLUMN], amount[:, CPU_COLUMN] // CPU_MILLI_PER_GPU)
    restart = np.array([world.spec(int(row)).restart_cost_ms for row in rows], dtype=np.int64)
    columns = VictimColumns(
        restart_cost_ms=np.where(idle, 0, restart),
        lost_ms=np.array([lost_ms(world, int(row)) for row in rows], dtype=np.int64),
        size_milli=size,
        priority=world.columns.priority[rows],
        running_ms=np.where(idle, 0, world.now_ms - started),
        surplus=np.zeros(len(rows), dtype=np.bool_),
    )
    costs, condition = victim_costs(world.policy, columns)
    if condition is not None and condition not in world.conditions:
        world.conditions.append(condition)
    return np.where(idle, 0, costs)  # nothing runs: taking a hold back costs nothing


def places_of(world: World, row: int, slots: list[int] | None = None) -> list[Place]:
    """What comes free when these slots stop (all of the workload's when none are given)."""
    draft = world.drafts.get(row)
    places = []
    for slot in world.slots_of(row) if slots is None else slots:
        node = int(world.node_index[world.slots.node[slot]])
        amount = world.slots.amount[slot]
        places.append(Place(node, amount[1:], world.snapshot.slots.devices[slot], int(world.slots.milli[slot])))
    if slots is None and draft is not None:
        for seating, _ in draft.added:
            for seats in seating.seats:
                for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
                    places.append(Place(node, seats.shape.scalars, devices, milli))
    return places
