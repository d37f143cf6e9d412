"""One step of the loop: facts in, plan out. Single-threaded; everything it needs is passed in.

The engine owns the state and is the only one to change it. It measures nothing and waits for nothing: a body calls
`step` when it has observations or when a tick is due, and carries out the plan it gets back.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimus.decide.cycle import decide
from optimus.decide.policies import Policy, get
from optimus.model.observations import Observation
from optimus.model.plans import Budget, Plan
from optimus.model.problems import Problem
from optimus.model.settings import Settings
from optimus.state import State

FIRST_TABLES_AFTER = 50
TABLES_EVERY = 200


class Engine:
    def __init__(
        self,
        *,
        policy: Policy | None = None,
        settings: Settings | None = None,
        budget: Budget | None = None,
        seed: int = 0,
    ) -> None:
        self.state = State(settings)
        self.policy = policy or get("default")
        self.budget = budget or Budget()
        self.seed = seed
        self.problems: list[Problem] = []
        """What could not be used of the last step's observations."""

    def step(self, observations: Sequence[Observation], now_ms: int) -> Plan:
        """Apply what was seen, decide, and count the plan as done."""
        self.problems = []
        for observation in observations:
            self.problems.extend(self.state.apply(observation, now_ms))
        plan = self.decide(now_ms)
        self.state.assume(plan, now_ms)
        return plan

    def decide(self, now_ms: int) -> Plan:
        return decide(self.state.snapshot(now_ms), self.policy, now_ms, self.seed, self.budget)
