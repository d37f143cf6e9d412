"""Several models of devices: who sits where, and who changes places. Times in seconds; "slow" is a tenth of "fast"."""

from __future__ import annotations

from typing import Any

import pytest

from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.records import JobRecord
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady
from optimus.engine.engine import Engine
from optimus.model.queues import Queue
from optimus.model.settings import Settings
from optimus.model.workloads import ModelSpeed


def job(name: str, seconds: float, *, at: float = 0, slow: int = 10, replicas: int = 1, **more: Any) -> Job:
    return Job(
        name=name,
        submit_ms=round(at * 1000),
        work=Steady(duration_ms=seconds * 1000, replicas=replicas, speed_by_model={"fast": 1.0, "slow": slow / 100}),
        replicas=replicas,
        models=(ModelSpeed("fast", 100), ModelSpeed("slow", slow)),
        restart_ms=more.pop("restart_ms", 0),
        **more,
    )


def play(*jobs: Job, fast: int = 1, slow: int = 1, **settings: Any) -> dict[str, JobRecord]:
    nodes = (*uniform_nodes(1, fast, model="fast"), *uniform_nodes(1, slow, model="slow"))
    setup = Setup(nodes=nodes, queues=(Queue(name="default"),))
    brain = Brain(Engine(settings=Settings(**settings)))
    return {record.name: record for record in Clockwork(setup, jobs).play(brain).jobs}


def bell(at: float) -> Job:
    """Something happens: a job that needs no device."""
    return Job(name=f"bell-{at:g}", submit_ms=round(at * 1000), work=Steady(duration_ms=1), gpus=0, cpu_milli=1)


def ends(records: dict[str, JobRecord]) -> dict[str, float]:
    return {name: record.end_ms / 1000 for name, record in records.items() if record.end_ms is not None}


def test_a_gang_sits_on_equally_fast_devices_and_leaves_the_others_alone() -> None:
    """Three fast ones would not make it faster; somebody else has them."""
    found = ends(play(job("gang", 20, slow=50, replicas=4), job("single", 100, at=1), fast=3, slow=4))
    assert found == {"gang": 40, "single": 101}


def test_a_gang_that_no_model_can_hold_sits_on_several() -> None:
    assert ends(play(job("gang", 20, slow=50, replicas=6), fast=3, slow=4)) == {"gang": 40}


def test_running_work_moves_up_when_faster_devices_are_idle() -> None:
    """It has done 10 of 100 s when the fast device is left to it."""
    records = play(job("first", 100), job("second", 100, at=1))
    assert ends(records) == {"first": 100, "second": pytest.approx(100 + 100 - 9.9)}
    assert records["second"].restarts == 1


def test_two_change_places_where_one_gains_more_than_the_other_loses() -> None:
    """At 20 s "gains" has done one of its 100 and "same" 20; at 119 s "same" has 0.8 left and moves up again."""
    found = ends(play(job("same", 100, slow=80), job("gains", 100, at=10), bell(20)))
    assert (found["same"], found["gains"]) == (119.8, 20 + 99)


def test_a_wide_one_changes_places_with_several() -> None:
    small = [job(f"small-{i}", 100, slow=80) for i in range(2)]
    records = play(*small, job("pair", 100, at=10, replicas=2), bell(20), fast=2, slow=2)
    assert ends(records)["pair"] == 20 + 99
    assert {records[name].restarts for name in ("small-0", "small-1")} == {2}  # down, and up again at 119 s


def test_nobody_changes_places_for_a_small_gain() -> None:
    records = play(job("first", 100, slow=50), job("second", 100, at=10, slow=45), bell(20))
    assert not records["first"].restarts
    assert ends(records)["first"] == 100


def test_a_move_has_to_pay_for_the_restart() -> None:
    """Four restarts of 30 s are paid for by 0.9 of the time it sat there: after 134 s. Something happens at 120 s, and
    again at 150 s."""
    jobs = [job("first", 100, restart_ms=30_000), job("second", 1000, at=1, restart_ms=30_000)]
    records = play(*jobs, bell(120), bell(150))
    assert ends(records)["second"] == pytest.approx(150 + 30 + 1000 - 14.9)


@pytest.mark.parametrize("off", ["work that cannot continue", "the setting"])
def test_some_things_stay_where_they_are(off: str) -> None:
    checkpoint: dict[str, Any] = {"checkpoint_ms": None} if off == "work that cannot continue" else {}
    settings = {"consolidation": False} if off == "the setting" else {}
    records = play(job("first", 100), job("second", 100, at=1, **checkpoint), **settings)
    assert ends(records)["second"] == 1001
