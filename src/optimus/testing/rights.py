"""What queues allow, guarantee and protect, worked out from the ledger alone.

Rules, as scheduling.md and the docstrings of `optimus.decide` settle them:
- work that may never be preempted (and the minimum of work whose surplus may) stays inside the guarantee of every
  queue above it that names the resource; its own queue must name what the work is measured by;
- a guarantee is attributed to the work of a queue in this order: what lies inside a guarantee further down, minimums
  before surplus, never-preempted work, higher priority, earlier start, name. Once it is used up, it is used up;
- GPUs count for work that has any, named accelerators for work without, CPU and memory for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optimus.model.queues import CPU, GPU, MEMORY
from optimus.model.workloads import Preemptible, Workload
from optimus.testing.amounts import Amount, measured_by, plus, total
from optimus.testing.gang_rules import minimum_seats
from optimus.testing.ledger import COMING, NOW, Ledger, Record
from optimus.testing.queue_paths import TOP, Tree

Use = dict[tuple[str, str], Amount]
"""(queue, pool) -> amount, each queue with everything below it."""
Fault = tuple[str, str, str, int, int]
"""Queue, pool, resource, in use, allowed."""


def paths(tree: Tree) -> dict[str, list[str]]:
    return {name: tree.path(name) for name in tree.queues}


def queue_use(ledger: Ledger, tree: Tree, view: str) -> Use:
    return ledger.queue_use(paths(tree), view)


def limits_broken(use: Use, tree: Tree) -> dict[tuple[str, str, str], int]:
    """(queue, pool, resource) -> by how much its limit is exceeded."""
    found = {}
    for (queue, pool), amount in use.items():
        for resource, number in amount.items():
            limit = tree.limit(queue, pool, resource)
            if limit is not None and number > limit:
                found[queue, pool, resource] = number - limit
    return found


def limit_faults(ledger: Ledger, tree: Tree, queue: str) -> list[Fault]:
    """Limits that are broken in the queue or above it."""
    above = set(tree.path(queue))
    found: list[Fault] = []
    for view in (NOW, COMING):
        use = queue_use(ledger, tree, view)
        for name, pool, resource in limits_broken(use, tree):
            if name in above:
                limit = tree.limit(name, pool, resource) or 0
                found.append((name, pool, resource, use[name, pool][resource], limit))
    return found


# -- work that must stay inside the guarantee ---------------------------------------------------------------------


def least_replicas(record: Record) -> list[Amount]:
    """What the minimum of a workload takes, as far as it is there; the surplus is what comes after it."""
    wanted: dict[str, int] = {}
    for seat in minimum_seats(record.spec.gang):
        wanted[seat.role] = wanted.get(seat.role, 0) + 1
    found = []
    for role, count in wanted.items():
        mine = sorted((o, r) for (name, o), r in record.live.items() if name == role)
        found += [replica.amount for _, replica in mine[:count]]
    return found


def fixed_amount(record: Record) -> Amount:
    """What of it must stay inside the guarantee."""
    if record.spec.preemptible is Preemptible.NO:
        return record.amount(COMING)
    if record.spec.preemptible is Preemptible.SURPLUS:
        return total(least_replicas(record))
    return {}


def fixed_use(ledger: Ledger, tree: Tree) -> Use:
    found: Use = {}
    for record in ledger.records.values():
        amount = fixed_amount(record) if not record.ended else {}
        pool = record.pool(ledger)
        for queue in tree.path(record.spec.queue) if amount and pool is not None else ():
            plus(found.setdefault((queue, str(pool)), {}), amount)
    return found


def binding(tree: Tree, queue: str, pool: str, amount: Amount) -> list[tuple[str, str]]:
    """(queue, resource) where a guarantee binds never-preempted work of this amount."""
    found = []
    for level, name in enumerate(tree.path(queue)):
        for resource, number in amount.items():
            named = tree.is_named(name, pool, resource)
            if level == 0 and not named and resource in measured_by(amount):
                named = resource not in (CPU, MEMORY) or not tree.names_anything(name, pool)
            if named and number:
                found.append((name, resource))
    return found


def fixed_faults(ledger: Ledger, tree: Tree, workload: Workload) -> list[Fault]:
    """Guarantees that this workload's never-preempted part does not fit into."""
    record = ledger.records[workload.id]
    pool, amount = record.pool(ledger), fixed_amount(record)
    if pool is None:
        return []
    use = fixed_use(ledger, tree)
    found: list[Fault] = []
    for queue, resource in binding(tree, workload.queue, pool, amount):
        number, guarantee = use[queue, pool].get(resource, 0), tree.guarantee(queue, pool, resource)
        if number > guarantee:
            found.append((queue, pool, resource, number, guarantee))
    return found


