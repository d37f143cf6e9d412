"""A broken invariant, in words that lead back to the world and the cycle."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: int
    """1 to 9; 0 for a plan that is not well formed."""
    seed: int
    cycle: int
    what: str

    def __str__(self) -> str:
        return f"invariant {self.invariant}, world {self.seed}, cycle {self.cycle}: {self.what}"
