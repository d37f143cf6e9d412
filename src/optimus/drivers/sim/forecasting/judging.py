"""Judging: forecasts of the past beside what came.

Why: a P90 is a promise about nine of ten. Whether it is kept can be counted, and has to be.
Owns: pairing forecasts with true starts, and the count of those that were kept.
Must not: forecast, or leave out what did not go well: work that had not started when the record ends counts as later
than everything forecast before that, and is not judged where the forecast lies beyond.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.forecasting.foreseeing import Forecast
from optimus.drivers.sim.forecasting.widening import Judged, learn_widening

_DRAWS = 2_000


class Kept(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of so many forecasts, the part that started no later than said."""

    forecasts: int
    part: float | None
    low: float | None
    high: float | None
    """95 %, drawn over moments: forecasts of one moment share their fate."""


class Coverage(Struct, frozen=True, kw_only=True, rename="camel"):
    moments: int
    p50: Kept
    p90: Kept
    median_wait_ms: int | None
    """True, from the moment of the forecast to the start."""
    median_p50_ms: int | None
    """Forecast, from the moment."""
    median_p90_ms: int | None
    median_error_ms: int | None
    """Of the P50, early or late alike."""
    loss_ms: int | None
    """Mean pinball loss of both quantiles: less is sharper, and being wide is not free."""


def judge(forecast: Forecast, starts: Mapping[str, Sequence[int]], until_ms: int) -> list[Judged]:
    """`starts`: sorted moments of every start, by workload; nothing is known after `until_ms`."""
    judged = []
    end_ms = forecast.now_ms + forecast.horizon_ms
    for name, quantiles in forecast.quantiles.items():
        times = starts.get(name, ())
        at = bisect_left(times, forecast.now_ms)
        judged.append(
            Judged(
                workload=name,
                at_ms=forecast.now_ms,
                p50_ms=end_ms if quantiles.p50_ms is None else quantiles.p50_ms,
                p90_ms=end_ms if quantiles.p90_ms is None else quantiles.p90_ms,
                started_ms=times[at] if at < len(times) else None,
                seen_until_ms=until_ms,
            )
        )
    return judged


def widened(judged: Sequence[Judged]) -> list[Judged]:
    """The same forecasts, each as wide as those before it would have made it. In order of time."""
    found = []
    learned, learned_at = learn_widening((), 0), -1
    for one in judged:
        if one.at_ms != learned_at:
            learned, learned_at = learn_widening(judged, one.at_ms), one.at_ms
        p50 = learned.moment(one.at_ms, one.p50_ms, learned.p50)
        p90 = max(learned.moment(one.at_ms, one.p90_ms, learned.p90), p50)
        found.append(
            Judged(
                workload=one.workload,
                at_ms=one.at_ms,
                p50_ms=p50,
                p90_ms=p90,
                started_ms=one.started_ms,
                seen_until_ms=one.seen_until_ms,
            )
        )
    return found


def coverage(judged: Sequence[Judged], moment: Sequence[int] = ()) -> Coverage:
    """`moment`: a number for each, the same for those that share their fate; else the time of the forecast."""
    groups = np.array(moment or [one.at_ms for one in judged], np.int64)
    p50 = np.array([_kept(one, one.p50_ms) for one in judged], np.float64)
    p90 = np.array([_kept(one, one.p90_ms) for one in judged], np.float64)
    known = [one for one in judged if one.started_ms is not None]
    return Coverage(
        moments=len(np.unique(groups)),
        p50=_summary(p50, groups),
        p90=_summary(p90, groups),
        median_wait_ms=_median([one.started_ms - one.at_ms for one in known if one.started_ms is not None]),
        median_p50_ms=_median([one.p50_ms - one.at_ms for one in judged]),
        median_p90_ms=_median([one.p90_ms - one.at_ms for one in judged]),
        median_error_ms=_median([abs(one.p50_ms - one.started_ms) for one in known if one.started_ms is not None]),
        loss_ms=_loss(known),
    )


def _kept(one: Judged, said_ms: int) -> float:
    if one.started_ms is None:
        return 0.0 if said_ms <= one.seen_until_ms else float("nan")
    return float(one.started_ms <= said_ms)


def _summary(kept: np.ndarray, groups: np.ndarray) -> Kept:
    known = ~np.isnan(kept)
    kept, groups = kept[known], groups[known]
    if not len(kept):
        return Kept(forecasts=0, part=None, low=None, high=None)
    _, number = np.unique(groups, return_inverse=True)
    right, all_of = np.bincount(number, kept), np.bincount(number)
    lots = np.random.default_rng(0).integers(0, len(all_of), (_DRAWS, len(all_of)))
    parts = right[lots].sum(axis=1) / all_of[lots].sum(axis=1)
    low, high = np.percentile(parts, (2.5, 97.5))
    return Kept(
        forecasts=len(kept),
        part=round(float(kept.mean()), 4),
        low=round(float(low), 4),
        high=round(float(high), 4),
    )


def _loss(known: Sequence[Judged]) -> int | None:
    if not known:
        return None
    true = np.array([one.started_ms for one in known], np.float64)
    total = 0.0
    for part, said in ((0.5, [one.p50_ms for one in known]), (0.9, [one.p90_ms for one in known])):
        off = true - np.array(said, np.float64)
        total += float(np.maximum(part * off, (part - 1) * off).mean())
    return round(total / 2)


def _median(values: Sequence[int]) -> int | None:
    return round(float(np.median(values))) if values else None