# -- whom a guarantee protects ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Item:
    """The minimum or the surplus of one workload."""

    record: Record
    amount: Amount
    surplus: bool
    inside: set[str] = field(default_factory=set)
    """Queues whose guarantee covers it."""


def attribute(ledger: Ledger, tree: Tree, pool: str, now_ms: int) -> dict[str, tuple[Item, Item | None]]:
    """Workload -> its minimum and its surplus, each with the queues inside whose guarantee it lies."""
    items: dict[str, tuple[Item, Item | None]] = {}
    for name, record in ledger.records.items():
        if record.ended or not record.live or record.pool(ledger) != pool:
            continue
        least = total(least_replicas(record))
        surplus = {r: n for r, n in plus(record.amount(COMING), least, -1).items() if n}
        items[name] = (Item(record, least, surplus=False), Item(record, surplus, surplus=True) if surplus else None)
    everything = [item for pair in items.values() for item in pair if item is not None]
    for queue in tree.bottom_up():
        below = set(tree.below(queue))
        mine = [item for item in everything if item.record.spec.queue in below]
        mine.sort(key=lambda item: _place_in_line(item, tree, now_ms))
        _cover(mine, tree, queue, pool)
    return items


def _place_in_line(item: Item, tree: Tree, now_ms: int) -> tuple[bool, bool, bool, int, int, str]:
    spec = item.record.spec
    started = now_ms if item.record.started_ms is None else item.record.started_ms
    never = spec.preemptible is not Preemptible.NO
    return (not item.inside, item.surplus, never, -tree.priority(spec), started, spec.id)


def _cover(mine: list[Item], tree: Tree, queue: str, pool: str) -> None:
    used: dict[str, Amount] = {}
    for item in mine:
        resources = measured_by(item.amount)
        kind = "gpu" if GPU in resources else "cpu" if CPU in resources else "named"
        so_far = plus(used.setdefault(kind, {}), {r: item.amount.get(r, 0) for r in resources})
        named = [r for r in resources if tree.is_named(queue, pool, r)]
        within = [so_far[r] <= tree.guarantee(queue, pool, r) for r in named]
        if named and (all(within) if kind != "named" else any(within)):
            item.inside.add(queue)


# -- who may take from whom ---------------------------------------------------------------------------------------


def sides(tree: Tree, asker: str, victim: str) -> tuple[str, str] | None:
    """The two children of the lowest common ancestor, the asker's first; None inside one queue, or where one of the
    two is above the other (work that was moved to an inner queue)."""
    up, other = tree.path(asker), tree.path(victim)
    if not up or not other or asker in other or victim in up:
        return None
    common = next((queue for queue in up if queue in other), TOP)
    own = next(queue for queue in up if tree.queues[queue].parent == common)
    theirs = next(queue for queue in other if tree.queues[queue].parent == common)
    return own, theirs


def measures(tree: Tree, queue: str, pool: str, amount: Amount) -> list[str]:
    """Of several things the work is measured by, those that the queue names; all of them where it names none."""
    found = measured_by(amount)
    return [r for r in found if tree.is_named(queue, pool, r)] or found


def inside_guarantees(tree: Tree, use: Use, queue: str, upto: str, pool: str, amount: Amount) -> bool:
    """Whether every queue from this one up to `upto` stays inside its guarantee with the amount added."""
    for name in tree.path(queue):
        used = use.get((name, pool), {})
        for resource in measures(tree, name, pool, amount):
            if used.get(resource, 0) + amount.get(resource, 0) > tree.guarantee(name, pool, resource):
                return False
        if name == upto:
            return True
    return upto == TOP


def protection(tree: Tree, item: Item, side: str) -> str | None:
    """The queue, from the work's own up to the side, whose guarantee covers it."""
    path = tree.path(item.record.spec.queue)
    reach = path[: path.index(side) + 1]
    return next((queue for queue in reach if queue in item.inside), None)


def needed_runtime_ms(tree: Tree, queue: str, *, reclaim: bool) -> int:
    """The nearest queue that says something counts."""
    for name in tree.path(queue):
        policy = tree.queues[name].policy
        needed = policy.min_runtime_before_reclaim_ms if reclaim else policy.min_runtime_before_preempt_ms
        if needed:
            return needed
    return 0


def ran_long_enough(tree: Tree, record: Record, now_ms: int, *, reclaim: bool) -> bool:
    if record.started_ms is None:
        return True  # nothing runs yet
    return now_ms - record.started_ms >= needed_runtime_ms(tree, record.spec.queue, reclaim=reclaim)
