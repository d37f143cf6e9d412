"""Who holds room in a pool: one row per workload, for choosing whom to ask to leave.

What the snapshot says is looked up once per pool and cycle; what the plan has changed since is laid over it. Most
cycles never need any of it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice

import numpy as np

from optimus.decide.placement.seating import Seating
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
    activity_milli: int


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    rows: Ints
    rank: Ints
    """Order of the workloads' names."""
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
    promised: Bools
    """Waits for room that others are leaving for it."""


class Ledgerbook:
    """Holdings of one pool: those of the snapshot, and the plan's changes on top."""

    def __init__(self, world: World, pool: int) -> None:
        self._world = world
        self._pool = pool
        columns = world.columns
        holding = (columns.view("held") + columns.view("promised") > 0) & (columns.view("pool") == pool)
        found = np.flatnonzero(holding & (columns.view("alive") > 0)).tolist()
        self._rows: list[int] = sorted(found, key=world.table.names.__getitem__)
        self._names = [world.spec(row).id for row in self._rows]
        self._place = {row: i for i, row in enumerate(self._rows)}
        at = np.array(self._rows, dtype=np.int64)
        self._amount = columns.amount[at]
        self._least = self._amount.copy()
        for row in world.table.elastic:
            i = self._place.get(row)
            if i is not None:
                self._least[i] = np.minimum(world.ask(row).least_amount(pool), self._amount[i])
        self._cost = _costs(world, at, self._amount)

    def now(self) -> Holdings:
        """With everything the plan has done so far."""
        world, columns = self._world, self._world.columns
        keep = np.ones(len(self._rows), dtype=np.bool_)
        changed: list[tuple[int, int]] = []
        fresh: list[int] = []
        for row, draft in world.drafts.items():
            i = self._place.get(row)
            holds = not draft.evicted and i is not None and bool(world.slots_of(row))
            if i is not None and not holds:
                keep[i] = False
            if holds and i is not None:
                changed.append((i, row))
            elif draft.pool == self._pool:
                fresh.append(row)
        fresh.sort(key=world.table.names.__getitem__)
        step = len(fresh) + 1
        fresh_rank = [bisect_left(self._names, world.spec(row).id) * step + j + 1 for j, row in enumerate(fresh)]
        amount, least = self._amount.copy(), self._least.copy()
        for i, row in changed:
            amount[i] = world.held_amount(row)
            least[i] = (
                np.minimum(world.ask(row).least_amount(self._pool), amount[i])
                if row in world.table.elastic
                else amount[i]
            )
        extra = np.array([world.held_amount(row) for row in fresh], dtype=np.int64).reshape(len(fresh), amount.shape[1])
        extra_least = np.array([world.ask(row).least_amount(self._pool) for row in fresh], dtype=np.int64)
        extra_least = np.minimum(extra_least.reshape(extra.shape), extra)
        at = np.array([row for i, row in enumerate(self._rows) if keep[i]] + fresh, dtype=np.int64)
        rank = np.concatenate([(np.flatnonzero(keep) + 1) * step, np.array(fresh_rank, dtype=np.int64)])
        return Holdings(
            rows=at,
            rank=rank,
            queue=columns.queue[at],
            kind=columns.preemptible[at],
            priority=columns.priority[at],
            started=np.where(np.arange(len(at)) < len(at) - len(fresh), columns.started[at], -1),
            amount=np.concatenate([amount[keep], extra]),
            least=np.concatenate([least[keep], extra_least]),
            cost=np.concatenate([self._cost[keep], np.zeros(len(fresh), dtype=np.int64)]),
            fresh=np.arange(len(at)) >= len(at) - len(fresh),
            promised=self._promised(at),
        )

    def _promised(self, rows: Ints) -> Bools:
        promised: Bools = self._world.columns.promised[rows] > 0
        if self._world.drafts:
            drafted = np.flatnonzero(np.isin(rows, list(self._world.drafts))).tolist()
            promised[drafted] = [self._is_promised(int(rows[i])) for i in drafted]
        return promised

    def _is_promised(self, row: int) -> bool:
        draft = self._world.drafts[row]
        if any(addition.promised for addition in draft.additions):
            return True
        left = int(self._world.columns.promised[row]) - len(draft.kept)
        return left > 0 and any(
            self._world.slots.promised[s] and s not in draft.kept for s in self._world.slots_of(row)
        )


