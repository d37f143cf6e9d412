"""Queues of a random world: trees up to depth four, mostly sensible quotas, and the odd ones that somebody means."""

from __future__ import annotations

from optimus.model.queues import CPU, GPU, MEMORY, PoolQuota, Queue, QueuePolicy, QueueState, Quota, WaitAction
from optimus.testing.amounts import Amount
from optimus.testing.drawing import Draw

MINUTE_MS = 60_000
DEEPEST = 4


def draw_queues(draw: Draw, totals: dict[str, Amount], count: int) -> tuple[Queue, ...]:
    """`totals`: pool -> what it has. Guarantees are cut from the parent's, more or less."""
    parents: dict[str, str] = {}
    depth: dict[str, int] = {"": 0}
    for number in range(count):
        able = [name for name, level in depth.items() if level < DEEPEST]
        parent = "" if number == 0 or draw.chance(35) else draw.pick(able)
        name = f"q{number}"
        parents[name] = parent
        depth[name] = depth[parent] + 1
    strict = draw.chance(70)
    queues: dict[str, Queue] = {}
    for name, parent in parents.items():
        siblings = sum(other == parent for other in parents.values())
        above = queues.get(parent)
        queues[name] = _queue(draw, name, above, totals, siblings, strict=strict)
    if draw.chance(3):
        queues["lost"] = Queue(name="lost", parent="nobody")
    if draw.chance(2):
        queues["ring0"] = Queue(name="ring0", parent="ring1")
        queues["ring1"] = Queue(name="ring1", parent="ring0")
    return tuple(queues.values())


def leaves(queues: tuple[Queue, ...]) -> list[str]:
    inner = {queue.parent for queue in queues}
    return [queue.name for queue in queues if queue.name not in inner]


def _queue(
    draw: Draw, name: str, parent: Queue | None, totals: dict[str, Amount], siblings: int, *, strict: bool
) -> Queue:
    quotas = []
    for pool, amount in totals.items():
        if draw.chance(12):
            continue  # says nothing about this pool
        above = _guarantees(parent, pool) if parent is not None else amount
        resources = {
            GPU: _quota(draw, above.get(GPU, 0), siblings, unit=500 if draw.chance(15) else 1000, strict=strict)
        }
        if draw.chance(15):
            resources[CPU] = _quota(draw, above.get(CPU, amount.get(CPU, 0)), siblings, unit=1000, strict=strict)
            if draw.chance(50):
                resources[MEMORY] = _quota(draw, amount.get(MEMORY, 0), siblings, unit=1024, strict=strict)
        for accelerator in sorted(amount.keys() - {GPU, CPU, MEMORY}):
            if draw.chance(30):
                resources[accelerator] = _quota(draw, amount[accelerator], siblings, unit=1, strict=strict)
        if draw.chance(8):
            del resources[GPU]
        quotas.append(PoolQuota(pool=pool, resources=resources))
    if draw.chance(2):
        quotas.append(PoolQuota(pool="nowhere", resources={GPU: Quota(guarantee=1000)}))
    return Queue(
        name=name,
        parent="" if parent is None else parent.name,
        rank=draw.weighted(((8, 0), (1, 1), (1, -1))),
        quotas=tuple(quotas),
        policy=_policy(draw),
        state=draw.weighted(((36, QueueState.OPEN), (1, QueueState.STOPPED), (1, QueueState.DRAINING))),
        created_ms=draw.between(0, 3),
        namespaces=("team",) if draw.chance(3) else (),
    )


def _guarantees(parent: Queue, pool: str) -> Amount:
    for quota in parent.quotas:
        if quota.pool == pool:
            return {name: entry.guarantee for name, entry in quota.resources.items()}
    return {}


def _quota(draw: Draw, above: int, siblings: int, *, unit: int, strict: bool) -> Quota:
    fair = above // max(1, siblings) // unit
    most = fair if strict and not draw.chance(10) else max(1, above // unit)  # oversubscribed now and then
    guarantee = draw.weighted(((6, most), (2, draw.between(0, most)), (2, 0))) * unit
    limit = None
    if draw.chance(35):
        limit = guarantee + draw.between(0, 4) * unit
        if draw.chance(8):
            limit = draw.between(0, guarantee // unit) * unit  # below the guarantee
    return Quota(guarantee=guarantee, limit=limit, weight=draw.weighted(((2, 0), (6, 1), (2, 3))))


def _policy(draw: Draw) -> QueuePolicy:
    def rarely(percent: int, least: int, most: int) -> int | None:
        return draw.between(least, most) * MINUTE_MS if draw.chance(percent) else None

    return QueuePolicy(
        max_wait_ms=rarely(8, 1, 60),
        max_wait_action=draw.weighted(((3, WaitAction.FIRST), (1, WaitAction.FAIL))),
        max_runtime_ms=rarely(5, 30, 300),
        max_gpu_milli_per_workload=draw.between(1, 6) * 1000 if draw.chance(8) else None,
        allowed_classes=draw.pick((("unattended",), ("unattended", "interactive"))) if draw.chance(5) else (),
        min_runtime_before_preempt_ms=rarely(15, 0, 10) or 0,
        min_runtime_before_reclaim_ms=rarely(15, 0, 10) or 0,
        idle_timeout_ms=rarely(8, 5, 60),
        order=draw.weighted(((12, ""), (2, "fifo"), (1, "shortest-first"), (1, "deadline"))),
        max_priority=draw.pick((50, 120, 200)) if draw.chance(10) else None,
    )
