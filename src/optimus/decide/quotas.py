"""What queues allow: limits at every level, and the guarantee for work that may never be preempted."""

from __future__ import annotations

import numpy as np

from optimus.decide.durations import elapsed_ms
from optimus.decide.placement.seating import Seating
from optimus.decide.world import MINIMUM_KEPT, NEVER_TAKEN, World
from optimus.model.queues import GPU, QueueState, WaitAction
from optimus.model.reasons import Code, Reason, reason
from optimus.model.units import format_duration_ms, format_moment_ms
from optimus.model.workloads import Workload, WorkloadClass
from optimus.state.arrays import Bools, Ints
from optimus.state.queue_tree import QueueTree
from optimus.state.resources import GPU_COLUMN

Known = dict[tuple[int, int, str], Reason | None]
"""Answers for (queue, signature, namespace)."""


def standing_refusal(world: World, row: int, known: Known | None = None) -> Reason | None:
    """Why this workload cannot be considered at all, whatever room there is."""
    spec, columns = world.table.specs[row], world.columns
    assert spec is not None
    if spec.suspended:
        return reason(Code.SUSPENDED)
    if spec.obstacle is not None:
        return spec.obstacle
    queue = int(columns.queue[row])
    key = (queue, int(columns.signature[row]), spec.namespace if queue >= 0 else spec.queue)
    if known is None or key not in known:
        refusal = _queue_refusal(world, row, spec, queue)
        if known is not None:
            known[key] = refusal
    else:
        refusal = known[key]
    if refusal is None and columns.retry_at[row] > world.now_ms:
        failure = world.table.failures.get(row, "unknown failure")
        return reason(Code.BACKING_OFF, failure=failure, at=format_moment_ms(int(columns.retry_at[row]), world.now_ms))
    return refusal


def _queue_refusal(world: World, row: int, spec: Workload, queue: int) -> Reason | None:
    tree = world.tree
    if queue < 0:
        problem = tree.problems.get(spec.queue)
        if problem is None:
            return reason(Code.NO_SUCH_QUEUE, queue=spec.queue)
        return reason(Code.QUEUE_INVALID, queue=spec.queue, problem=problem)
    if not tree.is_leaf(queue):
        below = ", ".join(tree.queues[q].name for q in tree.children[queue])
        return reason(Code.QUEUE_NOT_LEAF, queue=spec.queue, children=below)
    for above in tree.paths[queue]:
        entry = tree.queues[above]
        if entry.state is not QueueState.OPEN:
            return reason(Code.QUEUE_STOPPED, queue=entry.name, state=entry.state.value)
        if entry.namespaces and spec.namespace not in entry.namespaces:
            return reason(Code.NAMESPACE_NOT_ALLOWED, namespace=spec.namespace, queue=entry.name)
        refusal = _policy_refusal(world, row, int(above), spec.workload_class)
        if refusal is not None:
            return refusal
    ask = world.ask(row)
    if not ask.pools:
        return reason(Code.NO_SUCH_POOL, pool=ask.unknown_pool or "any")
    return None


def _policy_refusal(world: World, row: int, queue: int, workload_class: WorkloadClass) -> Reason | None:
    entry = world.tree.queues[queue]
    policy = entry.policy
    if policy.allowed_classes and workload_class not in policy.allowed_classes:
        return reason(Code.CLASS_NOT_ALLOWED, queue=entry.name, asked=workload_class.value)
    if policy.max_gpu_milli_per_workload is not None:
        ask = world.ask(row)
        asked = min((int(ask.least_amount(p)[GPU_COLUMN]) for p in ask.pools), default=0)
        if asked > policy.max_gpu_milli_per_workload:
            allowed = policy.max_gpu_milli_per_workload
            return reason(Code.TOO_LARGE_FOR_QUEUE, asked=asked, resource=GPU, queue=entry.name, allowed=allowed)
    return None


def largest_amount(world: World, row: int) -> int | None:
    """GPU thousandths a workload may grow to in its queue; None without such a rule."""
    queue = int(world.columns.queue[row])
    rules = [world.tree.queues[q].policy.max_gpu_milli_per_workload for q in world.tree.paths[queue]]
    return min((rule for rule in rules if rule is not None), default=None)


