"""Lines: the order of workloads inside each queue.

Who has waited too long and is to go first, then priority, then the policy's index, then arrival, then name.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from functools import partial

import numpy as np

from optimus.decide.policies.columns import WorkloadColumns
from optimus.decide.policies.policy import Policy, order_keys, turn_takers, with_order
from optimus.decide.quotas import waited_too_long
from optimus.decide.shares import Shares
from optimus.decide.world import World
from optimus.model.queues import WaitAction
from optimus.model.workloads import Preemptible, Workload, WorkloadClass
from optimus.state.arrays import Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import size_milli


def line_up(world: World, shares: Shares, rows: Iterable[int]) -> dict[int, list[int]]:
    """Leaf queue -> its workloads, first one first."""
    by_queue: dict[int, list[int]] = {}
    for row in rows:
        by_queue.setdefault(int(world.columns.queue[row]), []).append(row)
    by_order: dict[str, list[int]] = {}
    for queue, members in by_queue.items():
        by_order.setdefault(world.tree.queues[queue].policy.order, []).extend(members)
    index: dict[int, int] = {}
    taking_turns: list[tuple[Policy, list[int]]] = []
    world.standing.clear()
    world.giving_turns.clear()
    for order, members in by_order.items():
        policy, condition = with_order(world.policy, order)
        if condition is not None:
            world.conditions.append(condition)
        keys, condition = order_keys(policy, workload_columns(world, shares, members))
        if condition is not None:
            world.conditions.append(condition)
        index.update(zip(members, keys.tolist(), strict=True))
        if policy.turns is not None:
            taking_turns.append((policy, members))
    world.find_standing = partial(_stand, world, shares, taking_turns) if taking_turns else None
    columns, specs = world.columns, world.table.specs
    ripe = {row for queue, members in by_queue.items() for row in _overdue(world, queue, members)}

    def place(row: int) -> tuple[bool, int, int, int, str]:
        spec = specs[row]
        assert spec is not None
        return (row not in ripe, -int(columns.priority[row]), index[row], int(columns.submitted[row]), spec.id)

    return {queue: sorted(members, key=place) for queue, members in sorted(by_queue.items())}


def _giving_turns(world: World, waiting: list[int]) -> list[int]:
    """Running work of their queues that gives its turn to work ahead of it: it can continue where it stopped."""
    columns = world.columns
    queues = {int(columns.queue[row]) for row in waiting}
    runs = (columns.view("started") >= 0) & (columns.view("held") > 0) & (columns.view("alive") > 0)
    rows = np.flatnonzero(runs & np.isin(columns.view("queue"), sorted(queues))).tolist()
    return [row for row in rows if gives_turns(world.spec(row)) and not world.is_changing(row)]


def gives_turns(spec: Workload) -> bool:
    """Whether it can be stopped and continued for work that is no more important."""
    if spec.checkpoint is None:
        return False
    if spec.preemptible is Preemptible.DEFAULT:
        return spec.workload_class is WorkloadClass.UNATTENDED
    return spec.preemptible is Preemptible.YES


def _stand(world: World, shares: Shares, lines: list[tuple[Policy, list[int]]]) -> None:
    """Find the places in line of those that take turns and, among them, of those that give theirs."""
    for policy, waiting in lines:
        running = _giving_turns(world, waiting)
        if not running:
            continue
        rows = waiting + running
        seen = workload_columns(world, shares, rows)
        places, condition = order_keys(policy, seen)
        takers, broken = turn_takers(policy, seen)
        world.conditions.extend(told for told in (condition, broken) if told is not None)
        for i, (row, place) in enumerate(zip(rows, places.tolist(), strict=True)):
            if i >= len(waiting):
                insort(world.giving_turns.setdefault(int(world.columns.queue[row]), []), place)
            if i >= len(waiting) or takers[i]:
                world.standing[row] = place


def _overdue(world: World, queue: int, members: list[int]) -> list[int]:
    """Those that waited longer than their queue allows, where that puts them first."""
    if all(world.tree.queues[q].policy.max_wait_ms is None for q in world.tree.paths[queue]):
        return []
    return [row for row in members if waited_too_long(world, row, WaitAction.FIRST) is not None]


def workload_columns(world: World, shares: Shares, rows: list[int]) -> WorkloadColumns:
    """What an order sees of these workloads."""
    columns = world.columns
    at = np.array(rows, dtype=np.int64)
    now = world.now_ms
    passed = np.maximum(now - columns.counted_at[at], 0)
    running = columns.running[at] > 0
    elapsed = columns.elapsed[at] + np.where(running, passed, 0)
    size, family, high, entitled = _looked_up(world, shares, rows, elapsed)
    deadlines = [spec.deadline_ms for row in rows if (spec := world.table.specs[row]) is not None]
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
        family_mean_ms=family,
        queue_high_ms=high,
        deadline_ms=np.array([-1 if d is None else d for d in deadlines], dtype=np.int64),
        entitled_milli=entitled,
        restarts=columns.restarts[at],
        is_running=running,
    )


def _looked_up(world: World, shares: Shares, rows: list[int], elapsed: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Size, mean run time of the family, high quantile of the queue and GPUs due: once per distinct case."""
    history = world.snapshot.history
    sizes: dict[int, int] = {}
    means: dict[tuple[str, str, int], int] = {}
    highs: dict[str, int] = {}
    out = np.zeros((4, len(rows)), dtype=np.int64)
    due = shares.share[:, :, GPU_COLUMN].sum(axis=1)
    for i, row in enumerate(rows):
        spec = world.table.specs[row]
        assert spec is not None
        signature = int(world.columns.signature[row])
        if signature not in sizes:
            ask = world.ask_of_signature(signature)
            amount = ask.least_amount(ask.pools[0])
            sizes[signature] = size_milli(int(amount[GPU_COLUMN]), int(amount[CPU_COLUMN]))
        out[0, i] = sizes[signature]
        key = (spec.family, spec.queue, int(elapsed[i]))
        if key not in means:
            times = history.by_family.get(spec.family) if spec.family else None
            times = times or history.by_queue.get(spec.queue)
            mean = times.mean_beyond_ms(key[2]) if times else None
            means[key] = mean if mean is not None else 0 if times else -1  # 0: it outlived all that is known
        out[1, i] = means[key]
        if spec.queue not in highs:
            queue_times = history.by_queue.get(spec.queue)
            high = queue_times.high_ms() if queue_times else None
            highs[spec.queue] = -1 if high is None else high
        out[2, i] = highs[spec.queue]
        out[3, i] = due[int(world.columns.queue[row])]
    return out[0], out[1], out[2], out[3]
