"""Lists of jobs as Microsoft published them: what a row becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.gathering import split_gpus
from optimus.drivers.sim.traces.trace import TraceError, Verdict, setup_on
from optimus.drivers.sim.works import Spread
from tests.sim.traces.lists import ITP, PHILLY, THROUGHPUTS, said, steady, with_rows, written


def test_a_philly_row_is_a_rigid_job_of_its_virtual_cluster(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "philly.csv.gz", PHILLY))
    first = trace.jobs[0]
    assert (trace.name, trace.rows, len(trace.jobs), trace.problems) == ("philly", 3, 3, ())
    assert (first.name, first.submit_ms, first.queue, first.replicas, first.gpus) == ("0", 0, "blue", 1, 8)
    assert [job.submit_ms for job in trace.jobs] == [0, 60_000, 120_000]
    assert steady(trace, "1").duration_ms == 30_500


def test_a_job_larger_than_a_node_is_split_into_equal_replicas(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "philly.csv", PHILLY))
    large = trace.jobs[1]
    assert (large.replicas, large.gpus, large.total_gpus) == (2, 6, 12)
    assert steady(trace, "1").replicas == 2


@pytest.mark.parametrize(
    ("gpus", "per_node", "split"),
    [
        (1, 8, (1, 1)),
        (8, 8, (1, 8)),
        (12, 8, (2, 6)),
        (16, 8, (2, 8)),
        (20, 8, (4, 5)),
        (24, 8, (3, 8)),
        (13, 8, (13, 1)),  # a prime has no equal parts but ones
        (12, 4, (3, 4)),
        (6, 4, (2, 3)),
        (5, 1, (5, 1)),
    ],
)
def test_splits(gpus: int, per_node: int, split: tuple[int, int]) -> None:
    assert split_gpus(gpus, per_node) == split


def test_tenants_are_queues_of_equal_weight(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "philly.csv", PHILLY), cluster_gpus=64)
    assert [queue.name for queue in trace.queues] == ["blue", "red"]
    assert {queue.quotas[0].resources["gpu"].weight for queue in trace.queues} == {1}
    assert trace.setup is not None
    assert trace.setup.queues == trace.queues
    assert [len(node.devices) for node in trace.setup.nodes] == [8] * 8
    elsewhere = setup_on(trace, trace.setup.nodes[:2])
    assert (len(elsewhere.nodes), elsewhere.queues) == (2, trace.queues)


def test_the_family_of_an_itp_job_is_its_model(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "cluster01.csv", ITP))
    assert [(job.name, job.family, job.submit_ms) for job in trace.jobs] == [("0", "vgg16", 0), ("1", "bert", 60_000)]
    assert [job.deadline_ms for job in trace.jobs] == [None, None]


def test_deadlines_that_were_made_up_are_taken_when_asked_for_and_move_with_the_jobs(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "cluster01.csv", ITP), deadlines=True)
    assert [job.deadline_ms for job in trace.jobs] == [150_000, 500_000]


def test_with_throughputs_an_itp_job_can_change_its_size(tmp_path: Path) -> None:
    speeds = written(tmp_path, "throughputs.csv", THROUGHPUTS)
    trace = load(written(tmp_path, "cluster01.csv", ITP), throughputs=speeds)
    job, work = trace.jobs[0], steady(trace, "0")
    assert (job.replicas, job.gpus, job.least, job.most, job.sizes) == (4, 1, 1, 4, (1, 2, 4))
    assert job.speedup_percent == (100, 150, 175, 200)
    # 100 s on four GPUs at 4 steps a second; with two it is 3, with one 2
    assert [work.speed(Spread((size,))) for size in (4, 2, 1)] == [1.0, 0.75, 0.5]


def test_a_job_whose_speed_was_not_measured_stays_as_it_is_and_says_so(tmp_path: Path) -> None:
    speeds = written(tmp_path, "throughputs.csv", THROUGHPUTS)
    trace = load(written(tmp_path, "cluster01.csv", ITP), throughputs=speeds)
    job = trace.jobs[1]
    assert (job.least, job.most, trace.changed) == (1, 1, 1)
    assert "no speed of bert with batch size 32 on 1 GPUs" in said(trace, Verdict.CHANGED)[3]


def test_a_cluster_is_whole_nodes(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="multiple of the 8 GPUs"):
        load(written(tmp_path, "philly.csv", PHILLY), cluster_gpus=12)


def test_a_job_that_no_cluster_can_hold_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, "philly.csv", with_rows(PHILLY, "0,2017-09-04 10:30:00,60,64,blue"))
    assert load(path).jobs
    trace = load(path, cluster_gpus=32)
    assert (len(trace.jobs), trace.left_out) == (0, 1)
    assert said(trace, Verdict.LEFT_OUT)[2] == "asks for 64 GPUs, and the cluster has 32; it could never start"
