"""The engine of a lead: one that says which facts it cannot take in, and how long its last step took.

Why: a state that failed in the middle of a fact may be half changed, and must not decide. Whose fact it was is known
here, so that the next engine of this lead can do without it (`mirror.put_aside`).
Must not: decide otherwise than any other engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from optimus.engine.engine import Engine
from optimus.model.observations import Observation
from optimus.model.plans import Plan


class Broken(Exception):  # noqa: N818 - what has become of the state
    """The state cannot be used any more; `facts` says what each of these has raised."""

    def __init__(self, facts: list[tuple[Observation, Exception]]) -> None:
        super().__init__(f"{len(facts)} facts could not be taken in, the first one: {facts[0][1]!r}")
        self.facts = facts


class Brain(Engine):
    took_s = 0.0

    def step(self, observations: Sequence[Observation], now_ms: int) -> Plan:
        begun = time.monotonic()
        plan = super().step(observations, now_ms)
        self.took_s = time.monotonic() - begun
        return plan

    def observe(self, observations: Sequence[Observation], now_ms: int) -> None:
        """Raises Broken once all were tried: what is wrong with several is found out at once."""
        self.problems = []
        broken: list[tuple[Observation, Exception]] = []
        for observation in observations:
            try:
                self.problems.extend(self.state.apply(observation, now_ms))
            except Exception as error:  # noqa: BLE001 - whatever it is, one object is its cause
                broken.append((observation, error))
        if broken:
            raise Broken(broken)
