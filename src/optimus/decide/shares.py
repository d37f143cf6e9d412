"""Fair share: what each queue is due of each pool and resource, top-down through the tree.

1. demand = min(limit, allocated + waiting work that could run in the empty pool)
2. everybody gets min(guarantee, demand)
3. the rest goes to siblings by rank, inside a rank by weight, until demand is met
4. with history, a second share with moved weights orders and lends; it never entitles to take back

A share orders and entitles; it never caps. All integers: parts are rounded by largest remainder and sum exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from optimus.decide.quotas import Known, standing_refusal
from optimus.decide.world import World
from optimus.model.reasons import Code
from optimus.state.arrays import Bools, Ints
from optimus.state.queue_tree import ROOT, QueueTree
from optimus.state.resources import GPU_COLUMN
from optimus.state.snapshot import PoolView

WEIGHT_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Shares:
    """[queue, pool, resource]"""

    demand: Ints
    share: Ints
    lending: Ints
    """The share with history in it; the same array when history is off."""


def compute_shares(world: World) -> Shares:
    demand = _demand(world)
    totals = {pool: pool_total(world, pool) for pool in range(len(world.boards))}
    share = np.zeros_like(demand)
    _distribute(world, demand, totals, world.tree.weight, share)
    weights = _weights_with_history(world)
    lending = share
    if weights is not None:
        lending = np.zeros_like(demand)
        _distribute(world, demand, totals, weights, lending)
    return Shares(demand, share, lending)


def share_when_asking(world: World, shares: Shares, queue: int, pool: int, amount: Ints) -> Ints:
    """By resource: what the queue would be due in a pool if it asked for this much more there. Work that lists several
    pools counts in the first; this is its queue's share in another."""
    demand, asked = shares.demand.copy(), amount
    for above in world.tree.paths[queue]:
        asked = np.minimum(asked, world.tree.limit[above, pool] - demand[above, pool])
        demand[above, pool] += asked
    share = np.zeros_like(demand)
    _distribute(world, demand, {pool: pool_total(world, pool)}, world.tree.weight, share)
    due: Ints = share[queue, pool]
    return due


def pool_total(world: World, pool: int) -> Ints:
    """By resource: what there is to share. An unready node with work on it counts until its time-out."""
    view = world.boards[pool].view
    if (view.unready_since < 0).all():
        return world.snapshot.worked_out.once(("total", pool), lambda: _total(world, view, view.unready_since < 0))
    age = world.now_ms - view.unready_since
    busy = (world.boards[pool].now.scalars < view.capacity_scalars).any(axis=1)
    busy |= (world.boards[pool].now.gpus < view.capacity_gpus).any(axis=1)
    return _total(world, view, (view.unready_since < 0) | (busy & (age < world.settings.unready_timeout_ms)))


def _total(world: World, view: PoolView, counts: Bools) -> Ints:
    total = np.zeros(world.snapshot.resources.count, dtype=np.int64)
    total[1:] = np.maximum(view.capacity_scalars[counts], 0).sum(axis=0)
    total[GPU_COLUMN] = np.maximum(view.capacity_gpus[counts], 0).sum()
    return total


