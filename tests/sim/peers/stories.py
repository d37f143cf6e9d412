"""Tiny worlds in which a peer's decision can be worked out by hand. Times are in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optimus.drivers.sim.clockwork import Clockwork, Scheduler
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.records import JobRecord
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady


def job(name: str, seconds: float, gpus: int = 1, at: float = 0, *, replicas: int = 1, **more: Any) -> Job:
    """`gpus` of each replica. It restarts for free unless it says otherwise, so that times are easy to work out."""
    work = more.pop("work", None) or Steady(duration_ms=seconds * 1000, replicas=replicas)
    return Job(
        name=name,
        submit_ms=round(at * 1000),
        work=work,
        gpus=gpus,
        replicas=replicas,
        restart_ms=more.pop("restart_ms", 0),
        **more,
    )


def play(
    scheduler: Scheduler, jobs: Iterable[Job], *, nodes: int = 1, gpus: int = 1, round_s: int = 0, **setup: Any
) -> dict[str, JobRecord]:
    """Records by name, after everything is over."""
    cluster = setup.pop("cluster", None) or uniform_nodes(nodes, gpus)
    clock = Clockwork(Setup(nodes=cluster, interval_ms=round_s * 1000, **setup), list(jobs))
    return {record.name: record for record in clock.play(scheduler).jobs}


def started(records: dict[str, JobRecord]) -> dict[str, float]:
    return {name: r.start_ms / 1000 for name, r in records.items() if r.start_ms is not None}


def ended(records: dict[str, JobRecord]) -> dict[str, float]:
    return {name: r.end_ms / 1000 for name, r in records.items() if r.end_ms is not None}
