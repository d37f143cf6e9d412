"""7. No livelock: with a fixed set of workloads the loop reaches a steady state; no pair of workloads evict each other
in turn.

Where a queue takes turns, an order may change its mind about a pair as they run: one has had more service than the
other by now, or has outlived its estimate. That happens a few times, each turn longer than the last.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from optimus.model.plans import Budget, Evict, Shrink
from optimus.model.reasons import Code
from optimus.testing.body import MILD, Cycle, PretendBody
from optimus.testing.worlds import World

QUIET_CYCLES = 6
QUIET_STEP_MS = 1_200_000
STEP_MS = 60_000


def reaches_steady_state(world: World, *, seen: list[Cycle] | None = None) -> list[str]:
    """Nothing happens but what the plans ask for: plans must become empty, and stay so while hours pass."""
    world = timeless(world)
    body = PretendBody(world, MILD)
    bound = 40 + 6 * len(world.workloads)
    quiet = 0
    last = ""
    pairs: dict[tuple[str, str], int] = {}
    evicted: set[tuple[str, str]] = set()
    for number in range(bound):
        cycle = body.step(0 if number == 0 else QUIET_STEP_MS if quiet else STEP_MS)
        if seen is not None:
            seen.append(cycle)
        quiet = quiet + 1 if not cycle.plan.actions else 0
        last = "; ".join(f"{type(a).__name__} {a.workload}" for a in cycle.plan.actions)
        gone: set[tuple[str, str]] = set()
        for action in cycle.plan.actions:
            if isinstance(action, Evict | Shrink) and action.beneficiary:
                pair = (action.workload, action.beneficiary)
                pairs[pair] = pairs.get(pair, 0) + (pair not in gone)  # replica by replica in one plan is once
                gone.add(pair)
                if isinstance(action, Evict) and action.cause.code is not Code.TURN_OVER:
                    evicted.add(pair)
                    if pair[::-1] in evicted and pair[0] != pair[1]:  # who moves to faster devices does so for itself
                        return [f"{pair[0]} and {pair[1]} evict each other in turn (cycle {cycle.number})"]
                if pairs[pair] > 4:
                    return [f"{pair[0]} gives way to {pair[1]} again and again (cycle {cycle.number})"]
        if quiet >= QUIET_CYCLES and body.next_event_ms() is None:
            return []
    return [f"still busy after {bound} cycles: {last or 'only events of the body are left'}"]


def timeless(world: World) -> World:
    """Without rules that end or refuse work because time passes, and with the usual budget."""
    queues = tuple(
        structs.replace(
            q, policy=structs.replace(q.policy, max_wait_ms=None, max_runtime_ms=None, idle_timeout_ms=None)
        )
        for q in world.queues
    )
    workloads = tuple(structs.replace(w, max_runtime_ms=None) for w in world.workloads)
    later = tuple(structs.replace(w, max_runtime_ms=None) for w in world.later)
    return replace(world, queues=queues, workloads=workloads, later=later, budget=Budget())
