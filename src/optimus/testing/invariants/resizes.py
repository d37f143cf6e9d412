"""Work that is given another size or place together with others of its queue: it could be stopped and continued, it
keeps at least its minimum in the same plan, what it is told is true, and somebody has something from it."""

from __future__ import annotations

from optimus.model.plans import Evict, Grow, Hold, Shrink, Start
from optimus.model.reasons import Code
from optimus.model.workloads import Preemptible, WorkloadClass
from optimus.testing.body import Cycle
from optimus.testing.gang_rules import faults, is_single_role
from optimus.testing.ledger import Record, Stage
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import ran_long_enough


def wrong_resize(cycle: Cycle, tree: Tree, record: Record, action: Evict | Shrink) -> str | None:
    """What is wrong with it; None if nothing is."""
    spec, after = record.spec, cycle.after.records.get(record.spec.id)
    attended = spec.preemptible is Preemptible.DEFAULT and spec.workload_class is not WorkloadClass.UNATTENDED
    if spec.preemptible in (Preemptible.NO, Preemptible.SURPLUS, Preemptible.LENT) or attended:
        return "it may not be stopped for work that is no more important"
    if spec.checkpoint is None or not is_single_role(spec.gang):
        return "it is not sized: it could not continue, or has several roles"
    if any(replica.stage is not Stage.RUNNING for replica in record.live.values()) or record.leaving:
        return "something of it was still on its way"
    if not ran_long_enough(tree, record, cycle.now_ms, reclaim=False):
        return "it has not run for its minimum time before preemption"
    if after is None or faults(spec.gang, after.present(promised=True)):
        return "it is left with a size that it may not have"
    return _untrue(record, after, action) or _for_nothing(cycle, tree, record, after, action)


def _untrue(record: Record, after: Record, action: Evict | Shrink) -> str | None:
    had, has = len(record.live), len(after.live)
    if action.cause.code is Code.REPACKED:
        return None if had == has else f"it had {had} replicas and has {has}"
    said = action.cause.facts["before"], action.cause.facts["after"]
    return None if said == (had, has) and had != has else f"it had {had} replicas and has {has}, told were {said}"


def _for_nothing(cycle: Cycle, tree: Tree, record: Record, after: Record, action: Evict | Shrink) -> str | None:
    """Who gives something up makes room for others of its queue and priority, or is faster itself."""
    if len(after.live) > len(record.live):
        return None
    spec = record.spec
    for gain in cycle.plan.actions:
        other = cycle.before.records.get(gain.workload)
        if not isinstance(gain, Start | Grow | Hold) or other is None or gain.workload == spec.id:
            continue
        alike = (other.spec.queue, tree.priority(other.spec)) == (spec.queue, tree.priority(spec))
        if alike and len(cycle.after.records[gain.workload].live) > len(other.live):
            return None
    speeds = spec.speedup_percent
    had, has = len(record.live), len(after.live)
    if isinstance(action, Shrink) and had <= len(speeds) and speeds[had - 1] <= speeds[has - 1]:
        return None
    return "nobody of its queue has anything from it"
