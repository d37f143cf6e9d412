"""Steady work: so many milliseconds as asked for, faster or slower on other devices, sizes and spreads.

The model behind traces that only say how long a job ran (Philly, ITP, openb) and behind throughput tables (Gavel,
ElasticFlow, Shockwave, Chronus): a job is an amount of work, and its speed is a product of measured factors.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.drivers.sim.works import Progress, Spread

_DONE = 1e-6
"""Milliseconds that do not matter: what is left of work after sums of floats."""


class Steady(Struct, frozen=True, kw_only=True):
    duration_ms: float
    """On the reference model, with the replicas asked for, on as few nodes as possible."""
    replicas: int = 1
    """Those it was measured with."""
    speed_by_model: dict[str, float] = {}
    """Relative to the reference; a model that is not named runs at 1. 0: it cannot run there."""
    scaling: tuple[float, ...] = ()
    """Speed with 1, 2, 3 … replicas relative to one; empty: only the replicas asked for matter, in proportion."""
    speed_by_nodes: tuple[float, ...] = ()
    """Speed when spread over 1, 2, 3 … nodes; the last one holds for more. Empty: spreading costs nothing."""
    speed_across_racks: float = 1.0
    steps_per_s: float = 1.0
    """At speed 1, where steps were counted."""

    def begin(self) -> Progress:
        return _SteadyProgress(self)

    def ideal_ms(self) -> float:
        return self.duration_ms

    def speed(self, spread: Spread) -> float:
        speed = self.speed_by_model.get(spread.model, 1.0) * spread.slowed
        if spread.replicas != self.replicas:
            speed *= self.scaled(spread.replicas) / self.scaled(self.replicas)
        if self.speed_by_nodes:
            speed *= self.speed_by_nodes[min(spread.nodes, len(self.speed_by_nodes)) - 1]
        if spread.racks > 1:
            speed *= self.speed_across_racks
        return speed

    def scaled(self, replicas: int) -> float:
        if not self.scaling:
            return float(replicas)
        return self.scaling[min(replicas, len(self.scaling)) - 1]


class _SteadyProgress:
    __slots__ = ("_left", "_speed", "_work", "measures", "over", "over_ago_ms", "rounds")

    def __init__(self, work: Steady) -> None:
        self._work = work
        self._left = work.duration_ms
        self._speed = 1.0
        self.over = False
        self.rounds = False
        self.measures = False
        self.over_ago_ms = 0.0

    def moved(self, spread: Spread) -> None:
        self._speed = self._work.speed(spread)

    def pass_ms(self, ms: float) -> None:
        self._left -= ms * self._speed
        if self._left <= _DONE:
            self.over = True
            self.over_ago_ms = max(-self._left / self._speed, 0.0) if self._speed else 0.0

    def left_ms(self) -> float:
        return self._left / self._speed if self._speed > 0 else float("inf")

    def done(self) -> float:
        return 1.0 - max(self._left, 0.0) / self._work.duration_ms if self._work.duration_ms else 1.0

    def back_to(self, done: float) -> None:
        self._left = self._work.duration_ms * (1.0 - done)

    def speedup_percent(self) -> tuple[int, ...] | None:
        return None
