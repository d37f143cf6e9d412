"""Works: how much there is to do, and how fast it goes where.

Why: a result of a simulation is as honest as its model of the jobs. Each model is one small class with its source.
Owns: the truth about jobs, and their progress while they run.
Must not: know who schedules, or what time it is. It is told where the job is and how long it has been there.

    Work (frozen, in the trace) ── begin() ──► Progress (one per simulated job)
                                               moved(spread) · pass_ms(ms) · left_ms() · over
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Spread(Struct, frozen=True):
    """Where a job is, as far as its speed depends on it."""

    per_node: tuple[int, ...]
    """Replicas on each of its nodes, in the order in which the places were given."""
    model: str = ""
    """Of its devices; of the slowest where they differ."""
    racks: int = 1
    slowed: float = 1.0
    """What neighbours leave of its speed: 1 is undisturbed."""

    @property
    def replicas(self) -> int:
        return sum(self.per_node)

    @property
    def nodes(self) -> int:
        return len(self.per_node)


class Progress(Protocol):
    over: bool
    """All work is done."""
    rounds: bool
    """It wants to be looked at in every scheduling round, because what it does next depends on it."""
    measures: bool
    """It learns its own speed while it runs, and tells it."""
    over_ago_ms: float
    """How long before now it was over, where `pass_ms` went beyond its end."""

    def moved(self, spread: Spread) -> None:
        """From now on it runs there."""

    def pass_ms(self, ms: float) -> None:
        """Work at its present place for so long."""

    def left_ms(self) -> float:
        """How long it will go on here until it ends or its speed changes."""

    def done(self) -> float:
        """The part of its work that is done, 0 to 1."""

    def back_to(self, done: float) -> None:
        """Lose what was done since then."""

    def speedup_percent(self) -> tuple[int, ...] | None:
        """What it tells schedulers about its speed by replicas now; None: nothing new."""


class Work(Protocol):
    def begin(self) -> Progress: ...

    def ideal_ms(self) -> float:
        """How long it takes undisturbed, as its owner asked for it (`Job.replicas`). For slowdown, fairness and
        goodput, never for schedulers."""
