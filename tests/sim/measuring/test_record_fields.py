"""What records say of time that was held and not worked."""

from __future__ import annotations

from optimus.drivers.sim.clockwork import Clockwork, News, Seat
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import measure
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady

SETUP = Setup(nodes=uniform_nodes(1, 4))
SECOND = 1000


class Script:
    """Does what the test says at each decision."""

    name = "script"
    every_round = False

    def __init__(self, *acts: str) -> None:
        self._acts = list(acts)

    def open(self, clock: Clockwork) -> None:
        pass

    def decide(self, clock: Clockwork, news: News) -> None:
        act = self._acts.pop(0) if self._acts else ""
        if act == "place":
            clock.place(0, {0: Seat(0), 1: Seat(0)})
        elif act == "leave":
            clock.leave(0, [0, 1])
        elif act == "reject":
            clock.reject(0, "not wanted")


def two_gpus(**facts: object) -> Job:
    work = Steady(duration_ms=100.0 * SECOND, replicas=2)
    return Job(name="a", submit_ms=0, replicas=2, work=work, **facts)  # type: ignore[arg-type]


def bell(second: int) -> Job:
    """Its arrival is an occasion to decide."""
    return Job(name=f"bell-{second}", submit_ms=second * SECOND, gpus=0, work=Steady(duration_ms=1.0))


def test_starts_and_restarts_are_paused_time() -> None:
    """Ten seconds to start, forty of work, five to leave, thirty to start again, sixty of work; all on two GPUs."""
    jobs = [two_gpus(start_ms=10 * SECOND, restart_ms=30 * SECOND, grace_ms=5 * SECOND), bell(50), bell(70)]
    clock = Clockwork(SETUP, jobs)
    # Decisions: the arrival of a, the first bell, replicas gone, the second bell.
    record = clock.play(Script("place", "leave", "", "place"), until_ms=161 * SECOND)
    a = record.jobs[0]
    assert (a.start_ms, a.end_ms) == (0, 160 * SECOND)
    assert a.gpu_ms == 2 * (50 + 90) * SECOND
    assert a.paused_gpu_ms == 2 * (10 + 30) * SECOND
    assert a.leaving_gpu_ms == 2 * 5 * SECOND
    assert (a.done, a.lost) == (1.0, 0.0)


def test_a_failure_pauses_and_loses_work() -> None:
    """It fails after fifty seconds, its last checkpoint is twenty seconds old, and it starts again where it is."""
    jobs = [two_gpus(restart_ms=30 * SECOND, checkpoint_ms=30 * SECOND, fails_at=(0.5,))]
    record = Clockwork(SETUP, jobs).play(Script("place"))
    a = record.jobs[0]
    assert a.end_ms == (50 + 30 + 70) * SECOND
    assert a.paused_gpu_ms == 2 * 30 * SECOND
    told = measure(record, jobs, SETUP).metrics.use
    assert told.lost_gpu_hours == round(2 * 20 / 3600, 6)
    assert told.useful_gpu_hours == round(2 * 100 / 3600, 6)


def test_a_refusal_has_a_time() -> None:
    jobs = [two_gpus(), bell(20)]
    record = Clockwork(SETUP, jobs).play(Script("", "reject"), until_ms=30 * SECOND)
    assert record.jobs[0].rejected_ms == 20 * SECOND
    assert measure(record, jobs, SETUP).columns.left_ms[0] == 20 * SECOND


def test_a_record_that_is_cut_off_says_how_far_jobs_got() -> None:
    jobs = [two_gpus(), bell(25)]
    record = Clockwork(SETUP, jobs).play(Script("place"), until_ms=25 * SECOND)
    assert record.jobs[0].done == 0.25
