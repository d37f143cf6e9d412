"""Who else comes: as often as before, together where they came together, and no surer than so short a past allows."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from optimus.drivers.sim.forecasting import Asked, Past
from optimus.drivers.sim.forecasting.arrivals import LONGEST, newcomers
from optimus.drivers.sim.forecasting.foreseeing import foresee
from optimus.drivers.sim.forecasting.sampling import Futures
from optimus.engine.journal_past import LEAST_EVENTS, SETTLED_MS, gathered
from optimus.model.workloads import Group, Request, Role, Workload
from tests.forecast.worlds import HOUR_MS, present

NOW_MS = 1_000 * HOUR_MS
MINUTE_MS = 60_000
BEYOND_MS = 7 * 24 * HOUR_MS


def workload(name: str, at_ms: int, expected_ms: int | None = None) -> Workload:
    gang = Group(roles=(Role(name="worker", min=1, max=1, request=Request(gpu_count=1)),))
    return Workload(
        id=f"default/{name}", queue="default", gang=gang, submitted_ms=at_ms, expected_duration_ms=expected_ms
    )


def a_minute_apart(count: int, until_ms: int = NOW_MS, expected_ms: int | None = None) -> Past:
    """One came in each of the last minutes, and nothing is known from before."""
    came = [workload(f"came-{n}", until_ms - n * MINUTE_MS, expected_ms) for n in range(count)]
    return gathered(came, (), begin_ms=until_ms - count * MINUTE_MS, now_ms=until_ms)


def numbers(past: Past, samples: int = 400) -> list[int]:
    return [len(newcomers(past, NOW_MS, NOW_MS + BEYOND_MS, 0, sample)) for sample in range(samples)]


def test_a_few_who_came_say_nothing_about_how_many_will() -> None:
    few, enough = a_minute_apart(LEAST_EVENTS - 1), a_minute_apart(LEAST_EVENTS)
    assert not few.tells_arrivals and few.usable().arrived == ()
    assert enough.tells_arrivals and enough.usable() == enough and not enough.settled


def test_a_crowd_of_half_an_hour_goes_on_for_as_long_again_in_half_of_all_futures() -> None:
    past = a_minute_apart(30)
    came = numbers(past)
    assert 24 <= np.median(came) <= 37
    assert 0.2 <= np.mean(np.array(came) < 10) <= 0.35, "a third as long: in one of four"
    assert np.quantile(came, 0.85) > 120, "and nobody knows that it does not go on for hours"


def test_it_is_cut_where_no_p90_sees_it() -> None:
    past = a_minute_apart(30)
    last = [max((at for at, _ in newcomers(past, NOW_MS, NOW_MS + BEYOND_MS, 0, n)), default=0) for n in range(200)]
    assert max(last) <= NOW_MS + LONGEST * past.window_ms + 1


def test_an_array_comes_as_one() -> None:
    """A sweep of 500 was submitted once: that is one event, and says little about how many such will come."""
    sweep = [workload(f"sweep/{n}", NOW_MS - 10 * MINUTE_MS) for n in range(500)]
    others = [workload(f"came-{n}", NOW_MS - n * MINUTE_MS) for n in range(9)]
    past = gathered([*sweep, *others], (), begin_ms=NOW_MS - 20 * MINUTE_MS, now_ms=NOW_MS)
    assert len(past.events) == 10
    come = newcomers(past, NOW_MS, NOW_MS + BEYOND_MS, 0, 3)
    moments = [at for at, _ in come]
    together = {at: moments.count(at) for at in moments}
    assert set(together.values()) <= {1, 500}
    assert len({one.id for _, one in come}) == len(come)


def test_a_day_that_is_known_goes_on_until_the_horizon() -> None:
    past = a_minute_apart(7 * 60)
    assert past.settled and past.window_ms >= SETTLED_MS
    last = max(at for at, _ in newcomers(past, NOW_MS, NOW_MS + 48 * HOUR_MS, 0, 0))
    assert last > NOW_MS + 47 * HOUR_MS


BUSY = """
cluster: [{name: n, gpus: 2}]
workloads:
  - {name: a, gpu: 1, running: {on: n, since: -10m}, expectedDuration: 15m}
  - {name: b, gpu: 1, running: {on: n, since: -10m}, expectedDuration: 20m}
  - {name: whole, gpu: 2, submitted: -5m, expectedDuration: 10m}
"""


def test_the_same_past_and_seed_give_the_same_forecast() -> None:
    now = present(BUSY)
    asked = Asked(present=now, samples=2, past=a_minute_apart(12, now.now_ms, MINUTE_MS), horizon_ms=2 * HOUR_MS)
    assert foresee(asked) == foresee(asked)
    assert foresee(asked) != foresee(structs.replace(asked, seed=1))


def test_short_work_in_a_distant_future_does_not_wait_for_decisions() -> None:
    """One of a minute each minute, on two GPUs: hours later nobody stands in line for want of somebody who decides."""
    now = present(BUSY)
    past = structs.replace(a_minute_apart(7 * 60, now.now_ms, MINUTE_MS), errors=(1.0,) * 5)
    futures = Futures(now, 4 * HOUR_MS, past)
    _, people = futures.cast(0, 0)
    come = {name: one.workload.submitted_ms for name, one in people.items() if name.startswith("newcomer/")}
    early = frozenset(name for name, at_ms in come.items() if at_ms < now.now_ms + 3 * HOUR_MS)
    starts = futures.play(early, 0, 0)
    waits = [at_ms - come[name] for name in early if (at_ms := starts[name]) is not None]
    assert len(waits) == len(early) > 100
    assert np.median(waits) < MINUTE_MS
