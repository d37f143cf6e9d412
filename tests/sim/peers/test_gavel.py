"""Gavel: who gets which model for how long."""

from __future__ import annotations

import pytest

from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.gavel import Gavel, Models, Solve, _ftf, _las, _sum, gavel_ftf, gavel_las, gavel_sum
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady
from optimus.model.workloads import ModelSpeed
from tests.sim.peers.stories import ended, job, play

TWO_MODELS = (*uniform_nodes(1, 1, model="fast"), *uniform_nodes(1, 1, model="slow"))


def worker(name: str, seconds: float, *, fast: float = 1.0, slow: float = 1.0, gpus: int = 1) -> Job:
    work = Steady(duration_ms=seconds * 1000, replicas=gpus, speed_by_model={"fast": fast, "slow": slow})
    return job(name, seconds, replicas=gpus, work=work)


def shares(solve: Solve, *jobs: Job) -> dict[str, list[float]]:
    """Parts of time on the fast and the slow model, by job."""
    clock = Clockwork(Setup(nodes=TWO_MODELS), list(jobs))
    gavel = Gavel(solve)
    gavel.models = Models(clock)
    found = solve(gavel, dict(enumerate(clock.runs)), clock)
    return {clock.runs[i].job.name: [round(float(x), 3) for x in share] for i, share in found.items()}


def test_the_job_that_gains_from_the_fast_model_gets_it() -> None:
    """Both could have an equal share; "gains" is ten times as fast there, "same" does not mind."""
    found = shares(_las, worker("gains", 100, fast=10), worker("same", 100))
    assert found == {"gains": [1, 0], "same": [0, 1]}


def test_two_of_a_kind_share_the_fast_model_equally() -> None:
    found = shares(_las, worker("one", 100, fast=3), worker("two", 100, fast=3))
    assert found["one"] == found["two"] == [0.5, 0.5]


def test_the_sum_takes_from_who_gains_least() -> None:
    """Three jobs, two GPUs: the third gains nowhere and gets what is left; the least rate would give it a share."""
    jobs = [worker("a", 100, fast=4, slow=1), worker("b", 100, fast=1, slow=0.1), worker("c", 100)]
    total = shares(_sum, *jobs)
    fair = shares(_las, *jobs)
    assert sum(sum(s) for s in total.values()) == pytest.approx(2)
    assert min(sum(s) for s in total.values()) < min(sum(s) for s in fair.values())


def test_the_worst_finish_time_ratio_is_equalised() -> None:
    """The larger of two equal jobs needs no more than the smaller one to end in proportion."""
    found = shares(_ftf, worker("short", 100), worker("long", 1000))
    assert sum(found["short"]) == pytest.approx(1, abs=0.01)
    assert sum(found["long"]) == pytest.approx(1, abs=0.01)


def test_rounds_bring_the_shares_about() -> None:
    """Three equal jobs on one GPU take turns, so all end within three rounds of each other."""
    jobs = [job(name, 3600) for name in ("a", "b", "c")]
    ends = ended(play(gavel_las(), jobs, round_s=360))
    assert max(ends.values()) == 3 * 3600
    assert max(ends.values()) - min(ends.values()) <= 3 * 360


def test_both_who_gain_from_the_fast_model_take_turns_on_it() -> None:
    """Relative to equal shares (5.5 and 3) both gain alike, so each has the fast one half of the time."""
    jobs = [worker("gains", 7200, fast=10), worker("also", 3600, fast=5)]
    assert shares(_las, *jobs) == {"gains": [0.5, 0.5], "also": [0.5, 0.5]}
    records = play(gavel_las(), jobs, round_s=360, cluster=TWO_MODELS)
    assert ended(records)["gains"] == 1368  # slow, fast, slow, and 288 s on the fast one
    assert records["also"].resizes >= 2


def test_a_model_on_which_it_cannot_run_is_never_given() -> None:
    only_slow = job("only-slow", 100, models=(ModelSpeed("slow", 100),))
    assert ended(play(gavel_sum(), [only_slow], round_s=360, cluster=TWO_MODELS)) == {"only-slow": 100}


def test_a_gang_stays_on_one_model() -> None:
    cluster = (*uniform_nodes(1, 2, model="fast"), *uniform_nodes(1, 2, model="slow"))
    jobs = [worker("pair", 600, gpus=2, fast=2), worker("other", 600, gpus=2, fast=2)]
    ends = ended(play(gavel_ftf(), jobs, round_s=360, cluster=cluster))
    assert max(ends.values()) <= 720
