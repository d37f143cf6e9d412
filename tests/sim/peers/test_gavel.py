"""Gavel: who gets which model for how long."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.gavel import Models, gavel_ftf, gavel_las, gavel_las_filled, gavel_sum
from optimus.drivers.sim.peers.gavel_shares import (
    FinishTimeFairness,
    Question,
    Solve,
    filled,
    least_attained_service,
    throughput,
)
from optimus.drivers.sim.peers.rounds import RoundScheduler
from optimus.drivers.sim.setup import Outage, Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady
from optimus.model.nodes import Node
from optimus.model.workloads import ModelSpeed
from tests.sim.peers.stories import ended, job, play

TWO_MODELS = (*uniform_nodes(1, 1, model="fast"), *uniform_nodes(1, 1, model="slow"))


def worker(
    name: str,
    seconds: float,
    *,
    fast: float = 1.0,
    slow: float = 1.0,
    gpus: int = 1,
    steps_per_s: float = 1.0,
    at: float = 0,
) -> Job:
    speeds = {"fast": fast, "slow": slow}
    work = Steady(duration_ms=seconds * 1000, replicas=gpus, speed_by_model=speeds, steps_per_s=steps_per_s)
    return job(name, seconds, at=at, replicas=gpus, work=work)


def shares(solve: Solve, *jobs: Job, cluster: tuple[Node, ...] = TWO_MODELS) -> dict[str, list[float]]:
    """Parts of time on the fast and the slow model, by job."""
    clock = Clockwork(Setup(nodes=cluster), list(jobs))
    models = Models(clock)
    speeds = np.array([models.speeds(run) for run in clock.runs])
    found = solve(Question(clock.runs, speeds, models.gpus(clock), 0))
    return {run.job.name: [round(float(x), 3) for x in row] for run, row in zip(clock.runs, found, strict=True)}


def test_a_wide_job_has_so_much_less_time() -> None:
    """On two GPUs: 1/3 of the time for the pair and 2/3 for each of the others, so that GPU time is equal."""
    cluster = uniform_nodes(1, 2, model="fast")
    found = shares(
        least_attained_service, worker("pair", 100, gpus=2), worker("a", 100), worker("b", 100), cluster=cluster
    )
    assert found == {"pair": [0.333], "a": [0.667], "b": [0.667]}


def test_the_least_is_as_large_as_possible_and_what_is_left_is_nobodys() -> None:
    """ "same" cannot be faster than all the time, so "gains" needs no more than that either, and has a bit more."""
    found = shares(least_attained_service, worker("gains", 100, fast=10), worker("same", 100))
    assert sum(found["same"]) == pytest.approx(1, abs=0.001)
    assert 1 <= (10 * found["gains"][0] + found["gains"][1]) / 5.5 < 10 / 5.5


def test_filled_the_job_that_gains_from_the_fast_model_gets_all_of_it() -> None:
    found = shares(filled, worker("gains", 100, fast=10), worker("same", 100))
    assert found == {"gains": [1, 0], "same": [0, 1]}


@pytest.mark.parametrize("solve", [least_attained_service, filled])
def test_two_of_a_kind_share_the_fast_model_equally(solve: Solve) -> None:
    found = shares(solve, worker("one", 100, fast=3), worker("two", 100, fast=3))
    assert found["one"] == found["two"] == [0.5, 0.5]


def test_throughput_counts_steps_and_not_who_makes_them() -> None:
    """ "many" makes 50 steps a second on the fast model and "few" 4; of the slow one both make a tenth."""
    jobs = [worker("few", 100, slow=0.1, steps_per_s=4), worker("many", 100, slow=0.1, steps_per_s=50)]
    assert shares(throughput, *jobs) == {"few": [0, 1], "many": [1, 0]}
    fast_only = uniform_nodes(1, 1, model="fast")
    assert shares(throughput, *jobs, cluster=fast_only) == {"few": [0], "many": [1]}
    assert shares(least_attained_service, *jobs, cluster=fast_only) == {"few": [0.5], "many": [0.5]}


def test_the_worst_finish_time_ratio_is_equalised() -> None:
    """The larger of two equal jobs needs no more than the smaller one to end in proportion."""
    found = shares(FinishTimeFairness(), worker("short", 100), worker("long", 1000))
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
    assert shares(least_attained_service, *jobs) == {"gains": [0.5, 0.5], "also": [0.5, 0.5]}
    records = play(gavel_las(), jobs, round_s=360, cluster=TWO_MODELS)
    assert ended(records)["gains"] == 1044  # fast, slow, and 324 s on the fast one
    assert records["also"].resizes >= 2


def test_a_job_without_a_share_runs_where_nobody_else_does() -> None:
    """All steps are made by "many" on the only fast GPU; "few" is due nothing, and has the slow one that is left."""
    jobs = [worker("few", 100, slow=0.5), worker("many", 100, slow=0, steps_per_s=50)]
    assert ended(play(gavel_sum(), jobs, round_s=360, cluster=TWO_MODELS)) == {"few": 200, "many": 100}


def test_who_comes_between_two_solutions_waits_for_the_next_one() -> None:
    """Shares are worked out at 0 s and, after the change at 400 s, not before 1,000 s: in the round of 1,080 s."""
    late = job("late", 100, at=400)
    records = play(gavel_las(), [job("first", 3600), late], round_s=360, gpus=2)
    assert ended(records) == {"first": 3600, "late": 1180}


def test_a_model_on_which_it_cannot_run_is_never_given() -> None:
    only_slow = job("only-slow", 100, models=(ModelSpeed("slow", 100),))
    assert ended(play(gavel_sum(), [only_slow], round_s=360, cluster=TWO_MODELS)) == {"only-slow": 100}


@pytest.mark.parametrize("peer", [gavel_las, gavel_las_filled, gavel_ftf, gavel_sum])
def test_a_model_whose_nodes_are_all_down_is_not_given(peer: Callable[[], RoundScheduler]) -> None:
    """The fast one is lost from 100 s to 5,000 s: what is left of the 3,600 s is done on the slow one."""
    outage = Outage(node="fast-0", at_ms=100_000, for_ms=4_900_000)
    jobs = [worker("only", 3600), worker("late", 60, at=1500)]
    found = ended(play(peer(), jobs, round_s=360, cluster=TWO_MODELS, outages=(outage,)))
    assert 3600 <= found["only"] <= 3600 + 360 + 1080
    assert found["late"] <= 5760 + 60


def test_a_gang_stays_on_one_model() -> None:
    cluster = (*uniform_nodes(1, 2, model="fast"), *uniform_nodes(1, 2, model="slow"))
    jobs = [worker("pair", 600, gpus=2, fast=2), worker("other", 600, gpus=2, fast=2)]
    ends = ended(play(gavel_ftf(), jobs, round_s=360, cluster=cluster))
    assert max(ends.values()) <= 720
