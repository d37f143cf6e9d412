"""Columns: jobs and what became of them as arrays, one entry per job in the order of the record.

Why: sixty thousand jobs are measured in a fraction of a second, and every metric starts from the same numbers.
Owns: the pairing of jobs with their records, and what follows for each job alone: completion, waits, useful time.
Must not: average anything, or know more than one record.

Of the time that a job had GPUs, part was a pause (start, restart) and part was work that was lost and done again. The
rest was useful: `gpu = paused + lost + useful`, to the last thousandth. Lost work is told as part of the whole; its GPU
time is the same part of the time worked, which is exact where the speed per GPU does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.records import Record

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SIZES = ("1", "2-8", "9-64", ">64")
"""Classes by the GPUs asked for; the first also holds parts of a GPU and work without."""
_SIZE_ENDS = (1, 8, 64)


class MeasureError(ValueError):
    """The jobs are not those of the record."""


class Asked(Struct, frozen=True, kw_only=True, eq=False):
    """What the jobs asked for and how long they would take undisturbed. The same for every scheduler."""

    names: tuple[str, ...]
    submit_ms: Ints
    gpus: Floats
    """As asked for; parts of a device count as parts."""
    ideal_ms: Floats
    deadline_ms: Floats
    """NaN where there is none."""
    queue: Ints
    """Index into `queues`."""
    queues: tuple[str, ...]
    size: Ints
    """Index into SIZES."""


def ask(jobs: Sequence[Job]) -> Asked:
    """In the order of records: by submission, then by name. Do it once for several records of the same jobs."""
    ordered = sorted(jobs, key=lambda job: (job.submit_ms, job.name))
    queues = tuple(sorted({job.queue for job in ordered}))
    number = {queue: i for i, queue in enumerate(queues)}
    devices = np.array([job.total_gpus for job in ordered], np.int64)
    deadlines = [np.nan if job.deadline_ms is None else float(job.deadline_ms) for job in ordered]
    return Asked(
        names=tuple(job.name for job in ordered),
        submit_ms=np.array([job.submit_ms for job in ordered], np.int64),
        gpus=np.array([job.replicas * job.gpu_milli_per_replica / 1000 for job in ordered], np.float64),
        ideal_ms=np.array([max(job.work.ideal_ms(), 1.0) for job in ordered], np.float64),
        deadline_ms=np.array(deadlines, np.float64),
        queue=np.array([number[job.queue] for job in ordered], np.int64),
        queues=queues,
        size=np.searchsorted(_SIZE_ENDS, devices).astype(np.int64),
    )


class Pieces(Struct, frozen=True, kw_only=True, eq=False):
    """The segments of a record, by job and time."""

    job: Ints
    start_ms: Ints
    end_ms: Ints
    gpus: Floats


class Columns(Struct, frozen=True, kw_only=True, eq=False):
    asked: Asked
    finished: Bools
    rejected: Bools
    started: Bools
    left_ms: Ints
    """When it was there no more: its end, its refusal, or the end of the record."""
    jct_ms: Floats
    """NaN unless it finished; so are the next two where they have no meaning."""
    first_wait_ms: Floats
    wait_ms: Floats
    """All time without resources; so far, where the job has not finished. NaN when it was refused."""
    longest_wait_ms: Floats
    """The longest time without resources at a stretch; NaN when it was refused."""
    gpu_ms: Floats
    paused_gpu_ms: Floats
    lost_gpu_ms: Floats
    useful_gpu_ms: Floats
    leaving_gpu_ms: Floats
    kept_gpu_ms: Floats
    done: Floats
    pieces: Pieces
    end_ms: int
    """Of the record."""


def columns(record: Record, asked: Asked) -> Columns:
    rows = record.jobs
    if tuple(row.name for row in rows) != asked.names:
        raise MeasureError(f"the record of {record.scheduler} is not of these jobs; pass the jobs it was played with")
    submit = asked.submit_ms
    start = _maybe([row.start_ms for row in rows])
    end = _maybe([row.end_ms for row in rows])
    rejected = np.array([bool(row.rejected) for row in rows], np.bool_)
    finished = ~np.isnan(end) & ~rejected
    refused = _maybe([row.rejected_ms for row in rows])
    gone = np.where(rejected, np.where(np.isnan(refused), submit, refused), record.end_ms)
    left = np.where(finished, end, np.maximum(gone, submit)).astype(np.int64)
    run = np.array([row.run_ms for row in rows], np.float64)
    pieces = _pieces(record)
    gpu, paused, lost, useful = _spent(record, finished, rejected)
    return Columns(
        asked=asked,
        finished=finished,
        rejected=rejected,
        started=~np.isnan(start),
        left_ms=left,
        jct_ms=np.where(finished, end - submit, np.nan),
        first_wait_ms=start - submit,
        wait_ms=np.where(rejected, np.nan, left - submit - run),
        longest_wait_ms=np.where(rejected, np.nan, _longest_gap(pieces, submit, left)),
        gpu_ms=gpu,
        paused_gpu_ms=paused,
        lost_gpu_ms=lost,
        useful_gpu_ms=useful,
        leaving_gpu_ms=np.array([row.leaving_gpu_ms for row in rows], np.float64),
        kept_gpu_ms=np.array([row.held_gpu_ms for row in rows], np.float64),
        done=np.where(finished, 1.0, [row.done for row in rows]),
        pieces=pieces,
        end_ms=record.end_ms,
    )


def _maybe(values: list[int | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _pieces(record: Record) -> Pieces:
    flat = np.fromiter(chain.from_iterable(record.segments), np.int64, 5 * len(record.segments)).reshape(-1, 5)
    flat = flat[np.lexsort((flat[:, 1], flat[:, 0]))]
    return Pieces(job=flat[:, 0], start_ms=flat[:, 1], end_ms=flat[:, 2], gpus=flat[:, 3] / 1000)


def _spent(record: Record, finished: Bools, rejected: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    gpu = np.array([row.gpu_ms for row in record.jobs], np.float64)
    paused = np.minimum([row.paused_gpu_ms for row in record.jobs], gpu)
    again = np.array([row.lost for row in record.jobs], np.float64)
    done = np.where(finished, 1.0, [row.done for row in record.jobs])
    kept = np.where(rejected, 0.0, done)  # what a job had done when it was taken out for good is of no use
    part = np.divide(kept, done + again, out=np.zeros_like(done), where=done + again > 0)
    useful = (gpu - paused) * part
    return gpu, paused, gpu - paused - useful, useful


def _longest_gap(pieces: Pieces, submit: Ints, left: Ints) -> Floats:
    """Before the first segment, between segments, and after the last one."""
    longest = np.zeros(len(submit), np.float64)
    first = np.searchsorted(pieces.job, np.arange(len(submit)), side="left")
    last = np.searchsorted(pieces.job, np.arange(len(submit)), side="right") - 1
    ran = last >= first
    longest[~ran] = (left - submit)[~ran]
    longest[ran] = np.maximum(
        pieces.start_ms[first[ran]] - submit[ran], left[ran] - np.minimum(pieces.end_ms[last[ran]], left[ran])
    )
    same = pieces.job[1:] == pieces.job[:-1]
    np.maximum.at(longest, pieces.job[1:][same], (pieces.start_ms[1:] - pieces.end_ms[:-1])[same])
    return longest
