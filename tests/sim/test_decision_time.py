"""Decisions that take time: what they say comes true as much later, on a clock that nobody measures."""

from __future__ import annotations

import pytest

from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import measure
from optimus.drivers.sim.records import JobRecord
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.sweeping import Finished
from optimus.drivers.sim.works.steady import Steady
from optimus.engine.engine import Engine
from optimus.model.queues import Queue
from tests.sim.sweeping.small import swept, tiny

SECOND = 1000


def job(name: str, seconds: int, *, at: float = 0, replicas: int = 4) -> Job:
    work = Steady(duration_ms=float(seconds * SECOND), replicas=replicas)
    return Job(name=name, submit_ms=round(at * SECOND), work=work, replicas=replicas)


def played(*jobs: Job, takes_s: float = 0, every_s: int = 0, coarser: int = 0) -> dict[str, JobRecord]:
    """By the real engine on one node with four GPUs."""
    setup = Setup(
        nodes=uniform_nodes(1, 4),
        queues=(Queue(name="default"),),
        decision_ms=round(takes_s * SECOND),
        interval_ms=every_s * SECOND,
        coarser_percent=coarser,
    )
    return {row.name: row for row in Clockwork(setup, jobs).play(Brain(Engine())).jobs}


def test_a_job_starts_as_much_later_as_deciding_takes() -> None:
    (row,) = played(job("a", 10), takes_s=2).values()
    assert (row.start_ms, row.end_ms) == (2 * SECOND, 12 * SECOND)


def test_so_does_the_one_that_waits_for_its_place() -> None:
    rows = played(job("a", 10), job("b", 10, at=1), takes_s=2)
    assert [rows[name].start_ms for name in "ab"] == [2 * SECOND, (12 + 2) * SECOND]


def test_what_comes_while_it_thinks_is_decided_with_it() -> None:
    """Room for both: the second comes a second after the first, and both start when the first decision is made."""
    rows = played(job("a", 10, replicas=2), job("b", 10, at=1, replicas=2), takes_s=2)
    assert [rows[name].start_ms for name in "ab"] == [2 * SECOND, 2 * SECOND]


def test_rounds_begin_as_they_did_and_their_decisions_come_later() -> None:
    rows = played(job("a", 10), job("b", 10, at=65), takes_s=2, every_s=60)
    assert [rows[name].start_ms for name in "ab"] == [2 * SECOND, (120 + 2) * SECOND]


def test_far_ahead_news_wait_for_a_part_of_the_time_that_has_passed() -> None:
    """A tenth: what comes right after a decision at 1,000 s is decided at 1,100 s, and what comes later at once."""
    jobs = [job(name, 10, at=at, replicas=1) for name, at in (("a", 0), ("b", 1000), ("c", 1001), ("d", 2000))]
    rows = played(*jobs, coarser=10)
    assert [rows[name].start_ms for name in "abcd"] == [0, 1000 * SECOND, 1100 * SECOND, 2000 * SECOND]
    exact = played(*jobs)
    assert [exact[name].start_ms for name in "abcd"] == [j.submit_ms for j in jobs]


@pytest.mark.parametrize("who", ["default", "tiresias"])
def test_a_tenth_of_a_second_hardly_matters_and_gives_the_same_bytes_every_time(who: str) -> None:
    averages = []
    for takes in (0, 100, 100):
        found, runs = tiny(who, decision_ms=takes)
        assert found[0].setup.decision_ms == takes
        (finished,) = swept(found, runs)[0].values()
        assert isinstance(finished, Finished)
        told = measure(finished.record, found[0].trace.jobs, found[0].setup).metrics.jct_ms.average
        assert told is not None
        averages.append(told)
    assert averages[1] == averages[2]
    assert 0 < averages[1] - averages[0] < 1000
