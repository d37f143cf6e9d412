"""Widening: what past forecasts say about how wide the next ones must be.

Why: nobody knows who will come, which job fails, or how odd next week is. How far forecasts were off in the past is the
one honest measure of that.
Owns: the score of a past forecast, and the factors learned from many (split conformal prediction on a ratio).
Must not: see a forecast whose outcome lies after the moment it is used at. What has not come true yet counts as far as
it has come, neither as right nor as wrong.

    score = (true wait + half an hour) / (forecast wait + half an hour)         per quantile
    factor = the quantile of the scores that the forecast claims to be: P50 the median, P90 the 90th of a hundred
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from optimus.drivers.sim.forecasting.lifetimes import Lifetimes

SLACK_MS = 30 * 60_000
"""Half an hour more or less is no error: "at once" that became ten minutes must not stretch "tomorrow" to next week."""
LEAST = 20
"""Outcomes before they are believed."""
LAST = 100
"""Forecasts that are looked at; how crowded it is changes by the day."""
MOST = 4.0
"""A wider range helps nobody, and a narrower one than by this is luck."""


class Judged(Struct, frozen=True, kw_only=True):
    """A forecast of the past, and what came of it."""

    workload: str
    at_ms: int
    p50_ms: int
    """Moments; where it said "not before the horizon", the horizon."""
    p90_ms: int
    started_ms: int | None = None
    """None: it still waits, or was taken away before it could start."""
    seen_until_ms: int
    """Of one that has not started: it was still waiting then."""


class Widening(Struct, frozen=True, kw_only=True):
    """Factors on the time from now to the quantile; 1 leaves it as it was drawn."""

    p50: float = 1.0
    p90: float = 1.0
    outcomes: int = 0
    """Forecasts it was learned from."""

    def moment(self, now_ms: int, quantile_ms: int, factor: float) -> int:
        return now_ms + max(round((quantile_ms - now_ms + SLACK_MS) * factor) - SLACK_MS, 0)


def learn_widening(judged: Iterable[Judged], now_ms: int) -> Widening:
    """What was known at `now_ms`: later outcomes are not looked at."""
    past = [one for one in judged if one.at_ms < now_ms][-LAST:]
    p50, known = _factor(past, now_ms, 0.5)
    p90, _ = _factor(past, now_ms, 0.9)
    return Widening(p50=_bounded(p50), p90=_bounded(p90), outcomes=known) if known >= LEAST else Widening()


def _bounded(factor: float) -> float:
    return min(max(factor, 1 / MOST), MOST)


def _factor(past: list[Judged], now_ms: int, part: float) -> tuple[float, int]:
    ended, still = [], []
    for one in past:
        claimed = (one.p50_ms if part < 0.9 else one.p90_ms) - one.at_ms + SLACK_MS
        if one.started_ms is not None and one.started_ms <= now_ms:
            ended.append((one.started_ms - one.at_ms + SLACK_MS) / claimed)
        else:
            until = min(now_ms, one.seen_until_ms) if one.started_ms is None else now_ms
            still.append((until - one.at_ms + SLACK_MS) / claimed)
    scores = Lifetimes(ended, still)
    found = scores.quantile(min(part * (1 + 1 / max(len(ended), 1)), 1.0))
    return (found if found is not None else max([*ended, *still], default=1.0)), len(ended)
