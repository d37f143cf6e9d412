"""A small study of two schedulers that every test of the reports can look at."""

from __future__ import annotations

import numpy as np

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import Measured, Provenance, Study, study
from tests.sim.measuring.worlds import FOUR_GPUS, job, measured

JOBS = [
    job("first", 0, 4, 60, queue="vision"),
    job("second", 0, 2, 30, queue="speech"),
    job("third", 30, 1, 10, queue="speech", deadline=120),
]
IN_ORDER: dict[str, list[tuple[float, float]]] = {"first": [(0, 60)], "second": [(60, 90)], "third": [(60, 70)]}
SHORT_FIRST: dict[str, list[tuple[float, float]]] = {"first": [(40, 100)], "second": [(0, 30)], "third": [(30, 40)]}


def both(jobs: list[Job] | None = None) -> list[Measured]:
    jobs = jobs or JOBS
    return [measured("in order", jobs, IN_ORDER), measured("short first", jobs, SHORT_FIRST)]


def small_study(**told: str) -> Study:
    provenance = Provenance(trace=told.get("trace", "three jobs"), problems=("jobs.csv:3: left out: no duration",))
    return study([both()], FOUR_GPUS, provenance)


def many_jobs(count: int, schedulers: int = 2, seed: int = 0) -> Study:
    """Every job runs once after some wait, regardless of capacity: only the drawing is looked at."""
    rng = np.random.default_rng(seed)
    at, size = np.sort(rng.uniform(0, count / 10, count)), rng.choice([1, 2, 16, 100], count)
    jobs = [
        job(f"job-{i:05d}", float(at[i]), int(size[i]), float(rng.lognormal(2, 1)), queue=f"team-{i % 12}")
        for i in range(count)
    ]
    rows = []
    for k in range(schedulers):
        ran = {}
        for each in jobs:
            begin = each.submit_ms / 60_000 + float(rng.exponential(20 + 5 * k))
            ran[each.name] = [(begin, begin + each.work.ideal_ms() / 60_000)]
        rows.append(measured(f"scheduler {k}", jobs, ran))
    return study([rows], FOUR_GPUS, Provenance(trace="many"))
