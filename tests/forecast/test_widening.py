"""Forecasts are judged by what came, and past ones say how wide the next must be."""

from __future__ import annotations

import pytest

from optimus.drivers.sim.forecasting.foreseeing import Forecast, Quantiles
from optimus.drivers.sim.forecasting.judging import coverage, judge, widened
from optimus.drivers.sim.forecasting.widening import SLACK_MS, Judged, Widening, learn_widening

MINUTE = 60_000


def said(at: int, p50: int, p90: int, started: int | None, seen_until: int = 1 << 40) -> Judged:
    """In minutes."""
    return Judged(
        workload=f"w{at}",
        at_ms=at * MINUTE,
        p50_ms=(at + p50) * MINUTE,
        p90_ms=(at + p90) * MINUTE,
        started_ms=None if started is None else (at + started) * MINUTE,
        seen_until_ms=seen_until,
    )


def test_forecasts_that_were_half_as_long_as_the_truth_are_doubled() -> None:
    past = [said(at, p50=30, p90=90, started=90) for at in range(40)]
    learned = learn_widening(past, now_ms=1_000 * MINUTE)
    assert learned.outcomes == 40
    assert learned.p50 == pytest.approx(2.0) and learned.p90 == pytest.approx(1.0)
    assert learned.moment(0, 90 * MINUTE, learned.p50) == 2 * (90 * MINUTE + SLACK_MS) - SLACK_MS


def test_an_outcome_that_lies_ahead_is_not_looked_at() -> None:
    past = [said(at, p50=9, p90=9, started=9 if at % 2 else 500) for at in range(60)]
    then = learn_widening(past, now_ms=70 * MINUTE)
    changed = [one if one.started_ms and one.started_ms <= 70 * MINUTE else said(59, 9, 9, 90_000) for one in past]
    assert then.outcomes == sum(one.started_ms is not None and one.started_ms <= 70 * MINUTE for one in past)
    assert learn_widening([*past, said(80, 9, 9, 1)], now_ms=70 * MINUTE) == then
    assert learn_widening(changed, now_ms=70 * MINUTE).outcomes == then.outcomes


def test_who_still_waits_counts_as_far_as_it_has_come() -> None:
    """Half of them started as said; the others wait on, so the P90 has to reach beyond what has passed."""
    past = [said(at, p50=9, p90=9, started=9 if at % 2 else None, seen_until=200 * MINUTE) for at in range(60)]
    assert learn_widening(past, now_ms=200 * MINUTE).p90 > 3


def test_no_past_stretches_a_forecast_beyond_four_times() -> None:
    past = [said(at, p50=30, p90=30, started=90_000) for at in range(40)]
    assert learn_widening(past, now_ms=100_000 * MINUTE) == Widening(p50=4.0, p90=4.0, outcomes=40)


def test_a_few_outcomes_change_nothing() -> None:
    assert learn_widening([said(at, 9, 9, 900) for at in range(10)], now_ms=10_000 * MINUTE) == Widening()


def test_each_is_widened_only_by_those_before_it() -> None:
    past = [said(at * 100, p50=30, p90=90, started=90) for at in range(40)]
    wider = widened(past)
    assert wider[0] == past[0] and wider[19] == past[19]
    assert wider[39].p50_ms - wider[39].at_ms == pytest.approx(90 * MINUTE, abs=MINUTE)


def test_coverage_counts_those_that_started_in_time() -> None:
    told = coverage([said(at, p50=10, p90=20, started=5 if at < 5 else 15 if at < 9 else 30) for at in range(10)])
    assert (told.p50.part, told.p90.part, told.moments) == (0.5, 0.9, 10)


def test_who_never_started_is_held_against_the_forecast_as_far_as_the_record_goes() -> None:
    late, open_end = said(0, 10, 20, None, seen_until=60 * MINUTE), said(50, 5, 20, None, seen_until=60 * MINUTE)
    told = coverage([late, open_end])
    assert (told.p50.forecasts, told.p50.part) == (2, 0.0)
    assert (told.p90.forecasts, told.p90.part) == (1, 0.0)


def test_the_true_start_is_the_first_after_the_moment() -> None:
    quantiles = {"a": Quantiles(p50_ms=150, p90_ms=None, samples=2, started=1)}
    told = Forecast(
        now_ms=100, horizon_ms=900, waiting=(), quantiles=quantiles, ahead={}, samples=2, asked=2, stopped=""
    )
    (one,) = judge(told, {"a": [50, 170]}, until_ms=5_000)
    assert (one.started_ms, one.p50_ms, one.p90_ms) == (170, 150, 1_000)
