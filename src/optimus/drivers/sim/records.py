"""What happened in a simulation: one row per job, and one segment for each stretch of time at one place.

Everything a report shows is computed from these; nothing else is kept.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class Segment(NamedTuple):
    job: int
    """Row of the record's jobs."""
    start_ms: int
    end_ms: int
    gpu_milli: int
    nodes: int


class JobRecord(Struct, kw_only=True):
    name: str
    submit_ms: int
    start_ms: int | None = None
    """The first time it had its place."""
    end_ms: int | None = None
    rejected: str = ""
    """Why it was refused for good; empty when it was not."""
    rejected_ms: int | None = None
    preemptions: int = 0
    restarts: int = 0
    resizes: int = 0
    failures: int = 0
    losses: int = 0
    """Times it lost its place because a node was lost."""
    run_ms: int = 0
    """Time with resources, pauses included."""
    gpu_ms: int = 0
    held_gpu_ms: int = 0
    """GPU time kept for it while it could not work: part of its gang had no place. Not in `gpu_ms` nor in segments."""
    paused_gpu_ms: int = 0
    """Of `gpu_ms`, spent on starting and restarting instead of working."""
    leaving_gpu_ms: int = 0
    """Beyond `gpu_ms`: devices that nobody else could have yet while replicas wrote their checkpoint and left."""
    lost: float = 0.0
    """Work that had to be done again, as part of the whole."""
    done: float = 0.0
    """Work that is done when the record ends, as part of the whole."""


class Record(Struct, kw_only=True):
    scheduler: str
    jobs: list[JobRecord]
    segments: list[Segment]
    decisions: int
    end_ms: int