def lost_ms(world: World, rows: Ints) -> Ints:
    """Run time that would have to be repeated: none where it saves in time when told, else since the reported
    checkpoint, else one interval, else all."""
    columns, now = world.columns, world.now_ms
    started, reported, interval = columns.started[rows], columns.checkpoint_at[rows], columns.checkpoint_interval[rows]
    running = np.maximum(now - started, 0)
    unreported = np.where(interval >= 0, np.minimum(interval, running), running)
    lost = np.where(reported >= started, np.maximum(now - reported, 0), unreported)
    return np.where((started < 0) | (columns.saves_in_time[rows] > 0), 0, lost)


def _costs(world: World, rows: Ints, amount: Ints) -> Ints:
    started = world.columns.started[rows]
    idle = started < 0
    size = np.where(amount[:, GPU_COLUMN] > 0, amount[:, GPU_COLUMN], amount[:, CPU_COLUMN] // CPU_MILLI_PER_GPU)
    columns = VictimColumns(
        restart_cost_ms=np.where(idle, 0, world.columns.restart_cost[rows]),
        lost_ms=lost_ms(world, rows),
        size_milli=size,
        priority=world.columns.priority[rows],
        running_ms=np.where(idle, 0, world.now_ms - started),
        surplus=np.zeros(len(rows), dtype=np.bool_),
    )
    costs, condition = victim_costs(world.policy, columns)
    if condition is not None and condition not in world.conditions:
        world.conditions.append(condition)
    return np.where(idle, 0, costs)  # nothing runs: taking a hold back costs nothing


def amount_here(world: World, row: int, amount: Ints) -> Ints:
    """Of what the workload has: without what it has on nodes that were given to another pool."""
    away = [slot for slot in world.slots_of(row) if slot in world.strays] if world.strays else []
    return amount - world.slots.amount[away].sum(axis=0) if away else amount


def places_of(world: World, row: int, slots: list[int] | None = None) -> list[Place]:
    """What comes free in its pool when these slots stop (all of the workload's when none are given)."""
    draft = world.drafts.get(row)
    places = []
    for slot in world.slots_of(row) if slots is None else slots:
        if slot in world.strays:
            continue  # its node has a number in another pool
        node = int(world.node_index[world.slots.node[slot]])
        amount = world.slots.amount[slot]
        devices = world.snapshot.slots.devices[slot]
        places.append(Place(node, amount[1:], devices, int(world.slots.milli[slot]), world.activity_of_slot(slot)))
    if slots is None and draft is not None:
        for addition in draft.additions:
            places.extend(seating_places(addition.seating))
    return places


def places_of_each(world: World, rows: list[int]) -> list[list[Place]]:
    """`places_of` for many at once."""
    if world.strays or not rows:
        return [places_of(world, row) for row in rows]
    plain = [row for row in rows if row not in world.drafts]
    slots_of = [[slot for _, slot in sorted(world.table.slots[row].items())] for row in plain]
    slots = np.array([slot for of_row in slots_of for slot in of_row], dtype=np.int64)
    each = zip(
        world.node_index[world.slots.node[slots]].tolist(),
        world.slots.amount[slots, 1:],
        [world.snapshot.slots.devices[slot] for slot in slots.tolist()],
        world.slots.milli[slots].tolist(),
        world.activity_of(slots, []).tolist(),
        strict=True,
    )
    places = iter([Place(*place) for place in each])
    found = {row: list(islice(places, len(of_row))) for row, of_row in zip(plain, slots_of, strict=True)}
    return [found[row] if row in found else places_of(world, row) for row in rows]


def seating_places(seating: Seating) -> list[Place]:
    return [
        Place(node, seats.shape.scalars, devices, milli, seats.shape.activity_milli)
        for seats in seating.seats
        for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True)
    ]
