"""One world against everything: its life with mishaps, checked step by step, and the stories that only end can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from optimus.testing.body import ROUGH, Cycle, PretendBody
from optimus.testing.drawing import Draw
from optimus.testing.invariants import CYCLE_CHECKS, INVARIANTS, WORLD_CHECKS, CarefulEngine, check_cycle, check_world
from optimus.testing.invariants.violations import Violation
from optimus.testing.worlds import random_world

CYCLES = 14
STEPS_MS = (0, 1_000, 10_000, 30_000, 60_000, 150_000, 600_000, 3_600_000)


def live(seed: int, size: str = "small", cycles: int = CYCLES) -> Iterator[tuple[Cycle, list[Violation]]]:
    """The life of a world with mishaps. Each step comes with what the engine contradicted itself in (invariant 9)."""
    world = random_world(seed, size)
    engine = CarefulEngine(policy=world.policy, settings=world.settings, budget=world.budget, seed=seed)
    body = PretendBody(world, ROUGH, engine=engine)
    draw = Draw(seed, "clock")
    for number in range(cycles):
        cycle = body.step(draw.pick(STEPS_MS) if number else 0)
        yield cycle, [Violation(9, seed, cycle.number, what) for what in engine.complaints]


def examine(seed: int, size: str = "small", invariants: Iterable[int] = INVARIANTS) -> list[Violation]:
    """Everything that is broken in the world of this number."""
    wanted = set(invariants)
    found: list[Violation] = []
    if wanted & (CYCLE_CHECKS.keys() | {9}):
        for cycle, complaints in live(seed, size):
            found += check_cycle(cycle, wanted & CYCLE_CHECKS.keys())
            found += complaints if 9 in wanted else []
    found += check_world(random_world(seed, size), wanted & WORLD_CHECKS.keys())
    return found
