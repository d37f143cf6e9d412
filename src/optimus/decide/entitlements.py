"""Who may take back what.

Walk up from the two queues to the children of their lowest common ancestor. The asker's side must stay inside its
share after the step, and the victim's side must be above its share before it; or above its guarantee, while every
queue on the asker's side stays inside its own.

A queue's guarantee is attributed to its running work in order: what lies inside a guarantee further down, work that
may never be preempted, higher priority, earlier start; minimums before surplus. Work wholly inside a guarantee is
never taken by another queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimus.decide.holdings import Holdings
from optimus.decide.shares import Shares
from optimus.decide.world import NEVER_TAKEN, World
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN


@dataclass(frozen=True, slots=True)
class Side:
    """A child of a common ancestor: everything below it may be asked to give back."""

    queue: int
    depth: int
    """Queues on the way from the top to the side, itself included."""
    bound: Ints
    """By resource: its share or its guarantee. What it uses beyond this may be taken."""
    by: str
    """`guarantee` or `share`: what entitles the asker."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    sides: list[Side]
    side_of: Ints
    """By queue: number of the side it belongs to, -1 where nothing may be taken."""
    orphans: str = ""
    """What entitles to work whose queue is gone (`guarantee` or `share`): it belongs to nobody and lies in no
    guarantee, so whoever is inside its own at the top may take it."""


def entitlement(world: World, shares: Shares, queue: int, pool: int, amount: Ints) -> Entitlement:
    """From which queues this queue may take back room for this amount."""
    tree = world.tree
    path = [int(q) for q in tree.paths[queue]]
    sides: list[Side] = []
    side_of = np.full(len(tree.queues), -1, dtype=np.int64)
    guaranteed = True
    by = ""
    for own in path:
        after = world.used_coming[own, pool] + amount
        columns = world.measures(own, pool, amount)
        guaranteed = guaranteed and all(after[c] <= tree.guarantee[own, pool, c] for c in columns)
        inside_share = all(after[c] <= shares.share[own, pool, c] for c in columns)
        if not guaranteed and not inside_share:
            by = ""
            continue
        by = "guarantee" if guaranteed else "share"
        bounds = tree.guarantee if guaranteed else shares.share
        for sibling in tree.children[tree.parent[own]]:
            if sibling != own:
                number = len(sides)
                sides.append(Side(sibling, len(tree.paths[sibling]), bounds[sibling, pool], by))
                for below in _subtree(world, sibling):
                    side_of[below] = number
    return Entitlement(sides, side_of, orphans=by)


def is_guaranteed(world: World, queue: int, pool: int, amount: Ints) -> bool:
    """Whether every queue from this one to the top stays inside its guarantee."""
    for own in world.tree.paths[queue].tolist():
        after, guarantee = world.used_coming[own, pool] + amount, world.tree.guarantee[own, pool]
        if any(after[c] > guarantee[c] for c in world.measures(own, pool, amount)):
            return False
    return True


def _subtree(world: World, queue: int) -> list[int]:
    found = [queue]
    for q in found:
        found.extend(world.tree.children[q])
    return found


def attribute(world: World, holdings: Holdings, pool: int) -> tuple[Ints, Ints]:
    """For each holding: bit i is set if its minimum (first array) or its surplus (second) lies inside the guarantee
    of the i-th queue from the top on its path."""
    size = len(holdings.rows)
    inside = np.zeros((2, size), dtype=np.int64)
    least = holdings.least
    surplus = holdings.amount - least
    has_surplus = (surplus > 0).any(axis=1)
    deepest = max((len(p) for p in world.tree.paths), default=0)
    # items: minimums, then surpluses; each measured by GPUs, else by named accelerators, else by CPU and memory
    amounts = np.concatenate([least, surplus])
    exists = np.concatenate([np.ones(size, dtype=np.bool_), has_surplus])
    queue = np.tile(holdings.queue, 2)
    fixed = np.concatenate([holdings.kind == NEVER_TAKEN] * 2)
    is_surplus = np.arange(2 * size) >= size
    priority = np.tile(holdings.priority, 2)
    started = np.tile(np.where(holdings.started < 0, world.now_ms, holdings.started), 2)
    name = np.tile(holdings.rank, 2)
    covered = np.zeros(2 * size, dtype=np.bool_)
    bits = np.zeros(2 * size, dtype=np.int64)
    ancestors = _ancestors(world, deepest)
    for depth in range(deepest - 1, -1, -1):
        owner = np.where(queue >= 0, ancestors[np.maximum(queue, 0), depth], -1)
        order = np.lexsort((name, started, -priority, ~fixed, is_surplus, ~covered, owner))
        within = _inside(world, pool, amounts, owner, order) & exists & (owner >= 0)
        bits |= within.astype(np.int64) << depth
        covered |= within
    inside[0], inside[1] = bits[:size], bits[size:]
    return inside[0], inside[1]


def _ancestors(world: World, deepest: int) -> Ints:
    """[queue, depth from the top] -> queue there, -1 below itself."""
    table = np.full((len(world.tree.queues), max(deepest, 1)), -1, dtype=np.int64)
    for q, path in enumerate(world.tree.paths):
        for depth, above in enumerate(reversed(path)):
            table[q, depth] = above
    return table


def _inside(world: World, pool: int, amounts: Ints, owner: Ints, order: Ints) -> Bools:
    """Which items lie wholly inside their owner's guarantee when it is filled in the given order."""
    result = np.zeros(len(owner), dtype=np.bool_)
    measures: list[list[int]] = [[GPU_COLUMN], [CPU_COLUMN, CPU_COLUMN + 1]]
    named_columns = world.snapshot.resources.named()
    measures += [[c] for c in named_columns]
    named_use = (amounts[:, named_columns] > 0).any(axis=1)
    for columns in measures:
        if columns == [GPU_COLUMN]:
            chosen = amounts[:, GPU_COLUMN] > 0
        elif columns[0] == CPU_COLUMN:
            chosen = (amounts[:, GPU_COLUMN] == 0) & ~named_use
        else:
            chosen = (amounts[:, GPU_COLUMN] == 0) & (amounts[:, columns[0]] > 0)
        picked = order[chosen[order] & (owner[order] >= 0)]
        if not len(picked):
            continue
        owners = owner[picked]
        ok = np.zeros(len(picked), dtype=np.bool_)
        first = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        lengths = np.diff(np.append(first, len(picked)))
        judged = np.ones(len(picked), dtype=np.bool_)
        any_named = np.zeros(len(picked), dtype=np.bool_)
        for c in columns:
            running = np.cumsum(amounts[picked, c])
            before = np.repeat(np.where(first > 0, running[first - 1], 0), lengths)
            named = world.tree.named[owners, pool, c]
            judged &= ~named | (running - before <= world.tree.guarantee[owners, pool, c])
            any_named |= named
        ok = judged & any_named
        result[picked] |= ok
    return result
