"""The synthetic mix: like what clusters publish, and the same for the same seed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from statistics import mean, median, pstdev

import pytest

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.shaping import gpu_ms
from optimus.drivers.sim.traces.synthetic import DAY_MS, Mix, generate
from optimus.drivers.sim.traces.trace import Trace, TraceError
from optimus.model.workloads import WorkloadClass


@pytest.fixture(scope="module", params=range(3))
def large(request: pytest.FixtureRequest) -> Trace:
    return generate(Mix(jobs=20_000, gpus=512, seed=request.param))


def seconds(job: Job) -> float:
    return job.work.ideal_ms() / 1000


def test_its_statistics_are_those_of_published_traces(large: Trace) -> None:
    jobs = large.jobs
    durations = [seconds(job) for job in jobs]
    big = [job for job in jobs if job.total_gpus >= 8]
    # one GPU: Philly 95 %, ITP 78 and 85 %
    assert 0.75 < sum(job.total_gpus == 1 for job in jobs) / len(jobs) < 0.95
    # median: Philly 874, PAI 481; mean over median: Philly 20.6, Seren 11.6, PAI 10.0
    assert 480 < median(durations) < 1_500
    assert 9 < mean(durations) / median(durations) < 21
    # GPUs of a job: Philly 1.93, ITP 1.84 and 2.04
    assert 1.7 < mean(job.total_gpus for job in jobs) < 2.2
    # 8 GPUs or more: 1.6 % of jobs and 61 % of GPU time (Philly), 7.4 % and 69 % (ITP 07), 7.6 % and 62 % (ITP 02)
    assert 0.015 < len(big) / len(jobs) < 0.08
    assert 0.5 < sum(map(gpu_ms, big)) / sum(map(gpu_ms, jobs)) < 0.7


def test_jobs_of_a_family_take_about_as_long_as_each_other(large: Trace) -> None:
    logs = defaultdict(list)
    for job in large.jobs:
        logs[job.queue, job.family].append(math.log(seconds(job)))
    inside = mean(pstdev(times) for times in logs.values() if len(times) > 10)
    assert inside < 0.7
    assert pstdev(log for times in logs.values() for log in times) > 1.8


def test_most_jobs_come_on_working_days_in_the_afternoon(large: Trace) -> None:
    days = Counter(job.submit_ms // DAY_MS % 7 for job in large.jobs if job.submit_ms < 14 * DAY_MS)
    assert days[5] + days[6] < 0.6 * (days[0] + days[1])
    hours = Counter(job.submit_ms // 3_600_000 % 24 for job in large.jobs)
    assert sum(hours[h] for h in (13, 14, 15, 16)) > 1.8 * sum(hours[h] for h in (1, 2, 3, 4))
    awake = Counter(
        job.submit_ms // 3_600_000 % 24 for job in large.jobs if job.workload_class is WorkloadClass.INTERACTIVE
    )
    assert sum(awake[h] for h in (13, 14, 15, 16)) > 5 * sum(awake[h] for h in (1, 2, 3, 4))


def test_tenants_differ_as_by_zipf_and_want_more_than_their_weight(large: Trace) -> None:
    jobs = Counter(job.queue for job in large.jobs)
    assert jobs["tenant-1"] == pytest.approx(2 * jobs["tenant-2"], rel=0.15)
    weights = {queue.name: queue.quotas[0].resources["gpu"].weight for queue in large.queues}
    assert (weights["tenant-1"], weights["tenant-4"]) == (100, 50)
    assert {job.queue for job in large.jobs} == set(weights)


def test_all_classes_are_there(large: Trace) -> None:
    classes = Counter(job.workload_class for job in large.jobs)
    share = {name: count / len(large.jobs) for name, count in classes.items()}
    assert share[WorkloadClass.UNATTENDED] == pytest.approx(0.85, abs=0.04)
    assert share[WorkloadClass.INTERACTIVE] == pytest.approx(0.12, abs=0.04)
    assert 0.01 < share[WorkloadClass.INFERENCE] < 0.06


def inside(trace: Trace, gpus: int) -> float:
    """The part of the cluster that is busy from the first submission to the last, if every job starts at once."""
    first, last = trace.jobs[0].submit_ms, trace.jobs[-1].submit_ms
    busy = sum(job.total_gpus * min(job.work.ideal_ms(), last - job.submit_ms) for job in trace.jobs)
    return busy / (last - first) / gpus


@pytest.mark.parametrize("load", [0.5, 1.0, 2.0])
def test_the_load_is_what_was_asked_for(load: float) -> None:
    by_jobs = generate(Mix(jobs=1000, gpus=128, load=load))
    assert inside(by_jobs, 128) == pytest.approx(load, rel=0.02)
    both = generate(Mix(jobs=1000, days=7, gpus=128, load=load))
    assert len(both.jobs) == 1000
    assert inside(both, 128) == pytest.approx(load, rel=0.02)
    assert max(job.submit_ms for job in both.jobs) < 7 * DAY_MS
    by_days = generate(Mix(days=28, gpus=128, load=load))
    assert inside(by_days, 128) == pytest.approx(load, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_a_small_trace_is_busy_while_its_jobs_come(seed: int) -> None:
    """The command of the README: one job of a week must not be most of the load."""
    trace = generate(Mix(jobs=100, gpus=32, load=1.1, seed=seed))
    assert inside(trace, 32) == pytest.approx(1.1, rel=0.02)
    first, last = trace.jobs[0].submit_ms, trace.jobs[-1].submit_ms
    assert last - first > 0.8 * DAY_MS
    assert max(job.work.ideal_ms() for job in trace.jobs) < 0.6 * (last - first)
    assert not trace.problems


def test_jobs_that_are_too_few_for_a_load_stay_as_they_are_and_it_is_said() -> None:
    trace = generate(Mix(jobs=5, gpus=64, load=0.8))
    (problem,) = trace.problems
    assert "5 jobs are too few for load 0.8 on 64 GPUs: it is 0." in problem.message


def test_same_seed_same_trace() -> None:
    assert generate(Mix(jobs=300, seed=7)) == generate(Mix(jobs=300, seed=7))
    assert generate(Mix(jobs=300, seed=7)) != generate(Mix(jobs=300, seed=8))


@pytest.mark.parametrize(("gpus", "per_node"), [(1, 1), (2, 2), (8, 8), (12, 4), (64, 8)])
def test_no_job_takes_more_than_half_of_a_cluster_of_several_gpus(gpus: int, per_node: int) -> None:
    trace = generate(Mix(jobs=500, gpus=gpus, gpus_per_node=per_node))
    assert max(job.total_gpus for job in trace.jobs) <= max(gpus // 2, 1)
    assert max(job.gpus for job in trace.jobs) <= per_node
    assert len({job.name for job in trace.jobs}) == 500
    assert [job.submit_ms for job in trace.jobs] == sorted(job.submit_ms for job in trace.jobs)


@pytest.mark.parametrize(
    ("mix", "why"),
    [
        (Mix(), "neither jobs nor days"),
        (Mix(jobs=0), "jobs is 0"),
        (Mix(days=0.0), "days is 0"),
        (Mix(jobs=1, load=0), "load is 0"),
        (Mix(jobs=1, gpus=12), "a multiple of the 8 GPUs"),
        (Mix(jobs=1, tenants=0), "tenants is 0"),
        (Mix(jobs=10**9), "write 1 to 2000000"),
        (Mix(days=1e9), "days is 1e\\+09; write more than 0 and at most 3650"),
        (Mix(days=3000, gpus=800_000), "more than 2000000 jobs; write fewer days"),
        (Mix(jobs=1, load=math.inf), "load is inf"),
        (Mix(jobs=1, load=math.nan), "load is nan"),
        (Mix(jobs=100_000, gpus=8, load=0.001), "in more than a hundred years; write a higher load"),
        (Mix(jobs=1, gpus=8 * 10**9), "write at most 1000000"),
        (Mix(jobs=1, tenants=10**9), "write 1 to 10000"),
    ],
)
def test_what_makes_no_sense_is_refused(mix: Mix, why: str) -> None:
    with pytest.raises(TraceError, match=why):
        generate(mix)


def test_one_job_is_a_trace() -> None:
    assert len(generate(Mix(jobs=1)).jobs) == 1
