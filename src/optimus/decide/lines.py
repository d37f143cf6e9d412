"""Lines: the order of workloads inside each queue.

Who has waited too long and is to go first, then priority, then the policy's index, then arrival, then name.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from optimus.decide.policies.columns import WorkloadColumns
from optimus.decide.policies.policy import Policy, order_keys, turn_takers, with_order
from optimus.decide.quotas import waited_too_long
from optimus.decide.shares import Shares
from optimus.decide.world import World
from optimus.model.queues import WaitAction
from optimus.state.arrays import Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import size_milli


def line_up(world: World, shares: Shares, rows: Iterable[int]) -> dict[int, list[int]]:
    """Leaf queue -> its workloads, first one first."""
    columns = world.columns
    by_name = np.array(sorted(rows, key=world.table.names.__getitem__), dtype=np.int64)
    lines = [by_name[members] for members in _groups(columns.queue[by_name])]
    by_order: dict[str, list[Ints]] = {}
    for line in lines:
        by_order.setdefault(world.tree.queues[columns.queue[line[0]]].policy.order, []).append(line)
    index = np.zeros(columns.size, dtype=np.int64)
    taking_turns: list[tuple[Policy, Ints]] = []
    world.standing.clear()
    world.turns.clear()
    for order, alike in by_order.items():
        members = np.concatenate(alike)
        policy, condition = with_order(world.policy, order)
        if condition is not None:
            world.conditions.append(condition)
        keys, condition = order_keys(policy, workload_columns(world, shares, members))
        if condition is not None:
            world.conditions.append(condition)
        index[members] = keys
        if policy.turns is not None:
            taking_turns.append((policy, members))
    world.find_standing = partial(_stand, world, shares, taking_turns) if taking_turns else None
    lined_up = {}
    for line in lines:
        queue = int(columns.queue[line[0]])
        in_time = ~np.isin(line, _overdue(world, queue, line))
        # A stable sort: who is equal in everything else stays in the order of names.
        places = np.lexsort((columns.submitted[line], index[line], -columns.priority[line], in_time))
        lined_up[queue] = line[places].tolist()
    return lined_up


def _giving_turns(world: World, waiting: Ints) -> Ints:
    """Running work of their queues that gives its turn to work ahead of it: it can continue where it stopped."""
    columns = world.columns
    runs = (columns.view("started") >= 0) & (columns.view("held") > 0) & (columns.view("alive") > 0)
    able = runs & (columns.view("gives_turns") > 0) & ~world.under_way()
    able &= np.isin(columns.view("queue"), columns.queue[waiting])
    able[list(world.drafts)] = False
    return np.flatnonzero(able)


def _stand(world: World, shares: Shares, lines: list[tuple[Policy, Ints]]) -> None:
    """Find the places in line of those that take turns and, among them, of those that give theirs."""
    for policy, waiting in lines:
        running = _giving_turns(world, waiting)
        if not len(running):
            continue
        rows = np.concatenate((waiting, running))
        seen = workload_columns(world, shares, rows)
        places, condition = order_keys(policy, seen)
        takers, broken = turn_takers(policy, seen)
        world.conditions.extend(told for told in (condition, broken) if told is not None)
        gives = np.arange(len(rows)) >= len(waiting)
        stands = np.flatnonzero(takers | gives)
        world.standing.update(zip(rows[stands].tolist(), places[stands].tolist(), strict=True))
        for group in _groups(world.columns.queue[rows[stands]]):
            members = stands[group]
            giving = np.sort(places[members[gives[members]]])
            behind = len(giving) - np.searchsorted(giving, places[members], side="right")
            world.turns.update(zip(rows[members].tolist(), behind.tolist(), strict=True))


def _overdue(world: World, queue: int, members: Ints) -> list[int]:
    """Those that waited longer than their queue allows, where that puts them first."""
    if all(world.tree.queues[q].policy.max_wait_ms is None for q in world.tree.paths[queue]):
        return []
    return [row for row in members.tolist() if waited_too_long(world, row, WaitAction.FIRST) is not None]


def workload_columns(world: World, shares: Shares, at: Ints) -> WorkloadColumns:
    """What an order sees of these workloads."""
    columns = world.columns
    now = world.now_ms
    passed = np.maximum(now - columns.counted_at[at], 0)
    running = columns.running[at] > 0
    elapsed = columns.elapsed[at] + np.where(running, passed, 0)
    size, mean, high = _worked_out(world, at, elapsed)
    submitted = columns.submitted[at]
    return WorkloadColumns(
        now_ms=now,
        seed=world.seed,
        priority=columns.priority[at],
        submitted_ms=submitted,
        waiting_ms=np.maximum(now - submitted - elapsed, 0),
        size_milli=size,
        attained_gpu_ms=(columns.attained[at] + columns.rate[at] * passed) // 1000,
        elapsed_ms=elapsed,
        expected_ms=columns.expected[at],
        family_mean_ms=mean,
        queue_high_ms=high,
        deadline_ms=columns.deadline[at],
        entitled_milli=shares.share[:, :, GPU_COLUMN].sum(axis=1)[columns.queue[at]],
        restarts=columns.restarts[at],
        is_running=running,
    )


def _worked_out(world: World, at: Ints, elapsed: Ints) -> Ints:
    """Size, mean and high run time of each: found once in a plan, because no plan changes them."""
    known, found = world.line_facts
    new = ~known[at]
    if new.any():
        rows, columns = at[new], world.columns
        known[rows] = True
        found[0, rows] = _sizes(world, columns.signature[rows])
        found[1:, rows] = _from_history(world, columns.family[rows], columns.queue[rows], elapsed[new])
    facts: Ints = found[:, at]
    return facts


def _sizes(world: World, signatures: Ints) -> Ints:
    distinct, of_row = np.unique(signatures, return_inverse=True)
    sizes = np.zeros(len(distinct), dtype=np.int64)
    for i, signature in enumerate(distinct.tolist()):
        ask = world.ask_of_signature(signature)
        amount = ask.least_amount(ask.pools[0])
        sizes[i] = size_milli(int(amount[GPU_COLUMN]), int(amount[CPU_COLUMN]))
    found: Ints = sizes[of_row]
    return found


def _from_history(world: World, families: Ints, queues: Ints, elapsed: Ints) -> tuple[Ints, Ints]:
    """Expected run time of those that ran as long: the mean of the family (of the queue, while the family is new); what
    its runs make likely, once it is well known, and those of the queue for work that names none; and the high quantile
    of the queue."""
    history, names = world.snapshot.history, world.table.families
    mean, high = (np.full(len(elapsed), -1, dtype=np.int64) for _ in range(2))
    for members in _groups(families * (len(world.tree.queues) + 1) + queues):
        family = names[families[members[0]]]
        of_queue = history.by_queue.get(world.tree.queues[queues[members[0]]].name)
        own = history.by_family.get(family) if family else of_queue
        if own is not None and (own.is_well_known() or not family):
            mean[members] = own.efforts_beyond_ms(elapsed[members])
        elif (alike := own or of_queue) is not None:
            mean[members] = alike.means_beyond_ms(elapsed[members])
        highest = of_queue.high_ms() if of_queue is not None else None
        if highest is not None:
            high[members] = highest
    return mean, high


def _groups(keys: Ints) -> list[Ints]:
    """Where the same key is, one array per key."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(keys) else []
