"""Workloads that wait: which of them could be considered at all, where, and whether there is room for them."""

from __future__ import annotations

from optimus.model.plans import Reservation
from optimus.model.queues import QueueState, WaitAction
from optimus.model.workloads import ANY_POOL, Preemptible, Workload
from optimus.testing.amounts import Amount, plus, replica_amount, shares_on
from optimus.testing.gang_rules import lines, minimum_seats, most_replicas
from optimus.testing.ledger import COMING, NOW, Ledger, Record
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import Use, binding, fixed_use, queue_use
from optimus.testing.seats import fits
from optimus.testing.spaces import empty_spaces


def standing_refusal(ledger: Ledger, tree: Tree, record: Record, now_ms: int) -> str | None:
    """Why the workload cannot be considered whatever room there is; None if it can."""
    spec = record.spec
    path = tree.path(spec.queue)
    if spec.suspended or not path or not tree.is_leaf(spec.queue):
        return "suspended, or no such leaf"
    if record.live or record.leaving or record.ended:
        return "has replicas, promises or is on its way out"
    if record.retry_at_ms > now_ms:
        return "backing off"
    for name in path:
        queue = tree.queues[name]
        if queue.state is not QueueState.OPEN or (queue.namespaces and spec.namespace not in queue.namespaces):
            return "queue closed"
        if queue.policy.allowed_classes and spec.workload_class not in queue.policy.allowed_classes:
            return "class"
        policy = queue.policy
        if policy.max_wait_ms is not None and policy.max_wait_action is WaitAction.FAIL:
            return "may be refused for waiting"
        if policy.max_gpu_milli_per_workload is not None:
            smallest = min((least_amount(ledger, spec, p).get("gpu", 0) for p in listed_pools(ledger, spec)), default=0)
            if smallest > policy.max_gpu_milli_per_workload:
                return "too large for its queue"
    return None


def listed_pools(ledger: Ledger, workload: Workload) -> list[str]:
    """Pools it may use, in no particular order behind `any`."""
    found: list[str] = []
    for name in workload.pools:
        for each in sorted(ledger.pools) if name == ANY_POOL else [name]:
            if each in ledger.pools and each not in found:
                found.append(each)
    return found


def waits_for_speed(ledger: Ledger, workload: Workload, reservation: Reservation | None, pool: str) -> bool:
    """Whether it may leave this pool alone: it runs in any pool, and has a time on faster devices in another."""
    if reservation is None or ANY_POOL not in workload.pools:
        return False
    there, here = _speeds(ledger, workload, reservation.pool), _speeds(ledger, workload, pool)
    return bool(there and here) and max(there) > min(here)


def _speeds(ledger: Ledger, workload: Workload, pool: str) -> set[int]:
    found = set()
    for request in (line.role.request for line in lines(workload.gang).values()):
        speeds = {m.model: m.speed_percent for m in request.models}
        models = {device.model for node in ledger.nodes_of(pool) for device in node.devices}
        found |= {speeds[model] for model in models if model in speeds}
    return found


def least_amount(ledger: Ledger, workload: Workload, pool: str) -> Amount:
    """Of the minimum gang; shares that follow from memory count as on the device where they are smallest."""
    return _amount(ledger, workload, pool, largest=False, at_most=False)


def costliest_amount(ledger: Ledger, workload: Workload, pool: str) -> Amount:
    """Of the minimum gang, with shares as on the device where they are largest."""
    return _amount(ledger, workload, pool, largest=True, at_most=False)


def most_amount(ledger: Ledger, workload: Workload, pool: str) -> Amount:
    """Of the gang at its largest."""
    return _amount(ledger, workload, pool, largest=False, at_most=True)


def _amount(ledger: Ledger, workload: Workload, pool: str, *, largest: bool, at_most: bool) -> Amount:
    counts: dict[str, int] = {}
    for seat in minimum_seats(workload.gang):
        counts[seat.role] = counts.get(seat.role, 0) + 1
    if at_most:
        counts = most_replicas(workload.gang)
    found: Amount = {}
    for role, count in counts.items():
        request = lines(workload.gang)[role].role.request
        shares = [s for node in ledger.nodes_of(pool) for s in shares_on(request, node).values()]
        milli = (max if largest else min)(shares) if shares else request.gpu_milli
        plus(found, replica_amount(request, request.gpu_count, milli), count)
    return found


def could_ever_run(ledger: Ledger, workload: Workload, pool: str) -> bool | None:
    """Whether its minimum fits the pool without any other work; None when that is not known."""
    return fits(workload, ledger.pools[pool], empty_spaces(ledger, pool))


def quota_allows(ledger: Ledger, tree: Tree, workload: Workload, pool: str, *, use: Use | None = None) -> bool:
    """Limits at every level, counting what is leaving, and the guarantee for work that is never preempted."""
    amount = costliest_amount(ledger, workload, pool)
    for view in (NOW, COMING):
        used = queue_use(ledger, tree, view) if use is None else use
        if breaks_limit(tree, used, workload.queue, pool, amount):
            return False
    if workload.preemptible in (Preemptible.NO, Preemptible.SURPLUS):
        fixed = fixed_use(ledger, tree)
        for queue, resource in binding(tree, workload.queue, pool, amount):
            used_there = fixed.get((queue, pool), {}).get(resource, 0)
            if used_there + amount[resource] > tree.guarantee(queue, pool, resource):
                return False
    return True


def breaks_limit(tree: Tree, use: Use, queue: str, pool: str, amount: Amount) -> bool:
    for name in tree.path(queue):
        for resource, number in amount.items():
            limit = tree.limit(name, pool, resource)
            if limit is not None and number and use.get((name, pool), {}).get(resource, 0) + number > limit:
                return True
    return False
