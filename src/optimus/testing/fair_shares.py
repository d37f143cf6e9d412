"""Fair shares worked out slowly: fractions, plain loops, one resource of one pool at a time.

demand   what a queue uses, plus what its waiting work and its elastic work could still use there; a queue above
         has the demands of its children; nowhere more than the limit
first    everybody gets its guarantee, as far as it has demand for it
then     what is left goes to the children of a lower rank first; inside a rank by weight, nobody beyond its demand
rounding to whole units, largest remainder first, older queue (then name) first among equals
"""

from __future__ import annotations

from fractions import Fraction

from optimus.model.queues import QueueState
from optimus.model.workloads import ANY_POOL, Workload
from optimus.testing.amounts import Amount, plus, shares_on
from optimus.testing.gang_rules import is_elastic, lines
from optimus.testing.ledger import COMING, NOW, Ledger
from optimus.testing.queue_paths import TOP, Tree
from optimus.testing.rights import queue_use
from optimus.testing.spaces import total_capacity
from optimus.testing.waiting import could_ever_run, least_amount, listed_pools, most_amount

Shares = dict[tuple[str, str, str], int]
"""(queue, pool, resource) -> amount."""


class Unknown(Exception):  # noqa: N818 - an answer, not a fault
    """A gang whose feasibility was too hard to settle: the shares are not known."""


def fair_shares(ledger: Ledger, tree: Tree, now_ms: int) -> tuple[Shares, Shares]:
    """Shares and demands. Raises `Unknown`."""
    wanted = demands(ledger, tree)
    shares: Shares = {}
    for pool in ledger.pools:
        totals = pool_total(ledger, pool, now_ms)
        for resource in sorted({r for (_, p, r) in wanted if p == pool}):
            _split(tree, wanted, shares, TOP, pool, resource, totals.get(resource, 0))
    return shares, wanted


def pool_total(ledger: Ledger, pool: str, now_ms: int) -> Amount:
    """What there is to share. A node that is not ready counts while work is on it, until its time-out."""
    counted = {}
    for node in ledger.nodes_of(pool):
        age = now_ms - ledger.unready_ms.get(node.name, now_ms)
        busy = any(not replica.done for _, replica in ledger.on_node(node.name, NOW))
        if node.ready or (busy and age < ledger.settings.unready_timeout_ms):
            counted[node.name] = node
    return total_capacity(counted)


def demands(ledger: Ledger, tree: Tree) -> Shares:
    use = queue_use(ledger, tree, COMING)
    found: Shares = {}
    for queue in tree.bottom_up():
        for pool in ledger.pools:
            wanted: Amount = {}
            if tree.is_leaf(queue):
                plus(wanted, use.get((queue, pool), {}))
                plus(wanted, _hopes(ledger, tree, queue, pool))
            for child in tree.children(queue):
                plus(wanted, {r: n for (q, p, r), n in found.items() if (q, p) == (child, pool)})
            for resource, number in wanted.items():
                limit = tree.limit(queue, pool, resource)
                found[queue, pool, resource] = number if limit is None else min(number, limit)
    return found


def _hopes(ledger: Ledger, tree: Tree, queue: str, pool: str) -> Amount:
    """What waiting and elastic work of a queue could use in the pool beyond what it has."""
    wanted: Amount = {}
    for record in ledger.records.values():
        spec = record.spec
        if spec.queue != queue or record.ended:
            continue
        if not record.live:
            if not spec.suspended and not _never_considered(ledger, tree, spec) and home(ledger, spec) == pool:
                plus(wanted, most_amount(ledger, spec, pool))
        elif is_elastic(spec.gang) and record.pool(ledger) == pool:
            have = record.amount(COMING)
            for resource, number in most_amount(ledger, spec, pool).items():
                plus(wanted, {resource: max(0, number - have.get(resource, 0))})
    return wanted


def _never_considered(ledger: Ledger, tree: Tree, spec: Workload) -> bool:
    """Work that its queues do not take at all is no demand."""
    for name in tree.path(spec.queue):
        queue = tree.queues[name]
        if queue.state is not QueueState.OPEN or (queue.namespaces and spec.namespace not in queue.namespaces):
            return True
        if queue.policy.allowed_classes and spec.workload_class not in queue.policy.allowed_classes:
            return True
        most = queue.policy.max_gpu_milli_per_workload
        asked = min((least_amount(ledger, spec, p).get("gpu", 0) for p in listed_pools(ledger, spec)), default=0)
        if most is not None and asked > most:
            return True
    return False


def home(ledger: Ledger, workload: Workload) -> str | None:
    """The first listed pool in which it could ever run; behind `any` the fastest comes first, then by name."""
    order: list[str] = []
    for name in workload.pools:
        if name == ANY_POOL:
            others = [pool for pool in sorted(ledger.pools) if pool not in order]
            order += sorted(others, key=lambda pool: -_speed(ledger, workload, pool))
        elif name in ledger.pools and name not in order:
            order.append(name)
    for pool in order:
        possible = could_ever_run(ledger, workload, pool)
        if possible is None:
            raise Unknown(workload.id)
        if possible:
            return pool
    return None


def _speed(ledger: Ledger, workload: Workload, pool: str) -> int:
    """Of the slowest role on the fastest device it may use."""
    slowest = []
    for line in lines(workload.gang).values():
        request = line.role.request
        by_model = {entry.model: entry.speed_percent for entry in request.models}
        best = 0
        for node in ledger.nodes_of(pool):
            if not request.gpu_count:
                best = 100
            usable = shares_on(request, node)
            for device in node.devices:
                if device.index in usable:
                    best = max(best, by_model[device.model] if by_model else 100)
        slowest.append(best)
    return min(slowest, default=0)


def _split(tree: Tree, wanted: Shares, shares: Shares, parent: str, pool: str, resource: str, total: int) -> None:
    children = sorted(tree.children(parent), key=lambda q: (tree.queues[q].created_ms, q))
    if not children:
        return
    demand = {q: wanted.get((q, pool, resource), 0) for q in children}
    given = {q: min(tree.guarantee(q, pool, resource), demand[q]) for q in children}
    left = total - sum(given.values())
    for rank in sorted({tree.queues[q].rank for q in children}):
        group = [q for q in children if tree.queues[q].rank == rank]
        thirst = {q: demand[q] - given[q] for q in group}
        extra = pour(left, thirst, {q: tree.weight(q, pool, resource) for q in group})
        for queue, number in extra.items():
            given[queue] += number
            left -= number
    for queue in children:
        shares[queue, pool, resource] = given[queue]
        _split(tree, wanted, shares, queue, pool, resource, given[queue])


def pour(total: int, thirst: dict[str, int], weights: dict[str, int]) -> dict[str, int]:
    """Raise everybody's level in proportion to its weight until it has enough or the water is gone."""
    level = {q: Fraction(0) for q in thirst}
    left = Fraction(max(0, total))
    while True:
        open_ones = [q for q in thirst if weights[q] > 0 and level[q] < thirst[q]]
        if not open_ones or left == 0:
            break
        weight = sum(weights[q] for q in open_ones)
        step = min(left / weight, *((thirst[q] - level[q]) / weights[q] for q in open_ones))
        for queue in open_ones:
            level[queue] += step * weights[queue]
        left -= step * weight
    found = {q: int(level[q]) for q in thirst}
    spare = int(sum(level.values())) - sum(found.values())
    by_remainder = sorted(thirst, key=lambda q: -(level[q] - found[q]))  # stable: the older first among equals
    for queue in by_remainder[:spare]:
        found[queue] += 1
    return found
