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

import numpy as np

from optimus.decide.quotas import Known, standing_refusal
from optimus.decide.world import World
from optimus.model.reasons import Code
from optimus.state.arrays import Ints
from optimus.state.queue_tree import ROOT
from optimus.state.resources import GPU_COLUMN

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
    age = world.now_ms - view.unready_since
    busy = (world.boards[pool].now.scalars < view.capacity_scalars).any(axis=1)
    busy |= (world.boards[pool].now.gpus < view.capacity_gpus).any(axis=1)
    counts = (view.unready_since < 0) | (busy & (age < world.settings.unready_timeout_ms))
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
    tree = world.tree
    guaranteed = np.minimum(tree.guarantee, demand)
    order = sorted(range(len(tree.queues)), key=lambda q: (tree.queues[q].created_ms, tree.queues[q].name))
    place = {q: i for i, q in enumerate(order)}
    for parent in tree.top_down():
        children = sorted(tree.children[parent], key=lambda q: (tree.rank[q], place[q]))
        if not children:
            continue
        for pool, there_is in totals.items():
            for resource in range(demand.shape[2]):
                total = int(there_is[resource]) if parent == ROOT else int(share[parent, pool, resource])
                first = [int(guaranteed[q, pool, resource]) for q in children]
                rest = total - sum(first)
                at = 0
                while at < len(children):
                    end = at
                    while end < len(children) and tree.rank[children[end]] == tree.rank[children[at]]:
                        end += 1
                    group = children[at:end]
                    needs = [int(demand[q, pool, resource]) - first[at + k] for k, q in enumerate(group)]
                    extra = water_fill(rest, needs, [int(weights[q, pool, resource]) for q in group])
                    for k, q in enumerate(group):
                        share[q, pool, resource] = first[at + k] + extra[k]
                    rest -= sum(extra)
                    at = end


def _demand(world: World) -> Ints:
    """What each queue could use: held and promised, growth of elastic work, and waiting work that could ever run."""
    tree, table, columns = world.tree, world.table, world.columns
    wanted = np.zeros_like(world.used_coming)
    leaves = [q for q in range(len(tree.queues)) if tree.is_leaf(q)]
    wanted[leaves] = world.used_coming[leaves]
    waiting: dict[tuple[int, int], int] = {}
    for row in _waiting(world):
        if not columns.suspended[row] and columns.queue[row] >= 0 and tree.is_leaf(int(columns.queue[row])):
            key = (int(columns.queue[row]), int(columns.signature[row]))
            waiting[key] = waiting.get(key, 0) + 1
    for (queue, signature), count in waiting.items():
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
    columns = world.columns
    rows = set(world.table.pending) - world.refused
    known: Known = {}
    leaving = np.flatnonzero((columns.view("releasing") > 0) & (columns.view("alive") > 0)).tolist()
    for row in [*leaving, *(row for row, draft in world.drafts.items() if draft.removed)]:
        refusal = standing_refusal(world, row, known)
        if refusal is None or refusal.code is Code.BACKING_OFF:
            rows.add(row)
    return sorted(row for row in rows - world.ended if not world.holds(row))


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
