"""Small records written by hand, in minutes, so that every number of a test can be worked out on paper."""

from __future__ import annotations

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import Measured, measure
from optimus.drivers.sim.records import JobRecord, Record, Segment
from optimus.drivers.sim.setup import Setup, uniform_nodes
from optimus.drivers.sim.works.steady import Steady

MINUTE = 60_000
FOUR_GPUS = Setup(nodes=uniform_nodes(1, 4))


def job(
    name: str, submit: float, gpus: int, ideal: float, *, queue: str = "default", deadline: float | None = None
) -> Job:
    return Job(
        name=name,
        submit_ms=round(submit * MINUTE),
        replicas=gpus,
        work=Steady(duration_ms=ideal * MINUTE, replicas=gpus),
        queue=queue,
        deadline_ms=None if deadline is None else round(deadline * MINUTE),
    )


def record(
    name: str,
    jobs: list[Job],
    ran: dict[str, list[tuple[float, float]]],
    *,
    open_: tuple[str, ...] = (),
    end: float = 0,
) -> Record:
    """Who ran from when to when, with all GPUs asked for; all of them finish but those that stay open."""
    rows, segments = [], []
    for i, each in enumerate(sorted(jobs, key=lambda job: (job.submit_ms, job.name))):
        row = JobRecord(name=each.name, submit_ms=each.submit_ms)
        for begin, until in ran.get(each.name, []):
            piece = Segment(i, round(begin * MINUTE), round(until * MINUTE), each.total_gpus * 1000, 1)
            segments.append(piece)
            row.start_ms = piece.start_ms if row.start_ms is None else row.start_ms
            row.run_ms += piece.end_ms - piece.start_ms
            row.gpu_ms += (piece.end_ms - piece.start_ms) * each.total_gpus
            if each.name not in open_:
                row.end_ms, row.done = piece.end_ms, 1.0
        rows.append(row)
    last = max((piece.end_ms for piece in segments), default=0)
    return Record(scheduler=name, jobs=rows, segments=segments, decisions=7, end_ms=max(last, round(end * MINUTE)))


def measured(
    name: str, jobs: list[Job], ran: dict[str, list[tuple[float, float]]], setup: Setup = FOUR_GPUS
) -> Measured:
    return measure(record(name, jobs, ran), jobs, setup)
