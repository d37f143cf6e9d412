"""Adapting work: steps of a batch size that the job changes as it learns.

    GNS         the batch doubles at given epochs, as the gradient noise falls
    Accordion   the first batch in epochs that are critical for what is learned, the largest in all others

A larger batch means fewer steps for the same epochs, each slower, and together faster. A job sees at the end of a round
that a change is due, and has made it at the end of the next one in which it runs; an epoch that was begun then counts
as done, and the number of epochs stays. Source: Zheng et al., NSDI'23, and its artifact.
"""

from __future__ import annotations

import math

from msgspec import Struct, structs

from optimus.drivers.sim.works import Progress, Spread

LOOK_MS = 120_000
"""The rounds of the artifact: without rounds, a job makes its changes after this time."""


class Change(Struct, frozen=True, kw_only=True):
    """When a job wants which batch size."""

    most: int
    """The largest batch size."""
    doublings: tuple[int, ...] = ()
    """GNS: epochs from which the batch is twice as large as before."""
    critical: tuple[tuple[int, int], ...] | None = None
    """Accordion: epochs (from, up to) with the first batch; None: it is not Accordion."""

    def wanted(self, first: int, now: int, epoch: int) -> int:
        if self.critical is not None:
            return first if any(start <= epoch < end for start, end in self.critical) else self.most
        due = min(first * 2 ** sum(epoch + 1 >= start for start in self.doublings), self.most)
        return min(2 * now, self.most) if due > now else now


class Adapting(Struct, frozen=True, kw_only=True):
    steps: int
    """With the first batch size."""
    batch: int
    samples: int
    """Of an epoch."""
    rates: dict[int, float]
    """Steps in a second by batch size, with the GPUs asked for."""
    change: Change | None = None
    undisturbed_ms: float = 0.0

    def begin(self) -> Progress:
        return AdaptingProgress(self)

    def ideal_ms(self) -> float:
        return self.undisturbed_ms


def adapting(work: Adapting) -> Adapting:
    """With the time it takes undisturbed."""
    progress = AdaptingProgress(work)
    passed = 0.0
    while not progress.over:
        ms = min(progress.left_ms(), LOOK_MS)
        progress.pass_ms(ms)
        passed += ms
    return structs.replace(work, undisturbed_ms=passed)


class AdaptingProgress:
    __slots__ = ("_batch", "_done", "_due", "_slowed", "_steps", "_work", "measures", "over", "over_ago_ms", "rounds")

    def __init__(self, work: Adapting) -> None:
        self._work = work
        self._batch = work.batch
        self._steps = float(work.steps)
        self._done = 0.0
        self._due: int | None = None
        """The batch size that it is about to change to."""
        self._slowed = 1.0
        self.over = False
        self.measures = False
        self.over_ago_ms = 0.0
        self.rounds = work.change is not None

    @property
    def steps_per_s(self) -> float:
        return self._work.rates[self._batch]

    def moved(self, spread: Spread) -> None:
        self._slowed = spread.slowed

    def pass_ms(self, ms: float) -> None:
        rate = self.steps_per_s * self._slowed / 1000
        self._done += ms * rate
        if self._done >= self._steps - 1e-6:
            self.over = True
            self.over_ago_ms = max(self._done - self._steps, 0.0) / rate
            return
        if self._due is not None:
            self._turn_to(self._due)
        if self._work.change is not None:
            wanted = self._work.change.wanted(self._work.batch, self._batch, self._epochs(self._done))
            self._due = wanted if wanted != self._batch and wanted in self._work.rates else None

    def _turn_to(self, batch: int) -> None:
        epochs, begun = self._epochs(self._steps), self._epochs(self._done)
        scaled = math.ceil(self._steps * self._batch / batch)
        self._batch, self._due = batch, None
        self._steps = float(scaled if self._epochs(scaled) == epochs else epochs * self._per_epoch)
        self._done = min(float(begun * self._per_epoch), self._steps)

    @property
    def _per_epoch(self) -> int:
        return math.ceil(self._work.samples / self._batch)

    def _epochs(self, steps: float) -> int:
        return math.ceil(steps / self._per_epoch - 1e-9)

    def left_ms(self) -> float:
        left = (self._steps - self._done) / (self.steps_per_s * self._slowed) * 1000
        return left if self._work.change is None else min(left, LOOK_MS)

    def done(self) -> float:
        return min(self._done / self._steps, 1.0)

    def back_to(self, done: float) -> None:
        self._done = done * self._steps

    def speedup_percent(self) -> tuple[int, ...] | None:
        return None
