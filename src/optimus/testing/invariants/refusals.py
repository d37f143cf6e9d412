"""4. A workload that fits capacity and quota, at the head of an otherwise empty queue, is never refused; identical
workloads get the same answers in any order of submission.

Checked for more than the head: when a complete plan leaves a workload waiting although the room that the plan itself
leaves is enough for it, and no reservation of another stands in its way, something was refused for nothing; unless it
waits by choice, for a time on faster devices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from msgspec import structs

from optimus.engine.engine import Engine
from optimus.model.plans import Budget, Drop, Evict, Grow, Hold, Plan, Reject, Shrink, Start
from optimus.model.reasons import Code
from optimus.testing.body import MILD, Cycle, PretendBody
from optimus.testing.drawing import Draw
from optimus.testing.queue_paths import Tree
from optimus.testing.seats import fits, is_counted
from optimus.testing.spaces import Spaces, starting_spaces
from optimus.testing.waiting import listed_pools, quota_allows, standing_refusal, waits_for_speed
from optimus.testing.worlds import World

RESERVED = (Code.RESERVED, Code.RESERVED_FOR_OTHER)
SAME = 4


def never_refused(cycle: Cycle) -> list[str]:
    if not cycle.plan.complete:
        return []
    tree = Tree(cycle.after.queues)
    touched = {action.workload for action in cycle.plan.actions}
    reserved = {reservation.pool for reservation in cycle.plan.reservations}
    times = {reservation.workload: reservation for reservation in cycle.plan.reservations}
    rooms: dict[str, Spaces] = {}
    found = []
    for wait in cycle.plan.waiting:
        record = cycle.after.records.get(wait.workload)
        if record is None or wait.workload in touched or wait.reason.code in RESERVED:
            continue
        if standing_refusal(cycle.after, tree, record, cycle.now_ms) is not None:
            continue
        alone = len(cycle.plan.waiting) == 1 and not any(r.promises() for r in cycle.after.records.values())
        for pool in listed_pools(cycle.after, record.spec):
            room = rooms.get(pool) or rooms.setdefault(pool, starting_spaces(cycle.after, pool))
            if pool in reserved or not (is_counted(record.spec) or alone):
                continue
            if waits_for_speed(cycle.after, record.spec, times.get(wait.workload), pool):
                continue
            if fits(record.spec, cycle.after.pools[pool], room) and quota_allows(cycle.after, tree, record.spec, pool):
                found.append(
                    f"{wait.workload} waits ({wait.reason.text()}), but pool {pool} has room for it and quota, too"
                )
    return found


def first_in_empty_line(world: World) -> list[str]:
    """Each waiting workload alone with the running work of its world: it starts if it fits."""
    found: list[str] = []
    for workload in world.waiting:
        others = tuple(w for w in world.workloads if w.id in world.running)
        alone = replace(world, workloads=(*others, workload), later=(), budget=Budget())
        cycle = PretendBody(alone, MILD).step(0)
        found += never_refused(cycle)
    return found


def same_answers_in_any_order(world: World) -> list[str]:
    """A few copies of a waiting workload, submitted in different orders."""
    draw = Draw(world.seed, "copies")
    if not world.waiting:
        return []
    pattern = draw.pick(world.waiting)
    copies = [structs.replace(pattern, id=f"{pattern.namespace}/copy{i}") for i in range(SAME)]
    others = tuple(w for w in world.workloads if w.id in world.running)
    answers = []
    for order in (copies, copies[::-1], draw.shuffled(copies)):
        renamed = [structs.replace(w, submitted_ms=world.now_ms - 1000 + i) for i, w in enumerate(order)]
        plan = _decided(replace(world, workloads=(*others, *renamed), later=()))
        answers.append(_answers(plan, {w.id for w in copies}))
    if all(answer == answers[0] for answer in answers):
        return []
    return [f"{SAME} copies of {pattern.id} get {answers[0]} in one order and {answers[1]} or {answers[2]} in another"]


def _decided(world: World) -> Plan:
    engine = Engine(policy=world.policy, settings=world.settings, seed=world.seed)
    return engine.step(world.observations(), world.now_ms)


def _answers(plan: Plan, names: set[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for action in plan.actions:
        if action.workload in names:
            match action:
                case Start() | Hold():
                    found[f"{type(action).__name__} of {len(action.placements)} in {action.pool}"] += 1
                case Grow() | Shrink() | Evict() | Drop() | Reject():
                    found[type(action).__name__] += 1
    for wait in plan.waiting:
        if wait.workload in names:
            found[str(wait.reason.code)] += 1
    return found
