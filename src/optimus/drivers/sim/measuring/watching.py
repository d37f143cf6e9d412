"""Watching: a scheduler with an observer beside it, who notes how long it thinks and how scattered the free GPUs are.

Why: records tell what jobs had, not what lay idle on which node, nor what deciding cost.
Owns: a scheduler around a scheduler, and the samples.
Must not: change a decision, or read a clock of its own: who wants decision times passes a timer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.clockwork import Clockwork, News, Scheduler
from optimus.drivers.sim.measuring.columns import Floats
from optimus.drivers.sim.measuring.scattering import Scattering
from optimus.drivers.sim.measuring.spreads import tidy


class Fragments(Struct, frozen=True, kw_only=True, eq=False):
    """One entry per sample."""

    time_ms: Floats
    free_gpus: Floats
    fragment_gpus: Floats
    largest: Floats
    """GPUs of the largest job of the trace that could start at once."""


class Fragmentation(Struct, frozen=True, kw_only=True, rename="camel"):
    """Averages over time, each sample holding until the next one."""

    samples: int
    of_idle: float | None
    """Fragments as part of the free GPUs; only moments with free GPUs count."""
    of_all: float | None
    largest_gpus: float | None


class Watched:
    """Give it to `Clockwork.play` in the place of the scheduler it is made around."""

    def __init__(self, scheduler: Scheduler, *, every_ms: int = 60_000, timer: Callable[[], int] | None = None) -> None:
        """`timer` counts nanoseconds, for example time.perf_counter_ns."""
        self.name = scheduler.name
        self.every_round = scheduler.every_round
        self._scheduler = scheduler
        self._every_ms = every_ms
        self._timer = timer
        self._next_ms = 0
        self._took_ns: list[int] = []
        self._samples: list[tuple[float, float, float, float]] = []

    def open(self, clock: Clockwork) -> None:
        self._scheduler.open(clock)
        self._scattering = Scattering(clock)

    def decide(self, clock: Clockwork, news: News) -> None:
        begun = self._timer() if self._timer else 0
        self._scheduler.decide(clock, news)
        if self._timer:
            self._took_ns.append(self._timer() - begun)
        if clock.now_ms >= self._next_ms and self._scattering.mix.jobs:
            self._next_ms = clock.now_ms + self._every_ms
            self._samples.append((clock.now_ms, *self._scattering.look(clock)))

    def decision_ms(self) -> Floats | None:
        return np.array(self._took_ns, np.float64) / 1e6 if self._timer else None

    def fragments(self) -> Fragments | None:
        if not self._samples:
            return None
        table = np.array(self._samples, np.float64)
        return Fragments(time_ms=table[:, 0], free_gpus=table[:, 1], fragment_gpus=table[:, 2], largest=table[:, 3])


def summarise(fragments: Fragments, gpus: float) -> Fragmentation:
    lengths = np.append(np.diff(fragments.time_ms), 0.0)
    if not lengths.any():
        lengths = np.ones(len(lengths))
    idle = float((fragments.free_gpus * lengths).sum())
    scattered = float((fragments.fragment_gpus * lengths).sum())
    whole = gpus * float(lengths.sum())
    return Fragmentation(
        samples=len(lengths),
        of_idle=tidy(scattered / idle) if idle else None,
        of_all=tidy(scattered / whole) if whole else None,
        largest_gpus=tidy((fragments.largest * lengths).sum() / lengths.sum()),
    )
