"""Why running elastic work is smaller than it could be: the engine is asked on the copy, as it is for starts.

Why: idle GPUs beside a job that could use them look like a fault until somebody says what it waits for.
Owns: which single thing is changed to find the cause: later, without a limit, with a restart that costs nothing.
Must not: repeat a rule of the brain; whatever is said was decided by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from optimus.engine.engine import Engine
from optimus.explaining.quotas import quota_of, with_quota
from optimus.explaining.seen import JobSeen
from optimus.model.gangs import chains
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.observations import Observation, QueueSeen, WorkloadSeen
from optimus.model.plans import Grow, Hold, Plan
from optimus.model.queues import GPU, Queue, QueueState
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.model.units import format_duration_ms
from optimus.model.workloads import Workload

ROUND_MS = 1_000


def could_grow(job: JobSeen) -> bool:
    """Whether there is something to say; of an array every part is a matter of its own."""
    return bool(job.replicas) and not job.counts and len(job.replicas) < job.max_replicas


def why_no_larger(engine: Engine, name: str, now_ms: int) -> Reason | None:
    """Of a workload that runs. None: nothing is known of it here."""
    table = engine.state.workloads
    row = table.row_of.get(name)
    if row is None or not table.slots[row]:
        return None
    spec, columns = table.spec(row), table.columns
    engine.pass_time(now_ms)
    above = list(_above(engine.state.queues, spec.queue))
    closed = next((queue for queue in above if queue.state is not QueueState.OPEN), None)
    if closed is not None:
        return reason(Code.QUEUE_STOPPED, queue=closed.name, state=closed.state.value)
    if size := _size(engine.decide(now_ms), name, int(columns.held[row])):
        return reason(Code.GROWS_NOW, replicas=size)
    settings, started, resized = engine.state.settings, int(columns.started[row]), int(columns.resized[row])
    steps = (settings.sizing_interval_ms, 2 * spec.restart_cost_ms, settings.resize_interval_ms)
    moments = sorted({max(started, resized) + step for step in steps if max(started, resized) + step > now_ms})
    for at_ms in moments if started >= 0 else ():
        if size := _size(engine.decide(at_ms), name, int(columns.held[row])):
            did = "changed its size" if resized > started else "started"
            return reason(
                Code.GROWS_LATER,
                replicas=size,
                wait=_rounded(at_ms - now_ms),
                did=did,
                ago=_rounded(now_ms - max(started, resized)),
            )
    return _cause(engine, spec, row, above, moments[-1] if moments else now_ms)


def _cause(engine: Engine, spec: Workload, row: int, above: list[Queue], at_ms: int) -> Reason | None:
    """What stands in the way once it may change its size again."""
    held = int(engine.state.workloads.columns.held[row])
    pool = sorted(engine.state.pools)[max(int(engine.state.workloads.columns.pool[row]), 0)]
    role = max(chains(spec.gang), key=lambda chain: chain.capacity).role
    each = role.request.gpu_count * min(role.request.gpu_milli, WHOLE_DEVICE_MILLI)
    used = {(s.queue, s.pool): s.allocated for s in engine.decide(at_ms).shares if s.resource == GPU}
    free = _free(engine, pool)
    limits = [(q, limit) for q in above if (limit := quota_of(q, pool).limit) is not None]
    full = next(((q, limit) for q, limit in limits if used.get((q.name, pool), 0) + each > limit), None)
    if full is not None and each:
        unlimited = [with_quota(q, pool, structs.replace(quota_of(q, pool), limit=None)) for q, _ in limits]
        if _tried(engine, map(QueueSeen, unlimited), map(QueueSeen, above), spec.id, held, at_ms):
            queue, limit = full
            facts = {"limit": limit, "used": used.get((queue.name, pool), 0), "asked": each}
            return reason(Code.OVER_LIMIT, queue=queue.name, pool=pool, resource=GPU, **facts)
    cheap = structs.replace(spec, restart_cost_ms=0)
    if size := _tried(engine, [WorkloadSeen(cheap)], [WorkloadSeen(spec)], spec.id, held, at_ms):
        cost = format_duration_ms(spec.restart_cost_ms)
        return reason(Code.NOT_WORTH_IT, replicas=size, cost=cost)
    best = max(free.values(), default=0)
    if each and best < max(role.request.gpu_count, 1):
        node = next((name for name, count in free.items() if count == best), "")
        where = f" on {node}" if best else ""
        asked = counted(role.request.gpu_count, "GPU") if each >= WHOLE_DEVICE_MILLI else "a whole GPU"
        return reason(Code.NO_ROOM, pool=pool, asked=asked, best=f"{counted(best, 'GPU')}{where}")
    return reason(Code.KEPT_FOR_OTHERS, free=counted(sum(free.values()), "GPU"), pool=pool)


def _tried(
    engine: Engine, change: Iterable[Observation], back: Iterable[Observation], name: str, held: int, at_ms: int
) -> int:
    """How large it would become; 0: no larger."""
    now_ms = engine.state.now_ms
    try:
        engine.observe(list(change), now_ms)
        return _size(engine.decide(at_ms), name, held)
    finally:
        engine.observe(list(back), now_ms)


def _size(plan: Plan, name: str, held: int) -> int:
    """What it grows to in this plan: beside what it has, or anew with other seats; 0: it does not."""
    more = sum(
        len(action.placements) for action in plan.actions if isinstance(action, Grow) and action.workload == name
    )
    anew = max((len(a.placements) for a in plan.actions if isinstance(a, Hold) and a.workload == name), default=0)
    size = max(held + more if more else 0, anew)
    return size if size > held else 0


def _above(queues: dict[str, Queue], name: str) -> Iterable[Queue]:
    while name in queues:
        yield queues[name]
        name = queues[name].parent


def _free(engine: Engine, pool: str) -> dict[str, int]:
    """By node of the pool that can be used: whole GPUs that nobody has."""
    state = engine.state
    view = state.pool_views[sorted(state.pools).index(pool)]
    free = (state.nodes.columns.now_gpus[view.rows] >= WHOLE_DEVICE_MILLI).sum(axis=1)
    able = zip(view.rows.tolist(), view.usable.tolist(), free.tolist(), strict=True)
    return {state.nodes.name(node): int(count) for node, usable, count in able if usable}


def _rounded(ms: int) -> str:
    """Whole seconds, never none: for people."""
    return format_duration_ms(max(-(-ms // ROUND_MS) * ROUND_MS, ROUND_MS))
