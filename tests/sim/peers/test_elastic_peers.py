"""AFS, ElasticFlow and Sia with jobs that can run on several sizes; Themis with jobs that cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimus.drivers.sim.clockwork import Clockwork, SimulationError
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.afs import afs
from optimus.drivers.sim.peers.elasticflow import elasticflow
from optimus.drivers.sim.peers.gavel import gavel_las
from optimus.drivers.sim.peers.optimus_eurosys import optimus_eurosys
from optimus.drivers.sim.peers.pollux import pollux
from optimus.drivers.sim.peers.rounds import RoundScheduler
from optimus.drivers.sim.peers.scaling import Speeds, next_size, sizes_of
from optimus.drivers.sim.peers.shortest import srtf
from optimus.drivers.sim.peers.sia import sia, solve, solve_integer
from optimus.drivers.sim.peers.themis import Themis, themis
from optimus.drivers.sim.peers.tiresias import tiresias
from optimus.drivers.sim.setup import Outage, Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady
from tests.sim.peers.stories import ended, job, play, started

PERFECT = (1.0, 2.0, 3.0, 4.0)
FLAT = (1.0, 1.05, 1.08, 1.1)


def elastic(name: str, seconds: float, scaling: tuple[float, ...] = PERFECT, at: float = 0, **more: Any) -> Job:
    """One to four replicas; `seconds` on one of them."""
    return job(
        name,
        seconds,
        at=at,
        work=Steady(duration_ms=seconds * 1000, replicas=1, scaling=scaling),
        min_replicas=1,
        max_replicas=4,
        speedup_percent=tuple(round(100 * s) for s in scaling),
        **more,
    )


# -- what they know of speeds ---------------------------------------------------------------------------------


def test_a_job_that_tells_nothing_is_taken_to_scale_in_proportion() -> None:
    clock = Clockwork(Setup(nodes=uniform_nodes(1, 4)), [job("a", 10, replicas=2), elastic("b", 10, FLAT)])
    speeds = Speeds()
    assert [speeds.of(clock.runs[0], n) for n in (0, 1, 3)] == [0, 1, 3]
    assert [speeds.of(clock.runs[1], n) for n in (1, 4, 9)] == [1, 1.1, 1.1]
    assert speeds.left_ms(clock.runs[0], 0) == 20_000


def test_sizes_are_those_the_job_allows() -> None:
    clock = Clockwork(Setup(nodes=uniform_nodes(1, 4)), [elastic("a", 1), elastic("b", 1, sizes=(1, 2, 4))])
    assert sizes_of(clock.runs[0]) == (1, 2, 3, 4)
    assert [next_size(clock.runs[1], n) for n in (0, 1, 2, 4)] == [1, 2, 4, 0]


# -- AFS ------------------------------------------------------------------------------------------------------


def test_afs_gives_all_to_who_scales() -> None:
    """Four GPUs, one each; of the other two "flat" makes no use, so "steep" has three."""
    jobs = [elastic("steep", 300), elastic("flat", 300, FLAT)]
    assert ended(play(afs(), jobs, gpus=4, round_s=60))["steep"] == 100


def test_afs_lets_the_shorter_of_equals_finish_first() -> None:
    """Both scale perfectly: (n+1-n)/(n+1) of the longer is never above 1/n of the shorter."""
    jobs = [elastic("short", 120), elastic("long", 400)]
    ends = ended(play(afs(), jobs, gpus=4, round_s=60))
    assert ends["short"] == 40
    assert ends["long"] == 60 + (400 - 60) / 4


def test_afs_starts_the_shortest_where_not_all_fit() -> None:
    jobs = [elastic("long", 1000, at=0), elastic("short", 10, at=0)]
    assert started(play(afs(), jobs, round_s=60)) == {"short": 0, "long": 60}


# -- ElasticFlow ----------------------------------------------------------------------------------------------


def test_elasticflow_refuses_a_deadline_it_cannot_keep() -> None:
    records = play(elasticflow(), [elastic("late", 1000, deadline_ms=200_000)], gpus=4, round_s=60)
    assert "deadline" in records["late"].rejected


def test_elasticflow_gives_what_suffices_and_then_the_rest() -> None:
    """Two GPUs suffice for "due"; "free" has no deadline and scales as well, so the rest goes to either."""
    jobs = [elastic("due", 600, FLAT[:1] * 4, deadline_ms=660_000), elastic("free", 600)]
    records = play(elasticflow(), jobs, gpus=4, round_s=60)
    assert ended(records)["due"] <= 660
    assert ended(records)["free"] == 200


def test_elasticflow_keeps_its_promise_when_others_come_later() -> None:
    jobs = [
        elastic("promised", 700, deadline_ms=240_000),
        elastic("greedy", 700, at=30, deadline_ms=250_000),
    ]
    records = play(elasticflow(), jobs, gpus=4, round_s=10)
    assert ended(records)["promised"] <= 240
    assert records["greedy"].rejected


def test_elasticflow_lets_no_late_job_starve_those_that_can_be_in_time() -> None:
    """Half of the GPUs are lost after a minute: "late" had three and cannot make it with two; "due" needs one."""
    jobs = [elastic("late", 700, deadline_ms=240_000), elastic("due", 300, deadline_ms=400_000)]
    lost = Outage(node="gpu-1", at_ms=60_000, for_ms=1_000_000)
    records = play(elasticflow(), jobs, nodes=2, gpus=2, round_s=60, outages=(lost,))
    assert ended(records)["due"] <= 400
    assert ended(records)["late"] > 240
    assert records["late"].run_ms == records["late"].end_ms  # it goes on with what is left


def test_elasticflow_admits_what_is_due_sooner_if_nobody_becomes_late_by_it() -> None:
    jobs = [elastic("long", 300, deadline_ms=1_000_000), elastic("urgent", 60, at=10, deadline_ms=150_000)]
    records = play(elasticflow(), jobs, round_s=10)
    assert ended(records) == {"urgent": 70, "long": 360}


def test_elasticflow_counts_time_up_to_the_deadline_and_not_only_whole_slots() -> None:
    assert ended(play(elasticflow(), [elastic("tight", 290, deadline_ms=299_000)], round_s=60)) == {"tight": 290}


def test_elasticflow_knows_that_a_start_takes_time() -> None:
    job = elastic("slow to start", 300, deadline_ms=310_000, start_ms=30_000)
    assert play(elasticflow(), [job], round_s=60)["slow to start"].rejected


# -- Sia ------------------------------------------------------------------------------------------------------


def test_sia_gives_each_the_model_it_gains_from() -> None:
    cluster = (*uniform_nodes(1, 1, model="fast"), *uniform_nodes(1, 1, model="slow"))
    fast = Steady(duration_ms=600_000, speed_by_model={"fast": 10.0, "slow": 1.0})
    same = Steady(duration_ms=600_000, speed_by_model={"fast": 1.1, "slow": 1.0})
    jobs = [job("same", 600, work=same), job("gains", 600, work=fast)]
    ends = ended(play(sia(), jobs, cluster=cluster, round_s=60))
    assert ends["gains"] == 60
    assert ends["same"] == 300 + 272.727  # a tenth more speed is worth a restart from 300 / 330 > 1 / 1.1 on


def test_sia_sizes_by_goodput() -> None:
    jobs = [elastic("steep", 300, sizes=(1, 2, 4)), elastic("flat", 300, FLAT, sizes=(1, 2, 4))]
    records = play(sia(), jobs, nodes=1, gpus=4, round_s=60)
    assert ended(records)["steep"] < ended(records)["flat"]


def test_sia_solves_one_model_exactly_either_way() -> None:
    random = np.random.default_rng(5)
    options = [(i, 0, size, float(random.uniform(0, 1.2)) / size) for i in range(12) for size in (1, 2, 4, 8)]
    cost = {option[:3]: option[3] for option in options}
    found = []
    for chosen in (solve(options, [16]), solve_integer(options, [16])):
        assert sum(size for _, size in chosen.values()) <= 16
        found.append(sum(cost[index, *where] - 1.1 for index, where in chosen.items()))
    assert found[0] == pytest.approx(found[1], rel=2e-3)
    assert found[0] <= found[1] + 1e-9


def test_sia_places_sizes_that_do_not_divide_a_node() -> None:
    jobs = [job("three", 60, replicas=3), job("five", 60, replicas=5)]
    assert ended(play(sia(), jobs, nodes=2, gpus=4, round_s=60)) == {"three": 60, "five": 60}


def test_sia_takes_replicas_of_several_gpus() -> None:
    """A whole node, half a node, and two halves on whichever nodes have them."""
    jobs = [job("node", 60, 4), job("half", 60, 2), job("halves", 60, 2, replicas=2)]
    assert ended(play(sia(), jobs, nodes=3, gpus=4, round_s=60)) == {"node": 60, "half": 60, "halves": 60}


@pytest.mark.parametrize("make", [sia, pollux])
def test_rigid_jobs_of_any_size_find_their_place(make: Callable[[], RoundScheduler]) -> None:
    """Replicas of three GPUs, one to a node; "one" takes what they leave, and "three-c" waits for a node."""
    jobs = [job(f"three-{name}", 60, 3) for name in "abc"] + [job("one", 60)]
    ends = sorted(ended(play(make(), jobs, nodes=2, gpus=4, round_s=60)).values())
    assert [end - ends[0] for end in ends] == [0, 0, 0, 60]  # pollux lets a job come of age before it starts it


# -- Optimus of EuroSys, Pollux ----------------------------------------------------------------------------------


def test_the_other_optimus_gives_where_the_rest_of_the_run_shrinks_most() -> None:
    """One each; from 1000 s a second GPU takes 500 s, a third 167 s; from 100 s it would take 50 s."""
    jobs = [elastic("long", 1000), elastic("short", 100)]
    records = play(optimus_eurosys(), jobs, gpus=4, round_s=60)
    assert ended(records)["short"] == 100
    assert ended(records)["long"] == 120 + (1000 - 3 * 120) / 4


def test_pollux_shares_so_that_nobody_is_far_behind() -> None:
    """Equal shares of four GPUs are two each, where "flat" makes nothing of its second one."""
    jobs = [elastic("steep", 600, sizes=(1, 2, 4)), elastic("flat", 600, (1.0, 1.0, 1.0, 1.0))]
    records = play(pollux(), jobs, gpus=4, round_s=60)
    assert ended(records)["steep"] < ended(records)["flat"]


def test_pollux_takes_rigid_jobs_as_one_size() -> None:
    jobs = [job("rigid", 60, replicas=2), job("node", 60, 4, at=1), elastic("elastic", 60)]
    records = play(pollux(), jobs, nodes=2, gpus=4, round_s=60)
    assert records["rigid"].run_ms == records["node"].run_ms == 60_000


def test_pollux_says_which_clusters_it_takes() -> None:
    cluster = (*uniform_nodes(1, 4), *uniform_nodes(1, 8, model="large"))
    with pytest.raises(SimulationError, match="equal nodes"):
        play(pollux(), [job("a", 60)], cluster=cluster, round_s=60)


def test_the_other_optimus_takes_rigid_jobs_of_several_gpus() -> None:
    jobs = [job("node", 60, 4), job("half", 60, 2), elastic("elastic", 120)]
    assert ended(play(optimus_eurosys(), jobs, nodes=2, gpus=4, round_s=60))["elastic"] == 60


# -- work without GPUs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [afs, elasticflow, sia, pollux, optimus_eurosys, themis, tiresias, srtf, gavel_las])
def test_work_without_gpus_starts_at_once(make: Callable[[], RoundScheduler]) -> None:
    jobs = [job("gpu", 600), job("cpu", 30, 0, at=1)]
    records = play(make(), jobs, round_s=60)
    assert ended(records)["cpu"] == 90
    assert records["gpu"].run_ms == 600_000


# -- Themis ---------------------------------------------------------------------------------------------------


def test_themis_ranks_by_the_finish_time_ratio() -> None:
    """After 100 s of waiting the short job is worse off than the long one."""
    clock = Clockwork(Setup(nodes=uniform_nodes(1, 2)), [job("long", 1000), job("short", 10)])
    rho = [Themis().rho(run, 2, 2, 100_000) for run in clock.runs]
    assert rho == [1.1, 11.0]


def test_themis_changes_hands_only_when_a_lease_ends() -> None:
    jobs = [job("long", 4000), job("short", 600, at=60)]
    records = play(themis(), jobs, round_s=60)
    assert started(records) == {"long": 0, "short": 1200}
    assert records["long"].preemptions == 1
    assert ended(records) == {"short": 1800, "long": 4600}
