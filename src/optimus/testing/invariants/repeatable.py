"""9. A plan is deterministic and idempotent: the same snapshot gives the same plan, whatever order its facts arrived in;
applying a plan and deciding again with nothing new gives an empty plan. Deciding changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.plans import Plan
from optimus.testing.drawing import Draw
from optimus.testing.worlds import World


class CarefulEngine(Engine):
    """Decides everything twice, and once more after the plan is counted as done; `complaints` are of the last step."""

    complaints: list[str]

    def step(self, observations: Sequence[seen.Observation], now_ms: int) -> Plan:
        self.complaints = []
        plan = super().step(observations, now_ms)
        again = super().decide(now_ms)
        if again.actions and plan.complete:
            first = "; ".join(f"{type(action).__name__} {action.workload}" for action in again.actions[:3])
            self.complaints.append(f"deciding again with nothing new asks for more: {first}")
        return plan

    def decide(self, now_ms: int) -> Plan:
        self.state.snapshot(now_ms)  # past use is counted up to now when a snapshot is taken, not by deciding
        before = self.dump()
        plan = super().decide(now_ms)
        if self.dump() != before:
            self.complaints.append("deciding has changed the state")
        if super().decide(now_ms) != plan:
            self.complaints.append("the same snapshot gives two different plans")
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
