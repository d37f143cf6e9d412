"""Lives of sample worlds, lived once per process and looked at by every invariant."""

from __future__ import annotations

from functools import cache

from optimus.testing import Cycle, Violation, check_cycle, live

LIVES = range(36)
"""Seeds whose lives with mishaps are checked step by step."""
WORLDS = range(1000, 1024)
"""Seeds of the stories that are told to their end (steady state, draining, order of facts)."""


@cache
def life(seed: int) -> tuple[tuple[Cycle, list[Violation]], ...]:
    return tuple(live(seed))


def broken(seed: int, invariant: int) -> list[str]:
    return [str(violation) for cycle, _ in life(seed) for violation in check_cycle(cycle, (invariant,))]
