"""Some of the jobs, at another load, with predictions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.shaping import (
    at_least,
    at_load,
    first_jobs,
    gpu_ms,
    offered_load,
    with_predictions,
    with_tenants,
    within,
)
from optimus.drivers.sim.traces.trace import Trace, TraceError, Verdict
from optimus.drivers.sim.works.steady import Steady
from tests.sim.traces.lists import ITP, PHILLY, said, written


def job(name: str, submit_s: int, duration_s: int, gpus: int = 1, deadline_s: int | None = None) -> Job:
    return Job(
        name=name,
        submit_ms=submit_s * 1000,
        work=Steady(duration_ms=duration_s * 1000),
        gpus=gpus,
        deadline_ms=None if deadline_s is None else deadline_s * 1000,
    )


def trace_of(*jobs: Job) -> Trace:
    return Trace(name="made up", jobs=jobs, rows=len(jobs))


FOUR = trace_of(job("a", 0, 100, 4), job("b", 50, 10), job("c", 80, 190), job("d", 100, 200, 2, deadline_s=400))


def test_offered_load_is_work_over_room_and_time() -> None:
    # 4 x 100 + 10 + 190 + 2 x 200 = 1000 GPU seconds arrive in 100 s: ten GPUs would be busy
    assert offered_load(FOUR.jobs, 10) == 1.0
    assert offered_load(FOUR.jobs, 20) == 0.5
    assert offered_load(FOUR.jobs[:1], 20) == math.inf


def test_parts_of_devices_count_as_parts() -> None:
    half = Job(name="half", submit_ms=0, work=Steady(duration_ms=1000), gpu_milli=500)
    pair = Job(name="pair", submit_ms=0, work=Steady(duration_ms=1000, replicas=2), replicas=2)
    assert (gpu_ms(half), gpu_ms(pair)) == (500, 2000)


@pytest.mark.parametrize("load", [0.25, 1.0, 2.0])
def test_arrivals_are_stretched_or_compressed_to_a_load(load: float) -> None:
    shaped = at_load(FOUR, load, 10)
    assert offered_load(shaped.jobs, 10) == pytest.approx(load)
    assert [j.work for j in shaped.jobs] == [j.work for j in FOUR.jobs]
    assert [j.submit_ms for j in shaped.jobs] == pytest.approx([j.submit_ms / load for j in FOUR.jobs])


def test_a_deadline_stays_as_far_from_its_submission_as_it_was() -> None:
    shaped = at_load(FOUR, 0.5, 10).jobs[-1]
    assert shaped.deadline_ms is not None
    assert (shaped.submit_ms, shaped.deadline_ms - shaped.submit_ms) == (200_000, 300_000)


def test_a_window_begins_at_zero() -> None:
    shaped = within(FOUR, 50_000, 100_000)
    assert [(j.name, j.submit_ms) for j in shaped.jobs] == [("b", 0), ("c", 30_000)]
    assert said(shaped, Verdict.NOTE)[0] == "2 jobs submitted outside 50s to 1m40s are not used"


def test_the_first_ones_and_those_that_are_not_too_short() -> None:
    assert [j.name for j in first_jobs(FOUR, 2).jobs] == ["a", "b"]
    shaped = at_least(FOUR, 100_000)
    assert [j.name for j in shaped.jobs] == ["a", "c", "d"]
    assert said(shaped, Verdict.NOTE)[0] == "1 jobs shorter than 1m40s are not used"
    assert first_jobs(FOUR, 10).problems == ()


def test_an_oracle_knows_and_a_prediction_errs_by_a_factor() -> None:
    many = trace_of(*(job(f"{i}", i, 1000) for i in range(4000)))
    assert all(j.expected_ms == 1_000_000 for j in with_predictions(many, 0.0, seed=1).jobs)
    told = [math.log((j.expected_ms or 0) / 1_000_000) for j in with_predictions(many, 0.7, seed=1).jobs]
    assert float(np.mean(told)) == pytest.approx(0, abs=0.05)
    assert float(np.std(told)) == pytest.approx(0.7, abs=0.05)
    assert with_predictions(many, 0.7, seed=1) == with_predictions(many, 0.7, seed=1)
    assert with_predictions(many, 0.7, seed=1) != with_predictions(many, 0.7, seed=2)
    assert all(j.expected_ms is None for j in many.jobs)


def test_bursts_belong_to_tenants_some_of_which_want_more_than_others() -> None:
    minutes = [m for burst in range(200) for m in (burst * 60, burst * 60 + 5, burst * 60 + 14)]
    trace = with_tenants(trace_of(*(job(f"j{m}", m * 60, 60) for m in minutes)), 4, seed=1)
    owners = [each.queue for each in trace.jobs]
    assert owners[::3] == owners[1::3] == owners[2::3]
    counts = [owners.count(f"tenant-{i}") for i in (1, 2, 3, 4)]
    assert counts == sorted(counts, reverse=True) and min(counts) > 0
    assert [queue.name for queue in trace.queues] == ["tenant-1", "tenant-2", "tenant-3", "tenant-4"]
    assert trace == with_tenants(trace, 4, seed=1)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(TraceError, match="load is 0"):
        at_load(FOUR, 0, 10)
    with pytest.raises(TraceError, match="a load needs a cluster"):
        at_load(FOUR, 1, 0)
    with pytest.raises(TraceError, match="all jobs are submitted at once"):
        at_load(first_jobs(FOUR, 1), 1, 10)
    with pytest.raises(TraceError, match="an error is 0"):
        with_predictions(FOUR, -1, seed=0)
    with pytest.raises(TraceError, match="an error is 0"):
        with_predictions(FOUR, 1e9, seed=0)
    with pytest.raises(TraceError, match=r"0\.001 to 1000"):
        at_load(FOUR, 1e-300, 10)
    with pytest.raises(TraceError, match="tenants is 0"):
        with_tenants(FOUR, 0)


def test_all_of_it_while_loading(tmp_path: Path) -> None:
    path = written(tmp_path, "philly.csv", PHILLY)
    trace = load(path, cluster_gpus=16, min_duration_ms=31_000, target_load=0.5, prediction_sigma=0)
    assert [j.name for j in trace.jobs] == ["0", "2"]
    assert offered_load(trace.jobs, 16) == pytest.approx(0.5)
    assert [j.expected_ms for j in trace.jobs] == [120_000, 600_000]
    assert [j.name for j in load(path, from_ms=60_000).jobs] == ["1", "2"]
    assert [j.name for j in load(path, until_ms=60_000).jobs] == ["0"]
    assert len(load(path, first_jobs=1).jobs) == 1
    with pytest.raises(TraceError, match="give cluster_gpus"):
        load(written(tmp_path, "itp.csv", ITP), target_load=1.0)
