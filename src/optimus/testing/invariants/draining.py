"""8. No starvation: with finite work every admitted workload starts in bounded time.

Work arrives, runs for its true duration (again from the beginning where it was stopped without a checkpoint) and ends.
Every workload that could run in the empty cluster, inside its queue's rules, must have started before the bound.
"""

from __future__ import annotations

from msgspec import structs

from optimus.model import observations as seen
from optimus.model.workloads import Workload
from optimus.testing.body import FINITE, Cycle, PretendBody
from optimus.testing.drawing import Draw
from optimus.testing.invariants.steady import timeless
from optimus.testing.ledger import Ledger, Record
from optimus.testing.queue_paths import Tree
from optimus.testing.seats import is_counted
from optimus.testing.waiting import could_ever_run, listed_pools, quota_allows, standing_refusal
from optimus.testing.worlds import World

MINUTE_MS = 60_000
LONGEST_STEP_MS = 20 * MINUTE_MS
MOST_CYCLES = 1_500


def everybody_starts(world: World, *, seen_cycles: list[Cycle] | None = None) -> list[str]:
    world = timeless(world)
    draw = Draw(world.seed, "durations")
    work_ms = {w.id: draw.between(1, 90) * MINUTE_MS for w in (*world.workloads, *world.later)}
    for name, replicas in world.running.items():
        work_ms[name] += max((world.now_ms - (r.since_ms or world.now_ms) for r in replicas), default=0)
    body = PretendBody(world, FINITE, work_ms=work_ms)
    arrivals = [(world.now_ms + draw.between(0, 120) * MINUTE_MS, w) for w in world.later]
    arrivals.sort(key=lambda arrival: (arrival[0], arrival[1].id))
    hopeful = {w.id for w in (*world.workloads, *world.later) if _could_start(world, w)}
    patience = 4 * sum(work_ms.values()) + 24 * 60 * MINUTE_MS
    still = 0
    for _ in range(MOST_CYCLES):
        while arrivals and arrivals[0][0] <= body.now_ms:
            at_ms, workload = arrivals.pop(0)
            body.tell(seen.WorkloadSeen(structs.replace(workload, submitted_ms=at_ms)))
        cycle = body.step(_next_step(body, arrivals))
        if seen_cycles is not None:
            seen_cycles.append(cycle)
        waiting = hopeful - body.first_start_ms.keys()
        if not waiting and not arrivals:
            return []
        idle = not cycle.plan.actions and body.next_event_ms() is None and not arrivals
        still = still + 1 if idle else 0
        if still > 8:
            why = {w.workload: w.reason.text() for w in cycle.plan.waiting}
            return [f"everything stands still while {name} waits: {why.get(name)}" for name in sorted(waiting)]
        if body.now_ms - world.now_ms > patience:
            return [f"{name} has not started within {patience // MINUTE_MS} minutes" for name in sorted(waiting)]
    return [f"not drained after {MOST_CYCLES} cycles: {', '.join(sorted(hopeful - body.first_start_ms.keys()))}"]


def _next_step(body: PretendBody, arrivals: list[tuple[int, Workload]]) -> int:
    moments = [m for m in (body.next_event_ms(), arrivals[0][0] if arrivals else None) if m is not None]
    return min(max(min(moments, default=body.now_ms + LONGEST_STEP_MS) - body.now_ms, 1_000), LONGEST_STEP_MS)


def _could_start(world: World, workload: Workload) -> bool:
    """Alone in its world it would be admitted and fit."""
    ledger = Ledger(world.settings)
    for fact in world.observations():
        if isinstance(fact, seen.NodeSeen | seen.PoolSeen | seen.QueueSeen):
            ledger.observe(fact, world.now_ms)
    tree = Tree(ledger.queues)
    if not is_counted(workload) or standing_refusal(ledger, tree, Record(workload), world.now_ms) is not None:
        return False
    return any(
        could_ever_run(ledger, workload, pool) and quota_allows(ledger, tree, workload, pool)
        for pool in listed_pools(ledger, workload)
    )
