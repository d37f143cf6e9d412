"""Who else comes: as often as before, together where they came together, and no surer than so short a past allows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import structs

from optimus.drivers.sim.forecasting import Asked, Past
from optimus.drivers.sim.forecasting.arrivals import LONGEST, newcomers
from optimus.drivers.sim.forecasting.foreseeing import foresee
from optimus.drivers.sim.forecasting.sampling import Futures
from optimus.engine.engine import Engine
from optimus.engine.journal import JournalWriter
from optimus.engine.journal_past import LEAST_EVENTS, SETTLED_MS, Ran, gathered, past_of, read_past, write_past
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, SlotGone, SlotRunning, WorkloadEnded, WorkloadSeen
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
    last = [max((at for at, *_ in newcomers(past, NOW_MS, NOW_MS + BEYOND_MS, 0, n)), default=0) for n in range(200)]
    assert max(last) <= NOW_MS + LONGEST * past.window_ms + 1


def test_an_array_comes_as_one() -> None:
    """A sweep of 500 was submitted once: that is one event, and says little about how many such will come."""
    sweep = [workload(f"sweep/{n}", NOW_MS - 10 * MINUTE_MS) for n in range(500)]
    others = [workload(f"came-{n}", NOW_MS - n * MINUTE_MS) for n in range(9)]
    past = gathered([*sweep, *others], (), begin_ms=NOW_MS - 20 * MINUTE_MS, now_ms=NOW_MS)
    assert len(past.events) == 10
    come = newcomers(past, NOW_MS, NOW_MS + BEYOND_MS, 0, 3)
    moments = [at for at, *_ in come]
    together = {at: moments.count(at) for at in moments}
    assert set(together.values()) <= {1, 500}
    assert len({one.workload.id for one in come}) == len(come)


def test_a_day_that_is_known_goes_on_until_the_horizon() -> None:
    past = a_minute_apart(7 * 60)
    assert past.settled and past.window_ms >= SETTLED_MS
    last = max(at for at, *_ in newcomers(past, NOW_MS, NOW_MS + 48 * HOUR_MS, 0, 0))
    assert last > NOW_MS + 47 * HOUR_MS


def spread(past: Past) -> tuple[float, float]:
    """The shortest and the longest run time that any newcomer of many futures gets, in minutes."""
    futures = Futures(present("{cluster: [{name: n, gpus: 2}]}"), BEYOND_MS, past)
    jobs = [job for sample in range(40) for job in futures.cast(0, sample)[0]]
    times = [job.work.ideal_ms() / MINUTE_MS for job in jobs]
    return min(times), max(times)


def test_a_newcomer_that_declares_its_run_time_is_no_more_wrong_than_whom_it_copies() -> None:
    """All ran for 20 minutes; half of them had said 10, and half 40. What they said has their error in it already:
    drawn once more, newcomers would run for anything between 5 minutes and 80."""
    said = [(10, 40)[n % 2] * MINUTE_MS for n in range(20)]
    came = [workload(f"came-{n}", NOW_MS - n * MINUTE_MS, one) for n, one in enumerate(said)]
    ran = [Ran(20.0 * MINUTE_MS, True)] * len(came)
    errors = [20 * MINUTE_MS / one for one in said]
    past = gathered(came, errors, begin_ms=NOW_MS - 20 * MINUTE_MS, now_ms=NOW_MS, ran=ran)
    assert spread(past) == (20, 20)
    assert spread(read_past(write_past(past))) == (20, 20), "from afar as well"


def test_a_newcomer_runs_longer_than_whom_it_copies_has_run_so_far() -> None:
    """Those who are still at it are the long ones; leaving them out would make everybody short."""
    came = [workload(f"came-{n}", NOW_MS - n * MINUTE_MS, 10 * MINUTE_MS) for n in range(20)]
    ran = [Ran(15.0 * MINUTE_MS, False)] * len(came)
    past = gathered(came, (), begin_ms=NOW_MS - 20 * MINUTE_MS, now_ms=NOW_MS, ran=ran)
    shortest, longest = spread(past)
    assert 15 <= shortest < longest


def test_a_journal_tells_how_long_those_ran_who_came(tmp_path: Path) -> None:
    one = workload("ends", NOW_MS + 1, 10 * MINUTE_MS)
    two = workload("runs", NOW_MS + 2, 10 * MINUTE_MS)
    three = structs.replace(two, id="default/silent", submitted_ms=NOW_MS + 3, expected_duration_ms=None)
    engine = Engine()
    node = Node(
        name="n",
        cpu_milli=64_000,
        memory_mib=1 << 20,
        devices=tuple(Device(index=n, model="virtual") for n in range(4)),
    )
    with JournalWriter(tmp_path, dump=engine.dump) as writer:
        engine.keep_journal(writer, NOW_MS)
        engine.step([NodeSeen(node), *map(WorkloadSeen, (one, two, three))], NOW_MS + 3)
        slots = [SlotRunning(w.id, "worker", 0, "n", (n,)) for n, w in enumerate((one, two, three))]
        engine.step(slots, NOW_MS + 3)
        engine.step([WorkloadEnded(one.id), SlotGone(one.id, "worker", 0)], NOW_MS + 3 + 4 * MINUTE_MS)
    past = past_of(tmp_path, NOW_MS + 3 + 9 * MINUTE_MS)
    assert past.ran == (Ran(4 * MINUTE_MS, True), Ran(9 * MINUTE_MS, False), None)


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
