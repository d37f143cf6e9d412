"""2. A gang starts with at least its minimum, all at once, or not at all; below its minimum it does not keep running.

Also: sizes that are allowed, replicas kept together where a level is required, and every place one that the
description allows (pool, node, taints, selector, device model, health, shares only where devices can be handed out).
"""

from __future__ import annotations

from optimus.model.plans import Drop, Evict, Grow, Hold, Placement, Shrink, Start
from optimus.model.pools import NVLINK_LEVEL
from optimus.model.reasons import Code
from optimus.model.workloads import OnLoss
from optimus.testing.amounts import is_whole, shares_on
from optimus.testing.body import Cycle
from optimus.testing.gang_rules import Togetherness, faults, lines, meets_minimum, togetherness
from optimus.testing.invariants.releases import silent_replicas
from optimus.testing.ledger import Ledger, Record
from optimus.testing.spaces import domain, may_use, request_of
from optimus.testing.waiting import listed_pools


def whole_gangs(cycle: Cycle) -> list[str]:
    found: list[str] = []
    for action in cycle.plan.actions:
        if isinstance(action, Start | Grow | Hold):
            found += _placements(cycle, action)
        if isinstance(action, Start | Grow | Hold) or (isinstance(action, Shrink) and not _is_loss(action)):
            found += _shape(cycle, action.workload)
    found += _stragglers(cycle)
    found += [
        f"{name} {key} goes on, silent, on a failed device"
        for name, record in cycle.after.records.items()
        if not record.ended
        for key in silent_replicas(cycle.after, record, cycle.now_ms)
    ]
    return list(dict.fromkeys(found))


def _is_loss(action: Shrink) -> bool:
    """It names what is lost already; the minimum it may break is looked at like after any other loss."""
    return action.cause.code is Code.DEVICE_FAILED


def _shape(cycle: Cycle, name: str) -> list[str]:
    """What the plan leaves of a gang that it touched."""
    record, old = cycle.after.records.get(name), cycle.before.records.get(name)
    if record is None or old is None:
        return []
    found = []
    gang = record.spec.gang
    was_whole = meets_minimum(gang, old.present(promised=True)) or not old.live
    present, wanted = record.present(), record.present(promised=True)
    is_new = not old.present()
    if is_new and present and not meets_minimum(gang, present):
        found.append(f"{name} starts with {_count(present)} replicas, below its minimum: {faults(gang, present)}")
    if was_whole and wanted:
        before = set(faults(gang, old.present(promised=True))) if old.live else set()
        found += [f"{name} is left in a shape it may not have: {f}" for f in faults(gang, wanted) if f not in before]
    rules = togetherness(gang, wanted)
    earlier = {
        rule.where for rule in togetherness(gang, old.present(promised=True)) if _is_apart(rule, old, cycle.before)
    }
    placed = {
        (p.role, p.ordinal) for a in cycle.plan.actions if a.workload == name for p in getattr(a, "placements", ())
    }
    for rule in rules:
        apart = _is_apart(rule, record, cycle.after)
        if apart and rule.where not in earlier and placed & rule.members:
            found.append(f"{name}: {rule.where} is not in one {rule.level}: {apart}")
    return found


def _is_apart(rule: Togetherness, record: Record, ledger: Ledger) -> str:
    """Where the members are, if that is not one domain of the rule's level; empty if it is."""
    domains: set[object] = set()
    for key in rule.members:
        replica = record.live[key]
        node = ledger.nodes.get(replica.node)
        pool = ledger.pool_of(replica.node)
        if node is None or pool is None:
            continue
        if rule.level != NVLINK_LEVEL:
            domains.add(domain(node, rule.level, ledger.pools[pool]))
            continue
        groups = {
            d.nvlink_group
            for d in node.devices
            if d.index in replica.devices or (replica.devices and not node.assignable)
        }
        domains |= {(node.name, group) for group in groups}
        if not groups:
            domains.add((node.name,))
    if rule.level == NVLINK_LEVEL:  # replicas without devices need only be on the node
        full = {d for d in domains if isinstance(d, tuple) and len(d) == 2}
        bare = {d for d in domains if isinstance(d, tuple) and len(d) == 1}
        if len(full) <= 1 and len({d[0] for d in full | bare}) <= 1:
            return ""
    elif len(domains) == 1 and None not in domains:
        return ""
    return ", ".join(sorted(map(str, domains)))


