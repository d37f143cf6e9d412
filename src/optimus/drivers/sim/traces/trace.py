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
from optimus.model.nodes import Node
from optimus.model.queues import Queue

ENDLESS_MS = 1 << 52
"""The run time of a job that is only placed and never ends: longer than any simulation, and still a number."""


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
    """Rows read: jobs plus those left out. Choosing some of the jobs afterwards does not change it."""
    problems: tuple[TraceProblem, ...] = ()
    queues: tuple[Queue, ...] = ()
    """One for each tenant; every job is in one of them."""
    setup: Setup | None = None
    """The cluster the trace was recorded on or is published with, where that is known; with the queues."""
    endless: bool = False
    """Its jobs have no known run time and never end: placement can be measured on it, completion times cannot."""
    source: Path | None = None

    @property
    def left_out(self) -> int:
        """Rows of the list of jobs; those of tables beside it are not counted."""
        return sum(p.verdict is Verdict.LEFT_OUT for p in self.problems if self._is_own(p))

    @property
    def changed(self) -> int:
        """Rows; one that was changed in two ways counts once."""
        return len({p.line for p in self.problems if p.verdict is Verdict.CHANGED and self._is_own(p)})

    def _is_own(self, problem: TraceProblem) -> bool:
        return self.source is None or problem.file == self.source.name


def setup_on(trace: Trace, nodes: tuple[Node, ...]) -> Setup:
    """The set-up of a trace on other nodes than its own, or on some at all: its tenants stay."""
    known = trace.setup
    return Setup(
        nodes=nodes,
        pools=known.pools if known else (),
        queues=trace.queues,
        interval_ms=known.interval_ms if known else 0,
    )