def water_fill(total: int, needs: Sequence[int], weights: Sequence[int]) -> list[int]:
    """Split `total` by weight, nobody above its need, exactly; the earlier entry wins a tie of remainders."""
    given = [0] * len(needs)
    thirsty = [i for i in range(len(needs)) if needs[i] > 0 and weights[i] > 0]
    while thirsty and total > 0:
        weight = sum(weights[i] for i in thirsty)
        full = [i for i in thirsty if (needs[i] - given[i]) * weight <= total * weights[i]]
        if full:
            for i in full:
                total -= needs[i] - given[i]
                given[i] = needs[i]
            thirsty = [i for i in thirsty if i not in full]
            continue
        exact = [(total * weights[i] // weight, total * weights[i] % weight) for i in thirsty]
        spare = total - sum(part for part, _ in exact)
        by_remainder = sorted(range(len(thirsty)), key=lambda k: -exact[k][1])
        for k, i in enumerate(thirsty):
            given[i] += exact[k][0]
        for k in by_remainder[:spare]:
            given[thirsty[k]] += 1
        break
    return given


def _distribute(world: World, demand: Ints, totals: dict[int, Ints], weights: Ints, share: Ints) -> None:
    """Fill in the shares of the pools whose totals are given."""
    guaranteed = np.minimum(world.tree.guarantee, demand)
    families = world.snapshot.worked_out.once("families", partial(_families, world.tree))
    resources = world.snapshot.resources.shared()
    wanted = [(pool, r) for pool in totals for r in resources if demand[:, pool, r].any()]
    for pool, resource in wanted:
        needs = (demand - guaranteed)[:, pool, resource].tolist()
        first, weight = guaranteed[:, pool, resource].tolist(), weights[:, pool, resource].tolist()
        due = [*first, int(totals[pool][resource])]  # last, at ROOT: all there is
        for parent, ranks in families:
            rest = due[parent] - sum(first[q] for group in ranks for q in group)
            for group in ranks:
                extra = water_fill(rest, [needs[q] for q in group], [weight[q] for q in group])
                rest -= sum(extra)
                for q, more in zip(group, extra, strict=True):
                    due[q] += more
        share[:, pool, resource] = due[:-1]


def _families(tree: QueueTree) -> list[tuple[int, list[list[int]]]]:
    """Parents, top down, with their children in groups of one rank; inside a group older ones first."""

    def place(queue: int) -> tuple[int, int, str]:
        return tree.rank[queue], tree.queues[queue].created_ms, tree.queues[queue].name

    found = []
    for parent in tree.top_down():
        children = sorted(tree.children[parent], key=place)
        if children:
            found.append((parent, [list(group) for _, group in groupby(children, key=lambda q: tree.rank[q])]))
    return found


def _demand(world: World) -> Ints:
    """What each queue could use: held and promised, growth of elastic work, and waiting work that could ever run."""
    tree, table, columns = world.tree, world.table, world.columns
    wanted = np.zeros_like(world.used_coming)
    leaves = [q for q in range(len(tree.queues)) if tree.is_leaf(q)]
    wanted[leaves] = world.used_coming[leaves]
    rows = np.array(_waiting(world), dtype=np.int64)
    rows = rows[(columns.suspended[rows] == 0) & np.isin(columns.queue[rows], leaves)]
    kinds = columns.queue[rows] * len(table.signatures) + columns.signature[rows]
    for kind, count in zip(*(found.tolist() for found in np.unique(kinds, return_counts=True)), strict=True):
        queue, signature = divmod(kind, len(table.signatures))
        ask = world.ask_of_signature(signature)
        pool = ask.home()
        if pool is not None:
            wanted[queue, pool] += count * ask.most_amount(pool)
    for row in table.elastic:
        draft = world.drafts.get(row)
        pool = draft.pool if draft is not None and draft.pool is not None else int(columns.pool[row])
        queue = int(columns.queue[row])
        if queue >= 0 and tree.is_leaf(queue) and pool >= 0 and columns.alive[row] and world.holds(row):
            room_to_grow = world.ask(row).most_amount(pool) - world.held_amount(row)
            wanted[queue, pool] += np.maximum(room_to_grow, 0)
    for queue in reversed(tree.top_down()):
        if queue == ROOT:
            continue
        np.minimum(wanted[queue], tree.limit[queue], out=wanted[queue])
        if tree.parent[queue] != ROOT:
            wanted[tree.parent[queue]] += wanted[queue]
    return wanted


def _waiting(world: World) -> list[int]:
    """Workloads without any room: those that wait, and those that will as soon as their last replica has ended."""
    columns, drafts, out = world.columns, world.drafts, world.refused | world.ended
    rows = {row for row in world.table.pending if row not in out and (row not in drafts or not world.holds(row))}
    known: Known = {}
    leaving = np.flatnonzero((columns.view("releasing") > 0) & (columns.view("alive") > 0)).tolist()
    for row in [*leaving, *(row for row, draft in drafts.items() if draft.removed)]:
        refusal = standing_refusal(world, row, known)
        if (refusal is None or refusal.code is Code.BACKING_OFF) and row not in world.ended and not world.holds(row):
            rows.add(row)
    return list(rows)


def _weights_with_history(world: World) -> Ints | None:
    """max(0, n + k(n - u)) in parts of WEIGHT_UNIT, for siblings, by pool and resource: n is the normalised weight, u
    the share of past use there."""
    if not world.settings.history_half_life_ms:
        return None
    tree, past = world.tree, world.snapshot.history.past_use
    resources = world.snapshot.resources.names
    factor = world.settings.history_factor_percent
    weights = np.zeros_like(tree.weight)
    for children in tree.children.values():
        for pool, board in enumerate(world.boards):
            for resource, name in enumerate(resources):
                use = [past.get((tree.queues[q].name, board.view.pool.name, name), 0) for q in children]
                used, total = sum(use), sum(int(tree.weight[q, pool, resource]) for q in children)
                for k, q in enumerate(children):
                    n = int(tree.weight[q, pool, resource]) * WEIGHT_UNIT // total if total else 0
                    u = use[k] * WEIGHT_UNIT // used if used else n
                    weights[q, pool, resource] = max(0, n + factor * (n - u) // 100)
    return weights
