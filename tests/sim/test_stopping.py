"""When a simulation is over: at its time and not later, and with everything told that happened."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork, News, Seat
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import measure
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.sweeping import Finished
from optimus.drivers.sim.traces.recorded import load_journal
from optimus.drivers.sim.traces.trace import ENDLESS_MS
from optimus.drivers.sim.works.steady import Steady
from optimus.engine.engine import Engine
from optimus.model.queues import Queue
from tests.sim.sweeping.small import swept, tiny

MINUTE = 60_000
SETUP = Setup(nodes=uniform_nodes(1, 4))


def job(name: str, minutes: float, *, at: int = 0, **facts: object) -> Job:
    return Job(name=name, submit_ms=at * MINUTE, work=Steady(duration_ms=minutes * MINUTE), **facts)  # type: ignore[arg-type]


class AtOnce:
    """Gives everybody a GPU of the only node, and notes when it was asked."""

    name = "at once"
    every_round = False

    def __init__(self) -> None:
        self.asked_ms: list[int] = []

    def open(self, clock: Clockwork) -> None:
        pass

    def decide(self, clock: Clockwork, news: News) -> None:
        self.asked_ms.append(clock.now_ms)
        for index in news.arrived:
            clock.place(index, {0: Seat(0)})


def test_the_clock_stands_where_it_was_told_to_stop() -> None:
    """One job never ends. The next thing that happens lies ages behind the end of the watch, and is not played."""
    jobs = [job("pod", ENDLESS_MS / MINUTE), job("batch", 10)]
    record = Clockwork(SETUP, jobs).play(AtOnce(), until_ms=60 * MINUTE)
    assert record.end_ms == 60 * MINUTE
    assert {row.name: row.end_ms for row in record.jobs} == {"pod": None, "batch": 10 * MINUTE}
    told = measure(record, jobs, SETUP).metrics
    assert (told.finished, told.unfinished) == (1, 1)
    assert told.use.gpu_hours == round(70 / 60, 6)


def test_nobody_is_asked_at_the_end_or_after_it() -> None:
    """The third job comes at the very end; nobody sees it any more."""
    scheduler = AtOnce()
    jobs = [job("a", 100), job("b", 100, at=5), job("c", 100, at=30), job("d", 100, at=31)]
    record = Clockwork(SETUP, jobs).play(scheduler, until_ms=30 * MINUTE)
    assert scheduler.asked_ms == [0, 5 * MINUTE]
    assert [row.start_ms for row in record.jobs] == [0, 5 * MINUTE, None, None]
    assert record.end_ms == 30 * MINUTE


def test_who_is_through_by_the_end_has_ended() -> None:
    record = Clockwork(SETUP, [job("a", 30), job("b", 31)]).play(AtOnce(), until_ms=30 * MINUTE)
    assert [row.end_ms for row in record.jobs] == [30 * MINUTE, None]
    assert [row.done for row in record.jobs] == [1.0, 30 / 31]


def test_where_nothing_happens_any_more_the_time_passes() -> None:
    """A job that can never start waits until the end of the watch; that is no fault of the simulation."""
    setup = Setup(nodes=uniform_nodes(1, 4), queues=(Queue(name="default"),), tick_ms=0)
    record = Clockwork(setup, [job("large", 1, replicas=8)]).play(Brain(Engine()), until_ms=30 * MINUTE)
    assert record.end_ms == 30 * MINUTE
    assert record.jobs[0].start_ms is None


def test_a_journal_has_the_end_of_the_last_job_and_the_run_is_the_same_without_one(tmp_path: Path) -> None:
    """Nobody is asked after the last end. It is in the journal nevertheless, with the time at which it happened."""
    found, (run,) = tiny("default")
    played = [swept(found, (one,))[0][0] for one in (run, structs.replace(run, journal=tmp_path))]
    assert played[0] == played[1]
    assert isinstance(played[1], Finished)
    recorded = load_journal(tmp_path)
    assert (len(recorded.jobs), recorded.problems) == (20, ())
    last = max(played[1].record.jobs, key=lambda row: row.end_ms or 0)
    worked = {each.name: each.work.ideal_ms() for each in recorded.jobs}
    assert worked[f"trace.{last.name}"] == last.run_ms


def test_a_journal_of_a_simulation_that_was_stopped_says_who_still_ran(tmp_path: Path) -> None:
    (scene,), (run,) = tiny("default")
    until_ms = scene.trace.jobs[10].submit_ms
    half = structs.replace(scene, until_ms=until_ms)
    results, _ = swept((half,), (structs.replace(run, journal=tmp_path),))
    assert isinstance(results[0], Finished)
    seen = sum(row.end_ms is not None and row.end_ms < until_ms for row in results[0].record.jobs)
    recorded = load_journal(tmp_path)
    assert len(recorded.jobs) == seen < recorded.rows == 10
    assert all("when the journal ends" in problem.message for problem in recorded.problems)
