"""More for its queue: the smallest guarantee that is enough, a limit that does not stand in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from optimus.explaining.suggestion import Idea, Suggestion, first_that_works, tried
from optimus.explaining.trying import Change, Trials
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import CORE_RESOURCES, GPU, PoolQuota, Queue, Quota
from optimus.model.reasons import Code, Reason
from optimus.model.units import format_gpu, format_resource
from optimus.model.workloads import ANY_POOL

POOLS = 3
"""So many are tried, those it prefers first."""
WHOLE = 1000


def more_guarantee(trials: Trials) -> list[Suggestion]:
    """In each pool it may use, the smallest that works. Nothing is suggested that the pool could not keep: all
    guarantees together must fit it."""
    state = trials.engine.state
    queue = state.queues.get(trials.workloads()[0].queue)
    if queue is None:
        return []
    found: list[Suggestion] = []
    for pool in _pools(trials)[:POOLS]:
        steps = _steps(state.queues, queue, pool, _capacity(trials, pool))
        now = quota_of(queue, pool)

        def make(more: int, pool: str = pool, now: Quota = now) -> Idea:
            total = now.guarantee + more * WHOLE
            changed = with_quota(queue, pool, structs.replace(now, guarantee=total))
            return _idea("guarantee", queue, pool, now.guarantee, total, changed)

        lowest = first_that_works(trials, steps, make)
        found += [lowest[1]] if lowest else []
    return found


def more_limit(trials: Trials, reason: Reason | None) -> list[Suggestion]:
    """Where a limit is the reason: as much as is asked for."""
    if reason is None or reason.code not in (Code.OVER_LIMIT, Code.ABOVE_LIMIT) or reason.facts["resource"] != GPU:
        return []
    facts = reason.facts
    queue, pool = trials.engine.state.queues[str(facts["queue"])], str(facts["pool"])
    total = int(facts.get("used", 0)) + int(facts["asked"])
    now = quota_of(queue, pool)
    changed = with_quota(queue, pool, structs.replace(now, limit=total))
    return tried(trials, _idea("limit", queue, pool, now.limit or 0, total, changed))


def quota_of(queue: Queue, pool: str) -> Quota:
    return next((one.resources.get(GPU, Quota()) for one in queue.quotas if one.pool == pool), Quota())


def with_quota(queue: Queue, pool: str, quota: Quota) -> Queue:
    mine = next((one for one in queue.quotas if one.pool == pool), PoolQuota(pool=pool))
    changed = structs.replace(mine, resources={**mine.resources, GPU: quota})
    others = {one.pool: one for one in queue.quotas}
    return structs.replace(queue, quotas=tuple({**others, pool: changed}.values()))


def _idea(kind: str, queue: Queue, pool: str, before: int, after: int, changed: Queue) -> Idea:
    where = f" in pool {pool}" if pool != DEFAULT_POOL else ""
    words = f"a {kind} of {format_gpu(after)} GPUs instead of {format_gpu(before)} for queue {queue.name}{where}"
    return Idea(kind, words, written(changed), Change(queues=(changed,)), "queue")


def written(queue: Queue) -> str:
    """All its quotas as a document has them: whoever submits just this loses none of the others."""
    beside = [_resources(one) for one in queue.quotas if one.pool == DEFAULT_POOL and one.resources]
    named = [f"{{name: {one.pool}, {_resources(one)}}}" for one in queue.quotas if one.pool != DEFAULT_POOL]
    return ", ".join([*beside, *([f"pools: [{', '.join(named)}]"] if named else [])])


def _resources(quotas: PoolQuota) -> str:
    core = [f"{name}: {_quota(name, one)}" for name, one in quotas.resources.items() if name in CORE_RESOURCES]
    others = [f"{name}: {_quota(name, one)}" for name, one in quotas.resources.items() if name not in CORE_RESOURCES]
    return ", ".join([*core, *([f"accelerators: {{{', '.join(others)}}}"] if others else [])])


def _quota(resource: str, quota: Quota) -> str:
    limit = None if quota.limit is None else format_resource(resource, quota.limit)
    parts = {
        "guarantee": format_resource(resource, quota.guarantee) if quota.guarantee or limit is None else None,
        "limit": limit,
        "weight": str(quota.weight) if quota.weight != 1 else None,
    }
    return f"{{{', '.join(f'{name}: {value}' for name, value in parts.items() if value is not None)}}}"


def _pools(trials: Trials) -> list[str]:
    asked = trials.workloads()[0].pools
    known = sorted(trials.engine.state.pools)
    return list(dict.fromkeys(pool for one in asked for pool in (known if one == ANY_POOL else [one]) if pool in known))


def _capacity(trials: Trials, pool: str) -> int:
    state = trials.engine.state
    view = next((view for view in state.pool_views if view.pool.name == pool), None)
    nodes = [state.nodes.nodes[row] for row in view.rows.tolist()] if view is not None else []
    return sum(len(node.devices) for node in nodes if node is not None) * WHOLE


def _steps(queues: Mapping[str, Queue], queue: Queue, pool: str, capacity: int) -> range:
    """By how many whole GPUs its guarantee can be raised so that the pool can keep all of them."""
    now = quota_of(queue, pool)
    most = max(capacity - now.guarantee, 0) // WHOLE
    low, high = 0, most
    while low < high:  # the largest that still fits
        middle = (low + high + 1) // 2
        raised = with_quota(queue, pool, structs.replace(now, guarantee=now.guarantee + middle * WHOLE))
        promised = guaranteed({**queues, queue.name: raised}.values(), pool)
        low, high = (middle, high) if promised <= capacity else (low, middle - 1)
    return range(1, low + 1)


def guaranteed(queues: Iterable[Queue], pool: str) -> int:
    """GPU thousandths of the pool that are promised: what a queue guarantees itself, or those below it together."""
    below: dict[str, list[Queue]] = {}
    known = {queue.name: queue for queue in queues}
    for queue in known.values():
        below.setdefault(queue.parent if queue.parent in known else "", []).append(queue)

    def promised(queue: Queue) -> int:
        return max(quota_of(queue, pool).guarantee, sum(map(promised, below.get(queue.name, ()))))

    return sum(map(promised, below.get("", ())))
