"""The loop: drain, apply, snapshot, decide, act. Event-driven with a short debounce, plus a slow tick.

Facts that arrive together are decided together: after the first one the loop listens a little longer. Between steps
it compares the measured time with the target and sets the next budget (`budgets`).
"""

from __future__ import annotations

from collections.abc import Callable

from optimus.engine.budgets import next_budget
from optimus.engine.engine import Engine
from optimus.engine.ports import Body
from optimus.model.observations import Observation

DEBOUNCE_MS = 20
TICK_MS = 10_000
TARGET_STEP_MS = 1_000


def run(
    engine: Engine,
    body: Body,
    *,
    until: Callable[[], bool],
    debounce_ms: int = DEBOUNCE_MS,
    tick_ms: int = TICK_MS,
    target_step_ms: int = TARGET_STEP_MS,
) -> int:
    """Step until told to stop; returns the number of steps."""
    steps = 0
    while not until():
        seen = _gather(body, debounce_ms, tick_ms)
        begun = body.work_ms()
        plan = engine.step(seen, body.now_ms())
        engine.budget = next_budget(engine.budget, plan, body.work_ms() - begun, target_step_ms)
        body.act(plan)
        steps += 1
    return steps


def _gather(body: Body, debounce_ms: int, tick_ms: int) -> list[Observation]:
    seen = list(body.wait(tick_ms))
    if seen and debounce_ms:
        seen.extend(body.wait(debounce_ms))
    return seen
