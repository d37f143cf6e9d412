"""9. A plan is deterministic and idempotent: the same snapshot gives the same plan, whatever order its facts arrived in;
applying a plan and deciding again with nothing new gives an empty plan. Deciding changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.plans import Plan
from optimus.testing.body import Cycle, PretendBody
from optimus.testing.drawing import Draw
from optimus.testing.worlds import World


class CarefulBody(PretendBody):
    """Decides everything twice, and once more after the plan is counted as done."""

    complaints: list[str]

    def step(self, advance_ms: int) -> Cycle:
        self.complaints = []
        return super().step(advance_ms)

    def decide(self, facts: Sequence[seen.Observation]) -> Plan:
        engine = self.engine
        engine.problems = [p for fact in facts for p in engine.state.apply(fact, self.now_ms)]
        before = fingerprint(engine)
        plan = engine.decide(self.now_ms)
        if fingerprint(engine) != before:
            self.complaints.append("deciding has changed the state")
        if engine.decide(self.now_ms) != plan:
            self.complaints.append("the same snapshot gives two different plans")
        engine.state.assume(plan, self.now_ms)
        again = engine.decide(self.now_ms)
        if again.actions and plan.complete:
            first = "; ".join(describe(action) for action in again.actions[:3])
            self.complaints.append(f"deciding again with nothing new asks for more: {first}")
        return plan


def order_of_facts(world: World) -> list[str]:
    """The same facts in another order give the same plan."""
    plans = []
    for turn in range(3):
        draw = Draw(world.seed, f"order/{turn}")
        engine = Engine(settings=world.settings, seed=world.seed)
        plans.append(engine.step(shuffled(world, draw) if turn else world.observations(), world.now_ms))
    found = []
    for plan in plans[1:]:
        for part in ("actions", "waiting", "reservations", "shares", "conditions", "complete"):
            one, other = getattr(plans[0], part), getattr(plan, part)
            if one != other:
                difference = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), (len(one), len(other)))
                found.append(f"{part} depend on the order of the facts: {difference[0]} or {difference[1]}")
    return found


def shuffled(world: World, draw: Draw) -> list[seen.Observation]:
    """Another order in which the same world could have become known: nodes and workloads before what runs."""
    found: list[seen.Observation] = []
    groups: list[list[seen.Observation]] = [
        [seen.PoolSeen(pool) for pool in world.pools],
        [seen.QueueSeen(queue) for queue in world.queues],
        [seen.NodeSeen(node) for node in world.nodes],
        [seen.WorkloadSeen(workload) for workload in world.workloads],
    ]
    for group in draw.shuffled(groups):
        found += draw.shuffled(group)
    replicas: list[seen.Observation] = [r for rs in world.running.values() for r in rs]
    return found + draw.shuffled(replicas)


def fingerprint(engine: Engine) -> list[Any]:
    """Everything a decision could have changed, as bytes."""
    state = engine.state
    found: list[Any] = [state.version, state.now_ms, sorted(state.rejected.items())]
    for columns in (state.nodes.columns, state.workloads.columns, state.slots.columns):
        for name, value in sorted(vars(columns).items()):
            if isinstance(value, np.ndarray):
                found.append((name, value.tobytes()))
    found += [state.occupancy.used_now.tobytes(), state.occupancy.used_coming.tobytes()]
    found.append([sorted(slots.items()) for slots in state.workloads.slots])
    found.append([sorted(slots.items()) for slots in state.workloads.leaving])
    found.append((list(state.workloads.pending), list(state.workloads.elastic), list(state.slots.devices)))
    found.append((dict(state.history.past_use), sorted(state.queues), sorted(state.pools)))
    return found


def describe(action: Any) -> str:
    return f"{type(action).__name__} {action.workload}"