def _placements(cycle: Cycle, action: Start | Grow | Hold) -> list[str]:
    ledger, name = cycle.before, action.workload
    record = ledger.records.get(name)
    if record is None or record.ended:
        return [f"{name} is unknown or over, and gets room"]
    found = []
    pools = {ledger.pool_of(p.node) for p in action.placements}
    promised = {(r.role, r.ordinal) for r in record.promises()}
    others = {ledger.pool_of(r.node) for r in record.live.values()} if isinstance(action, Grow) else set()
    if len(pools | others) != 1 and len(others) < 2:  # two before: a node was moved to another pool under it
        found.append(f"{name} is spread over pools {sorted(map(str, pools | others))}")
    elif not isinstance(action, Grow) and pools != {action.pool}:
        found.append(f"{name}: the plan says pool {action.pool}, the nodes are in {pools}")
    elif not promised and not record.live and pools.isdisjoint(listed_pools(ledger, record.spec)):
        found.append(f"{name} is put into pool {pools}, which it does not list")
    keys = [(p.role, p.ordinal) for p in action.placements]
    if len(set(keys)) != len(keys):
        found.append(f"{name}: one replica is placed twice in one action")
    for placement in action.placements:
        found += _placement(cycle, record, placement, action, is_kept=(placement.role, placement.ordinal) in promised)
    return found


def _placement(
    cycle: Cycle, record: Record, placement: Placement, action: Start | Grow | Hold, *, is_kept: bool
) -> list[str]:
    ledger = cycle.before
    name, key = record.spec.id, (placement.role, placement.ordinal)
    label = f"{name} {placement.role}/{placement.ordinal}"
    line = lines(record.spec.gang).get(placement.role)
    node = ledger.nodes.get(placement.node)
    if line is None or not 0 <= placement.ordinal < line.capacity():
        return [f"{label}: there is no such replica"]
    if node is None:
        return [f"{label}: there is no node {placement.node}"]
    found = []
    request = line.role.request
    told_to_go = any(isinstance(a, Evict | Shrink | Drop) and a.workload == name for a in cycle.plan.actions)
    if key in record.live and not is_kept and not told_to_go:
        found.append(f"{label} is there already")
    if not isinstance(action, Hold) and key in cycle.after.records[name].leaving:
        found.append(f"{label}: its old replica is still leaving")
    if is_kept:
        if not node.ready or node.cordoned:
            found.append(f"{label}: node {node.name} takes no new work")
        return found
    if not may_use(record.spec, request, node):
        found.append(f"{label}: may not use node {node.name}")
    if len(set(placement.devices)) != request.gpu_count or len(placement.devices) != request.gpu_count:
        found.append(f"{label}: {placement.devices} are not {request.gpu_count} devices")
    shares = shares_on(request, node)
    health = {d.index: d.healthy for d in node.devices}
    for device in placement.devices:
        if device not in shares or not health[device]:
            found.append(f"{label}: device {device} of {node.name} cannot be used")
        elif placement.gpu_milli != shares[device]:
            found.append(f"{label}: takes {placement.gpu_milli} of device {device}, asks for {shares[device]}")
    if placement.exact != node.assignable:
        found.append(f"{label}: exact is {placement.exact} on {node.name}")
    return found + _noise(cycle, record, placement)


def _noise(cycle: Cycle, record: Record, placement: Placement) -> list[str]:
    """Predicted activity on a shared device beyond the pool's bound."""
    pool = cycle.after.pools[str(cycle.after.pool_of(placement.node))]
    request = request_of(record.spec, placement.role)
    if not pool.interference_limit_milli or not request.activity_milli or is_whole(request):
        return []
    found = []
    for device in placement.devices:
        activity = sum(
            request_of(other.spec, replica.role).activity_milli
            for other, replica in cycle.after.on_node(placement.node, "coming")
            if device in replica.devices
        )
        if activity > pool.interference_limit_milli:
            found.append(f"{record.spec.id}: predicted activity {activity} on {placement.node}/{device}")
    return found


def _stragglers(cycle: Cycle) -> list[str]:
    """Gangs below their minimum whose time for replacements is over, and that the plan leaves so."""
    found = []
    for name, record in cycle.after.records.items():
        old = cycle.before.records[name]
        if (
            record.ended
            or old.lost_ms is None
            or not record.present()
            or meets_minimum(record.spec.gang, record.present())
        ):
            continue
        grace = record.spec.loss_grace_ms if record.spec.on_loss is OnLoss.REPLACE else 0
        late = cycle.now_ms - old.lost_ms
        if late >= grace:
            missing = faults(record.spec.gang, record.present())
            found.append(f"{name} goes on below its minimum {late} ms after the loss (grace {grace}): {missing}")
    return found


def _count(present: dict[str, set[int]]) -> int:
    return sum(map(len, present.values()))
