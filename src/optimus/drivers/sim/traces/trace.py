"""A trace: jobs from a file, and what was wrong with the file.

Every row of a file is either a job or counted in `problems` with its line and what to do about it; nothing is dropped
silently, and a row that had to be changed to be usable says so.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup


class Verdict(StrEnum):
    LEFT_OUT = "left out"  # the row is no job
    CHANGED = "changed"  # the row is a job, but not quite as written
    NOTE = "note"  # about the file as a whole


class TraceProblem(Struct, frozen=True, kw_only=True):
    file: str
    line: int
    """Counted from 1 with the header; 0: the whole file."""
    verdict: Verdict
    message: str
    """What is wrong and what to do about it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.verdict}: {self.message}"


class TraceError(Exception):
    """The file cannot be used at all: it is missing, of another format, or lacks a column."""


class Trace(Struct, frozen=True, kw_only=True):
    name: str
    jobs: tuple[Job, ...]
    """In order of submission."""
    rows: int
    """Rows read: jobs plus those left out."""
    problems: tuple[TraceProblem, ...] = ()
    setup: Setup | None = None
    """The cluster the trace was recorded on or is published with, where that is known."""
    source: Path | None = None
