"""Intervals by resampling: how sure a mean difference of paired values is.

Why: a difference without an interval is a story. The same arrivals under two schedulers give pairs, and pairs are drawn
again and again with a seeded generator; the middle 95 % of the means is the interval (percentile bootstrap).
Owns: the two ways to draw. *Over traces*, when there are at least ten: each is one independent trial, and the interval
says what to expect of another trace. *Over jobs*, with fewer: jobs are drawn within their trace; they influence each
other, so the interval only says how evenly the difference is spread over jobs, not that another trace would show it.
Must not: be read as proof when it is over jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.columns import Floats
from optimus.drivers.sim.measuring.spreads import tidy

RESAMPLES = 2000
ENOUGH_TRACES = 10
_PERCENT = (2.5, 97.5)


class Over(StrEnum):
    JOBS = "jobs"
    TRACES = "traces"


class Verdict(StrEnum):
    LESS = "less"  # the whole interval lies below 0
    MORE = "more"
    OPEN = "open"  # the interval holds 0


class Difference(Struct, frozen=True, kw_only=True, rename="camel"):
    """Other minus reference, averaged over pairs; every trace has the same weight. Negative: the other one is lower."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    relative: float | None = None
    """The mean as part of the reference's average: -0.2 is a fifth less. None where that is 0. In the interval every
    draw is taken as part of its own average; where a draw has nothing but zeros, all are taken as part of the whole."""
    relative_low: float | None = None
    relative_high: float | None = None
    pairs: int
    traces: int
    over: Over

    @property
    def verdict(self) -> Verdict:
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return Verdict.OPEN
        return Verdict.LESS if self.high < 0 else Verdict.MORE


def differences(
    reference: Sequence[Floats], other: Sequence[Floats], *, seed: int, resamples: int = RESAMPLES
) -> tuple[Difference, ...]:
    """One pair of tables per trace: a row per job, a column per metric. All metrics see the same draws."""
    used = [(a, b) for a, b in zip(reference, other, strict=True) if len(a)]
    over = Over.TRACES if len(used) >= ENOUGH_TRACES else Over.JOBS
    width = int(reference[0].shape[1])
    if not used:
        return (Difference(pairs=0, traces=0, over=over),) * width
    means = np.array([np.concatenate([a.mean(axis=0), b.mean(axis=0)]) for a, b in used])
    rng = np.random.default_rng(seed)
    drawn = _draw_traces(means, rng, resamples) if over is Over.TRACES else _draw_jobs(used, rng, resamples)
    whole = means.mean(axis=0)
    pairs = sum(len(a) for a, _ in used)
    return tuple(
        _difference(whole[[i, width + i]], drawn[:, [i, width + i]], pairs, len(used), over) for i in range(width)
    )


_NUMBERS = ("mean", "low", "high", "relative", "relative_low", "relative_high")


def _difference(whole: Floats, drawn: Floats, pairs: int, traces: int, over: Over) -> Difference:
    changes = drawn[:, 1] - drawn[:, 0]
    numbers = [whole[1] - whole[0], *np.percentile(changes, _PERCENT)]
    if whole[0] > 0:
        base = drawn[:, 0] if (drawn[:, 0] > 0).all() else whole[0]
        numbers += [(whole[1] - whole[0]) / whole[0], *np.percentile(changes / base, _PERCENT)]
    told = {name: tidy(number) for name, number in zip(_NUMBERS, numbers, strict=False)}
    return Difference(**told, pairs=pairs, traces=traces, over=over)


def _draw_traces(means: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    drawn: Floats = means[rng.integers(0, len(means), (resamples, len(means)))].mean(axis=1)
    return drawn


def _draw_jobs(used: Sequence[tuple[Floats, Floats]], rng: np.random.Generator, resamples: int) -> Floats:
    total = np.zeros((resamples, 2 * used[0][0].shape[1]))
    for a, b in used:
        both, count = np.concatenate([a, b], axis=1), len(a)
        for i in range(resamples):
            times = np.bincount(rng.integers(0, count, count, dtype=np.int32), minlength=count)
            total[i] += times.astype(np.float64) @ both / count
    return total / len(used)
