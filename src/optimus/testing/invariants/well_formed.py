"""0. What every plan owes its readers: one reason for each workload that waits, in words; shares that add up; and a
form that survives the journal. Work that may not go on is stopped."""

from __future__ import annotations

import msgspec

from optimus.model.plans import Drop, Evict, Grow, Plan, Reject, Shrink, Start
from optimus.model.reasons import SENTENCES
from optimus.testing.body import Cycle
from optimus.testing.fair_shares import Unknown, fair_shares
from optimus.testing.invariants.releases import must_stop
from optimus.testing.ledger import COMING, Ledger
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import queue_use


def well_formed(cycle: Cycle) -> list[str]:
    found = [f"the state could not use a fact: {problem}" for problem in cycle.problems]
    return found + _reasons(cycle) + _stops(cycle) + _contradictions(cycle.plan) + _form(cycle.plan) + _shares(cycle)


def _reasons(cycle: Cycle) -> list[str]:
    found = []
    given: dict[str, int] = {}
    for wait in cycle.plan.waiting:
        given[wait.workload] = given.get(wait.workload, 0) + 1
        if wait.reason.code not in SENTENCES:
            found.append(f"{wait.workload} waits for a reason nobody knows: {wait.reason.code}")
        elif not wait.reason.text() or "{" in wait.reason.text():
            found.append(f"{wait.workload} waits for a reason without words: {wait.reason}")
    refused = {action.workload for action in cycle.plan.actions if isinstance(action, Reject)}
    waiting = {name for name, record in cycle.after.records.items() if record.is_waiting()}
    found += [f"{name} waits without a reason" for name in sorted(waiting - given.keys())]
    found += [f"{name} has {count} reasons" for name, count in given.items() if count > 1]
    found += [f"{name} has a reason to wait, but does not wait" for name in sorted(given.keys() - waiting - refused)]
    for action in cycle.plan.actions:
        cause = getattr(action, "cause", None)
        if cause is not None and (cause.code not in SENTENCES or not cause.text()):
            found.append(f"{action.workload}: a cause without words: {cause}")
    return found


def _stops(cycle: Cycle) -> list[str]:
    tree = Tree(cycle.before.queues)
    stopped = {action.workload for action in cycle.plan.actions if isinstance(action, Evict)}
    found = []
    for name, record in cycle.before.records.items():
        if record.ended or not record.live or name in stopped:
            continue
        code = must_stop(cycle, tree, record)
        if code is not None and name in cycle.after.records and cycle.after.records[name].live:
            found.append(f"{name} must stop ({code}) and is left alone")
    return found


def _contradictions(plan: Plan) -> list[str]:
    """Who begins by a plan is not told to leave by it: a body may have done the one before it reads the other."""
    begun: set[tuple[str, str, int]] = set()
    found = []
    for action in plan.actions:
        if isinstance(action, Start | Grow):
            begun |= {(action.workload, one.role, one.ordinal) for one in action.placements}
        elif isinstance(action, Shrink):
            both = [slot for slot in action.slots if (action.workload, *slot) in begun]
            found += [f"{action.workload}: {role}-{ordinal} begins and is told to leave" for role, ordinal in both]
    return found


def _form(plan: Plan) -> list[str]:
    for name, module in (("json", msgspec.json), ("msgpack", msgspec.msgpack)):
        if module.decode(module.encode(plan), type=Plan) != plan:
            return [f"the plan does not survive {name}"]
    return []


def _shares(cycle: Cycle) -> list[str]:
    """Shares as they were before the plan, or after it has stopped and refused what must not go on."""
    released = cycle.before.copy()
    for action in cycle.plan.actions:
        if isinstance(action, Reject | Drop) or (isinstance(action, Evict | Shrink) and not action.beneficiary):
            released.carry_out_one(action, cycle.now_ms)
    for record in cycle.before.records.values():
        if len({cycle.before.pool_of(r.node) for r in record.live.values()}) > 1:
            return []  # a node was moved to another pool under it: what it counts for is anybody's guess
    try:
        found = _wrong_shares(cycle, cycle.before)
        return found and _wrong_shares(cycle, released)
    except Unknown:
        return []


def _wrong_shares(cycle: Cycle, ledger: Ledger) -> list[str]:
    tree = Tree(ledger.queues)
    shares, demands = fair_shares(ledger, tree, cycle.now_ms)
    use = queue_use(cycle.after, tree, COMING)
    found = []
    said = {(s.queue, s.pool, s.resource): s for s in cycle.plan.shares}
    keys = {k for k, n in shares.items() if n} | {k for k, n in demands.items() if n} | said.keys()
    for queue, pool, resource in sorted(keys):
        entry = said.get((queue, pool, resource))
        numbers = (0, 0, 0) if entry is None else (entry.share, entry.allocated, entry.demand)
        share, demand = shares.get((queue, pool, resource), 0), demands.get((queue, pool, resource), 0)
        expected = (share, use.get((queue, pool), {}).get(resource, 0), demand)
        if numbers != expected:
            found.append(
                f"{queue} in {pool}, {resource}: share, allocated, demand are {expected}, the plan says {numbers}"
            )
    return found[:3]
