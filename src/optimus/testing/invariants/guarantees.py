"""3. Explicitly non-preemptible work stays inside the guarantee at every level; limits hold at every level.

Checked for what a plan admits: work that is outside because somebody lowered a guarantee may stay, it may not grow.
"""

from __future__ import annotations

from optimus.model.plans import Grow, Hold, Start
from optimus.model.workloads import Preemptible
from optimus.testing.body import Cycle
from optimus.testing.ledger import COMING, NOW, Ledger
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import fixed_amount, fixed_faults, limits_broken, queue_use


def inside_guarantees(cycle: Cycle) -> list[str]:
    found = []
    tree = Tree(cycle.before.queues)
    placed = {a.workload for a in cycle.plan.actions if isinstance(a, Start | Grow | Hold)}
    for name in sorted(placed):
        record, old = cycle.after.records.get(name), cycle.before.records.get(name)
        if record is None or old is None:
            continue
        if not tree.path(record.spec.queue):
            found.append(f"{name} gets room, but its queue {record.spec.queue} cannot be used")
            continue
        had = fixed_amount(old)
        more = {r for r, number in fixed_amount(record).items() if number > had.get(r, 0)}
        if record.spec.preemptible is Preemptible.SURPLUS and old.live:
            more = set()  # its minimum was counted before, whole or not
        if record.spec.preemptible in (Preemptible.NO, Preemptible.SURPLUS):
            found += [
                f"{name} ({record.spec.preemptible}) is admitted outside the guarantee of {q}: "
                f"{used} of {allowed} {r} in {p}"
                for q, p, r, used, allowed in fixed_faults(cycle.after, tree, record.spec)
                if r in more
            ]
        found += _limits(cycle.before, cycle.after, tree, name)
    return found


def _limits(before: Ledger, after: Ledger, tree: Tree, name: str) -> list[str]:
    """Limits above a workload that got room: none of them may be broken by it."""
    found = []
    path = set(tree.path(after.records[name].spec.queue))
    for view in (NOW, COMING):
        mine, had = after.records[name].amount(view), before.records[name].amount(view)
        old = limits_broken(queue_use(before, tree, view), tree)
        for (queue, pool, resource), over in limits_broken(queue_use(after, tree, view), tree).items():
            grown = mine.get(resource, 0) > had.get(resource, 0)
            here = after.records[name].pool(after) == pool
            if queue in path and here and grown and over > old.get((queue, pool, resource), 0):
                found.append(f"{name} takes {queue} {over} above its limit of {resource} in {pool} ({view})")
    return found
