"""Shaping: some of the jobs of a trace, at another load, with predictions.

Why: a published trace is too long, too light or too heavy for the cluster at hand, and tells no predictions.
Owns: what a trace offers a cluster, and the changes that keep its jobs what they are.
Must not: change how long a job takes or what it asks for, or leave jobs out without a note.

    offered load = sum of GPUs x duration / (GPUs of the cluster x time from the first to the last submission)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import structs

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.traces.gathering import equal_queues, moved
from optimus.drivers.sim.traces.trace import Trace, TraceError, TraceProblem, Verdict
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.units import LARGEST, format_duration_ms

BURST_MS = 600_000
LOADS = (0.001, 1000.0)
"""Beyond these nothing is learned: a job in a year, or all of them at once."""
MOST_SIGMA = 10.0
"""Of the logarithm: one prediction in three is then wrong by a factor of more than 20,000."""
LONGEST_SPAN_MS = 100 * 365 * 86_400_000


def gpu_ms(job: Job) -> float:
    """GPU time as its owner asked for it; parts of devices count as parts."""
    return float(job.replicas * job.gpus * job.gpu_milli) / WHOLE_DEVICE_MILLI * job.work.ideal_ms()


def offered_load(jobs: Sequence[Job], cluster_gpus: int) -> float:
    """1: as much work arrives as the cluster could do, if it could do it without a gap."""
    if cluster_gpus < 1:
        raise TraceError(f"cluster_gpus is {cluster_gpus}; a load needs a cluster")
    span = max((job.submit_ms for job in jobs), default=0) - min((job.submit_ms for job in jobs), default=0)
    return sum(map(gpu_ms, jobs)) / (cluster_gpus * span) if span else math.inf


def at_load(trace: Trace, load: float, cluster_gpus: int) -> Trace:
    """The same jobs, submitted faster or slower, so that they offer this load. Rhythms of days stretch along."""
    demand_load(load)
    if trace.endless:
        raise TraceError(f"{trace.name}: its jobs never end, so it has no load; leave the load away")
    now = offered_load(trace.jobs, cluster_gpus)
    if not 0 < now < math.inf:
        raise TraceError(f"{trace.name}: all jobs are submitted at once or none has GPUs; it has no load to change")
    first, factor = trace.jobs[0].submit_ms, now / load
    demand_span((trace.jobs[-1].submit_ms - first) * factor, load)
    jobs = (moved(job, round((job.submit_ms - first) * (factor - 1))) for job in trace.jobs)
    return structs.replace(trace, jobs=tuple(jobs))


def demand_load(load: float) -> None:
    least, most = LOADS
    if not least <= load <= most:
        raise TraceError(
            f"load is {load:g}; write how much of the cluster the jobs ask for, such as 0.8 ({least:g} to {most:g})"
        )


def demand_span(span_ms: float, load: float) -> None:
    if not span_ms <= LONGEST_SPAN_MS:
        raise TraceError(f"at load {load:g} the jobs would come in more than a hundred years; write a higher load")


def first_jobs(trace: Trace, count: int) -> Trace:
    if count < 0:
        raise TraceError(f"first_jobs is {count}; write how many to keep")
    return _chosen(trace, trace.jobs[:count], f"after the first {count}")


def within(trace: Trace, from_ms: int, until_ms: int) -> Trace:
    """Those submitted from one moment until before another; the first moment becomes 0."""
    jobs = tuple(moved(job, -from_ms) for job in trace.jobs if from_ms <= job.submit_ms < until_ms)
    window = f"{format_duration_ms(from_ms)} to {format_duration_ms(until_ms)}"
    return _chosen(trace, jobs, f"submitted outside {window}")


def at_least(trace: Trace, duration_ms: int) -> Trace:
    """Without jobs that are shorter."""
    jobs = tuple(job for job in trace.jobs if job.work.ideal_ms() >= duration_ms)
    return _chosen(trace, jobs, f"shorter than {format_duration_ms(duration_ms)}")


def with_predictions(trace: Trace, sigma: float, seed: int) -> Trace:
    """Schedulers are told the true duration times a log-normal error whose median is 1; 0 is an oracle."""
    if not 0 <= sigma <= MOST_SIGMA:
        raise TraceError(f"sigma is {sigma:g}; an error is 0 (none) to {MOST_SIGMA:g}, and 1 is already large")
    errors = np.exp(np.random.default_rng(seed).normal(0.0, sigma, len(trace.jobs))) if sigma else None
    jobs = []
    for i, job in enumerate(trace.jobs):
        error = 1.0 if errors is None else float(errors[i])
        jobs.append(structs.replace(job, expected_ms=min(max(round(job.work.ideal_ms() * error), 1), LARGEST)))
    return structs.replace(trace, jobs=tuple(jobs))


def with_tenants(trace: Trace, tenants: int, seed: int = 0) -> Trace:
    """Jobs of a trace that names nobody, given to tenants of equal weight: what is submitted in one burst (same family,
    at most ten minutes after the one before) belongs to one of them, the i-th drawn with probability ~ 1/i."""
    if tenants < 1:
        raise TraceError(f"tenants is {tenants}; write at least 1")
    random = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, tenants + 1)
    chance /= chance.sum()
    last: dict[str, tuple[int, str]] = {}
    jobs = []
    for job in trace.jobs:
        before, tenant = last.get(job.family, (-BURST_MS, ""))
        if not tenant or job.submit_ms - before > BURST_MS:
            tenant = f"tenant-{random.choice(tenants, p=chance) + 1}"
        last[job.family] = (job.submit_ms, tenant)
        jobs.append(structs.replace(job, queue=tenant))
    queues = equal_queues(job.queue for job in jobs)
    setup = structs.replace(trace.setup, queues=queues) if trace.setup else None
    return structs.replace(trace, jobs=tuple(jobs), queues=queues, setup=setup)


def _chosen(trace: Trace, jobs: tuple[Job, ...], without: str) -> Trace:
    gone = len(trace.jobs) - len(jobs)
    if not gone:
        return structs.replace(trace, jobs=jobs)
    file = trace.source.name if trace.source else trace.name
    note = TraceProblem(file=file, line=0, verdict=Verdict.NOTE, message=f"{gone} jobs {without} are not used")
    return structs.replace(trace, jobs=jobs, problems=(*trace.problems, note))
