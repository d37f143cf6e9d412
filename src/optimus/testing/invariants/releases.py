"""Work that is stopped, dropped or refused for nobody's sake: the cause must be one that allows it, and be true."""

from __future__ import annotations

from itertools import takewhile

from optimus.model.plans import Drop, Evict, Reject, Shrink
from optimus.model.queues import GPU, QueueState, WaitAction
from optimus.model.reasons import Code
from optimus.model.workloads import OnLoss, Preemptible
from optimus.testing.amounts import plus, total
from optimus.testing.body import Cycle
from optimus.testing.gang_rules import faults, meets_minimum, most_replicas
from optimus.testing.invariants.resizes import wrong_resize
from optimus.testing.ledger import COMING, Key, Ledger, Record, Stage
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import limits_broken, queue_use

FINAL = (Code.RAN_TOO_LONG, Code.IDLE)


def unfounded_stops(cycle: Cycle) -> list[str]:
    found = []
    tree = Tree(cycle.before.queues)
    for action in cycle.plan.actions:
        record = cycle.before.records.get(action.workload)
        if record is None:
            found.append(f"{action.workload} is not there, and the plan says {type(action).__name__}")
            continue
        wrong: str | None = None
        if isinstance(action, Evict | Shrink) and not action.beneficiary:
            wrong = _stop(cycle, tree, record, action)
        elif isinstance(action, Drop):
            wrong = _drop(cycle, record, action)
        elif isinstance(action, Reject):
            wrong = _reject(cycle, tree, record, action)
        if wrong is not None:
            found.append(f"{action.workload}: {type(action).__name__} because of {action.cause.code}, but {wrong}")  # type: ignore[union-attr]
    return found


def must_stop(cycle: Cycle, tree: Tree, record: Record) -> Code | None:
    """Why running work may not go on; None if it may."""
    queues = [tree.queues[name] for name in tree.path(record.spec.queue)]
    if record.spec.suspended:
        return Code.SUSPENDED
    if any(q.state is QueueState.DRAINING for q in queues) and record.spec.preemptible is not Preemptible.NO:
        return Code.QUEUE_DRAINING
    allowed = [q.policy.max_runtime_ms for q in queues if q.policy.max_runtime_ms is not None]
    if record.spec.max_runtime_ms is not None:
        allowed.append(record.spec.max_runtime_ms)
    if allowed and record.elapsed_ms(cycle.now_ms) >= min(allowed):
        return Code.RAN_TOO_LONG
    if record.busy_ms is not None and record.started_ms is not None:
        idle = cycle.now_ms - max(record.busy_ms, record.started_ms)
        if any(q.policy.idle_timeout_ms is not None and idle >= q.policy.idle_timeout_ms for q in queues):
            return Code.IDLE
    return None


def _stop(cycle: Cycle, tree: Tree, record: Record, action: Evict | Shrink) -> str | None:
    code = action.cause.code
    if isinstance(action, Evict) and action.final != (code in FINAL):
        return "it is final" if action.final else "it is not final"
    if code is Code.LIMIT_LOWERED:
        return _limit(cycle, tree, record, action)
    if code is Code.DEVICE_FAILED:
        return None if silent_replicas(cycle.before, record, cycle.now_ms) else "nothing of it is on a failed device"
    if code is Code.SIZE_LOWERED:
        return _size(tree, record)
    if code is Code.ODD_SIZE:
        return None if faults(record.spec.gang, _left(cycle, record, action)) else "its shape is one it may have"
    if code is Code.ABOVE_MAXIMUM:
        most = most_replicas(record.spec.gang)
        extra = [o for role, ordinals in _left(cycle, record, action).items() for o in ordinals if o >= most[role]]
        return None if extra else "it is not above its maximum"
    if code is Code.BELOW_MINIMUM:
        if meets_minimum(record.spec.gang, _left(cycle, record, action)):
            return "it has its minimum"
        grace = record.spec.loss_grace_ms if record.spec.on_loss is OnLoss.REPLACE else 0
        since = cycle.now_ms if record.short_ms is None else record.short_ms
        return None if cycle.now_ms - since >= grace else "its grace is not over"
    if code in (Code.RESIZED, Code.REPACKED):
        return wrong_resize(cycle, tree, record, action)
    if code in (Code.SUSPENDED, Code.QUEUE_DRAINING, *FINAL):
        true_code = must_stop(cycle, tree, record)
        return None if true_code is code else f"what is true is {true_code}"
    return "that is no cause to stop work for nobody"


