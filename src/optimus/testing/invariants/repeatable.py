"""9. A plan is deterministic and idempotent: the same snapshot gives the same plan, whatever order its facts came in;
applying a plan and deciding again with nothing new gives an empty plan. Deciding changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from msgspec import structs

from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.plans import Plan
from optimus.testing.drawing import Draw
from optimus.testing.worlds import World


class CarefulEngine(Engine):
    """Decides everything twice (by turns on the same state and on one restored from its dump), and once more after the
    plan is counted as done; `complaints` are those of the last step."""

    complaints: list[str]
    _turn = 0

    def step(self, observations: Sequence[seen.Observation], now_ms: int) -> Plan:
        self.complaints = []
        self._turn += 1
        plan = super().step(observations, now_ms)
        again = super().decide(now_ms)
        if again.actions and plan.complete:
            first = "; ".join(f"{type(action).__name__} {action.workload}" for action in again.actions[:3])
            self.complaints.append(f"deciding again with nothing new asks for more: {first}")
        return plan

    def decide(self, now_ms: int) -> Plan:
        before = self.dump()
        plan = super().decide(now_ms)
        if self.dump() != before:
            self.complaints.append("deciding has changed the state")
        if self._turn % 2:
            twin = Engine(policy=self.policy, settings=self.state.settings, budget=self.budget, seed=self.seed)
            twin.restore(before)
            if (other := twin.decide(now_ms)) != plan:
                self.complaints.append(f"a restored state gives another plan: {_difference(plan, other)}")
        elif (other := super().decide(now_ms)) != plan:
            self.complaints.append(f"the same snapshot gives two different plans: {_difference(plan, other)}")
        return plan


def order_of_facts(world: World) -> list[str]:
    """The same facts in another order give the same plan."""
    plans = []
    for turn in range(3):
        draw = Draw(world.seed, f"order/{turn}")
        engine = Engine(policy=world.policy, settings=world.settings, budget=world.budget, seed=world.seed)
        plans.append(engine.step(shuffled(world, draw) if turn else world.observations(), world.now_ms))
    return [
        f"the plan depends on the order of the facts: {what}"
        for plan in plans[1:]
        if (what := _difference(plans[0], structs.replace(plan, version=plans[0].version)))
    ]


def _difference(one: Plan, other: Plan) -> str:
    """The first thing in which two plans differ; empty if they are equal."""
    for part in structs.fields(Plan):
        mine, theirs = getattr(one, part.name), getattr(other, part.name)
        if mine != theirs:
            if not isinstance(mine, tuple):
                return f"{part.name}: {mine} or {theirs}"
            pairs = zip_longest(mine, theirs, fillvalue="nothing")
            return f"{part.name}: " + next(f"{a} or {b}" for a, b in pairs if a != b)
    return ""


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
