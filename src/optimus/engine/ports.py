"""What a body brings: a clock, facts, and hands. The loop around the engine knows nothing else of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from optimus.model.observations import Observation
from optimus.model.plans import Plan


class Body(Protocol):
    def now_ms(self) -> int:
        """The body's clock: the wall clock, or virtual time."""

    def wait(self, timeout_ms: int) -> Sequence[Observation]:
        """Facts that have come in; returns as soon as there is one, or empty after the time-out."""

    def act(self, plan: Plan) -> None:
        """Begin to carry the plan out. Must not block; what comes of it is observed later."""

    def work_ms(self) -> int:
        """A monotonic stopwatch for measuring the engine's own work; only differences count."""