def _left(cycle: Cycle, record: Record, action: Evict | Shrink) -> dict[str, set[int]]:
    """What is there once places that were never taken, and what stands before in the plan, have been given up."""
    present = record.present()
    for (role, ordinal), replica in record.live.items():
        if replica.stage is Stage.HELD and 0 <= replica.until_ms <= cycle.now_ms:
            present[role].discard(ordinal)
    for earlier in takewhile(lambda each: each is not action, cycle.plan.actions):
        if isinstance(earlier, Drop | Shrink) and earlier.workload == record.spec.id:
            for role, ordinal in earlier.slots:
                present.get(role, set()).discard(ordinal)
    return present


def silent_replicas(ledger: Ledger, record: Record, now_ms: int) -> list[Key]:
    """Started replicas on a device that has been unhealthy for longer than a loss may take."""
    found = []
    for key, replica in record.live.items():
        since = min((ledger.sick_ms.get((replica.node, d), now_ms) for d in replica.devices), default=now_ms)
        is_sick = any((replica.node, d) in ledger.sick_ms for d in replica.devices)
        if is_sick and replica.stage in (Stage.BINDING, Stage.RUNNING) and now_ms - since >= record.spec.loss_grace_ms:
            found.append(key)
    return found


def _size(tree: Tree, record: Record) -> str | None:
    if record.spec.preemptible is Preemptible.NO:
        return "it may never be preempted"
    has = total(r.amount for r in record.live.values()).get(GPU, 0)
    allowed = [tree.queues[name].policy.max_gpu_milli_per_workload for name in tree.path(record.spec.queue)]
    return None if any(a is not None and has > a for a in allowed) else "no queue above it allows less"


def _limit(cycle: Cycle, tree: Tree, record: Record, action: Evict | Shrink) -> str | None:
    """With this one spared and the others gone, a limit above it must still be broken."""
    if record.spec.preemptible is Preemptible.NO:
        return "it may never be preempted"
    use = queue_use(cycle.before, tree, COMING)
    for other in cycle.plan.actions:
        theirs = cycle.before.records.get(other.workload)
        if isinstance(other, Evict | Shrink | Drop) and theirs is not None and other is not action:
            if isinstance(other, Evict | Shrink) and other.beneficiary:
                continue  # decided later
            _give_back(cycle, tree, use, theirs, _keys(theirs, other))
    path = set(tree.path(record.spec.queue))
    mine = total(r.amount for r in record.live.values())
    needed = any(q in path and mine.get(resource) for q, _, resource in limits_broken(use, tree))
    return None if needed else "the limits above it hold without that"


def _keys(record: Record, action: Evict | Shrink | Drop) -> list[Key]:
    return list(record.live) if isinstance(action, Evict) else list(action.slots)


def _give_back(
    cycle: Cycle, tree: Tree, use: dict[tuple[str, str], dict[str, int]], record: Record, keys: list[Key]
) -> None:
    for key in keys:
        replica = record.live.get(key)
        pool = cycle.before.pool_of(replica.node) if replica is not None else None
        for queue in tree.path(record.spec.queue) if pool is not None else ():
            assert replica is not None
            plus(use[queue, str(pool)], replica.amount, -1)


def _drop(cycle: Cycle, record: Record, action: Drop) -> str | None:
    for key in action.slots:
        replica = record.live.get(key)
        if replica is None or replica.stage not in (Stage.PROMISED, Stage.HELD):
            return f"{key} is not merely held"
        if action.cause.code is Code.HOLD_EXPIRED and not 0 <= replica.until_ms <= cycle.now_ms:
            partners = any(0 <= r.until_ms <= cycle.now_ms for r in record.live.values())
            if not partners:
                return f"{key} is held until {replica.until_ms}, and it is {cycle.now_ms}"
    return None


def _reject(cycle: Cycle, tree: Tree, record: Record, action: Reject) -> str | None:
    if action.cause.code is Code.RAN_TOO_LONG:  # its time was over when it lost its last replica
        return None if must_stop(cycle, tree, record) is Code.RAN_TOO_LONG else "it may run longer"
    if action.cause.code is not Code.WAITED_TOO_LONG:
        return "that is no cause to refuse work for good"
    waited = cycle.now_ms - record.spec.submitted_ms
    for name in tree.path(record.spec.queue):
        policy = tree.queues[name].policy
        if (
            policy.max_wait_ms is not None
            and policy.max_wait_action is WaitAction.FAIL
            and waited >= policy.max_wait_ms
        ):
            return None
    return "no queue above it says so"