def over_limit(world: World, queue: int, pool: int, amount: Ints, *, found: bool = False) -> Reason | None:
    """The first queue, from the workload's own upwards, whose limit the amount would break; what is leaving still
    counts until it has left. `found`: the amount is that of seats that were found; on other devices it may be less."""
    if not world.tree.limited[queue]:
        return None
    path = world.tree.paths[queue]
    limit = world.tree.limit[path, pool]
    asked = amount > 0
    used = np.maximum(world.used_coming[path, pool], world.used_now[path, pool])
    broken = (used + amount > limit) & asked
    if not broken.any():
        return None
    alone = (amount > limit) & asked
    if alone.any() and not found:
        level, resource, facts = _first(world, path, pool, alone, amount)
        return reason(Code.ABOVE_LIMIT, limit=int(limit[level, resource]), **facts)
    level, resource, facts = _first(world, path, pool, broken, amount)
    return reason(Code.OVER_LIMIT, limit=int(limit[level, resource]), used=int(used[level, resource]), **facts)


def _first(world: World, path: Ints, pool: int, broken: Bools, amount: Ints) -> tuple[int, int, dict[str, str | int]]:
    """Level and resource of the first rule that is broken, nearest queue first, and what every refusal says of it."""
    level, resource = (int(x) for x in np.argwhere(broken)[0])
    facts: dict[str, str | int] = {
        "queue": world.tree.queues[path[level]].name,
        "pool": world.boards[pool].view.pool.name,
        "resource": world.snapshot.resources.names[resource],
        "asked": int(amount[resource]),
    }
    return level, resource, facts


def limits_allow_now(world: World, queue: int, pool: int, amount: Ints) -> bool:
    """Whether promised room may really be taken: what is coming counts it already."""
    path = world.tree.paths[queue]
    return not ((world.used_now[path, pool] + amount > world.tree.limit[path, pool]) & (amount > 0)).any()


def over_guarantee(world: World, queue: int, pool: int, amount: Ints) -> Reason | None:
    """Work that may never be preempted must stay inside the guarantee at every level that names one.

    The workload's own queue must name one for what it is measured by; a queue above that names nothing says nothing."""
    if not amount.any():
        return None
    path = world.tree.paths[queue]
    binding = bound_columns(world, queue, pool, amount)
    guarantee = world.tree.guarantee[path, pool]
    used = world.fixed[path, pool]
    broken = (used + amount > guarantee) & binding
    if not broken.any():
        return None
    level, resource, facts = _first(world, path, pool, broken, amount)
    named, taken = int(guarantee[level, resource]), int(used[level, resource])
    return reason(Code.GUARANTEE_FULL, guarantee=named, used=taken, **facts)


def bound_columns(world: World, queue: int, pool: int, amount: Ints) -> Bools:
    """[level, resource] where a guarantee binds work of this amount."""
    path = world.tree.paths[queue]
    binding: Bools = world.tree.named[path, pool].copy()
    for column in world.ordering_columns(amount):
        if not binding[0].any() or column == GPU_COLUMN or column > 2:
            binding[0, column] = True
    binding &= amount > 0
    return binding


def breaks_rules(world: World, row: int, seating: Seating, *, grows: bool) -> Reason | None:
    """Limits and guarantee once more, for the very seats that were found: a share that follows from the memory of a
    device can be larger than the least that was asked about before."""
    if not any(seats.shape.request.gpu_memory_mib for seats in seating.seats):
        return None
    queue, amount = int(world.columns.queue[row]), seating.amount()
    refusal = over_limit(world, queue, seating.pool, amount, found=True)
    return refusal or seats_over_guarantee(world, row, seating, grows=grows)


def seats_over_guarantee(world: World, row: int, seating: Seating, *, grows: bool) -> Reason | None:
    """Whether the very seats found would take fixed work out of its guarantee."""
    kind = world.columns.preemptible[row]
    if kind == NEVER_TAKEN or (kind == MINIMUM_KEPT and not grows):
        return over_guarantee(world, int(world.columns.queue[row]), seating.pool, seating.amount())
    return None


def timed_queues(tree: QueueTree) -> frozenset[int]:
    """Queues in which, by their own rules or those above, work may wait or run too long."""
    return frozenset(
        q
        for q, path in enumerate(tree.paths)
        for policy in (tree.queues[above].policy for above in path)
        if policy.max_wait_ms is not None or policy.max_runtime_ms is not None
    )


def waited_too_long(world: World, row: int, action: WaitAction) -> Reason | None:
    """Whether it waited longer than a queue allows, and that queue wants this action; the nearest queue counts."""
    queue = int(world.columns.queue[row])
    waited = world.now_ms - int(world.columns.submitted[row]) - elapsed_ms(world, row)
    for above in world.tree.paths[queue]:
        entry = world.tree.queues[above]
        if entry.policy.max_wait_ms is not None and waited >= entry.policy.max_wait_ms:
            if entry.policy.max_wait_action is not action:
                return None
            return reason(Code.WAITED_TOO_LONG, allowed=format_duration_ms(entry.policy.max_wait_ms), queue=entry.name)
    return None
