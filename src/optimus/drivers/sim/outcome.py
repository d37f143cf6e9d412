"""What came of a story: the record that people read as a table and programs as JSON.

Why: one record serves the command line, tests, bug reports and the documentation.
Owns: its fields. They are a promise: fields may be added, none changes its meaning while `version` stays.
Must not: contain anything that only Python understands.

Amounts are integers in the units of quotas: GPU and CPU in thousandths, memory in MiB, the rest in pieces.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.api.errors import FileError, SetAside
from optimus.model.plans import Condition
from optimus.model.reasons import Fact, Reason
from optimus.model.units import format_clock_ms

VERSION = 1


class Why(Struct, frozen=True, kw_only=True):
    """A reason, ready to be shown."""

    code: str
    text: str
    facts: dict[str, Fact]

    @classmethod
    def of(cls, reason: Reason | None) -> Why | None:
        return None if reason is None else cls(code=str(reason.code), text=reason.text(), facts=reason.facts)


class ReplicaTold(Struct, frozen=True, kw_only=True, rename="camel"):
    role: str
    ordinal: int
    node: str
    devices: tuple[int, ...]
    """Indices; on nodes whose devices are only counted, as many as it gets."""
    devices_known: bool
    gpu_milli_per_device: int
    phase: str
    """promised, starting, running or leaving."""


class Happened(Struct, frozen=True, kw_only=True, rename="camel"):
    cycle: int
    clock: str
    time: str
    kind: str
    replicas: int
    cause: Why | None
    beneficiary: str


class ReservationTold(Struct, frozen=True, kw_only=True, rename="camel"):
    pool: str
    clock: str
    time: str
    at_ms: int
    nodes: tuple[str, ...]


class WorkloadTold(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    """`namespace/name`."""
    queue: str
    workload_class: str
    priority: int
    state: str
    pool: str
    """Where its replicas are; empty if it has none."""
    replicas: tuple[ReplicaTold, ...]
    """Of a running workload those that run or start; else those with promised room; else those leaving."""
    reason: Why | None
    """Why it does not run."""
    cause: Why | None
    """Why it was last evicted, moved, shrunk or refused."""
    reservation: ReservationTold | None
    started: tuple[int, ...]
    """Cycles; so are the next four."""
    grown: tuple[int, ...]
    shrunk: tuple[int, ...]
    moved: tuple[int, ...]
    evicted: tuple[int, ...]
    happened: tuple[Happened, ...]


class QueueTold(Struct, frozen=True, kw_only=True, rename="camel"):
    """One resource of one pool, after the last cycle."""

    queue: str
    parent: str
    pool: str
    resource: str
    guarantee: int
    limit: int | None
    share: int
    allocated: int
    demand: int


class Line(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that happened before a cycle decided."""

    kind: str
    subject: str
    text: str


class ActionTold(Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str
    """Start, Grow, Hold, Shrink, Evict, Move, Drop (of room that was only held) or Reject."""
    workload: str
    text: str
    cause: Why | None = None
    beneficiary: str = ""
    replicas: tuple[ReplicaTold, ...] = ()
    """The places it gets: Start, Grow, Hold and Move."""
    given_up: tuple[ReplicaTold, ...] = ()
    """The places it gives up: Shrink, Evict, Move and Drop."""


class WaitTold(Struct, frozen=True, kw_only=True, rename="camel"):
    workload: str
    reason: Why
    reservation: ReservationTold | None = None


class CycleTold(Struct, frozen=True, kw_only=True, rename="camel"):
    number: int
    clock: str
    """For people: `14:20`, after midnight `day 2, 14:20`."""
    time: str
    """For programs: `2026-01-05T14:20:00Z`."""
    at_ms: int
    note: str
    events: tuple[Line, ...]
    actions: tuple[ActionTold, ...]
    waiting: tuple[WaitTold, ...]
    conditions: tuple[Condition, ...]
    problems: tuple[str, ...]
    """Facts that the scheduler could not use."""
    complete: bool
    """False: the work budget cut the plan short."""
    unreached: tuple[str, ...]


class Failure(Struct, frozen=True, kw_only=True, rename="camel"):
    """An expectation that does not hold."""

    path: str
    line: int
    column: int
    cycle: int
    """After which; the last one for what must be true at the end."""
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.subject}: {self.message}"


class Outcome(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    description: str
    files: tuple[str, ...]
    policy: str
    ok: bool
    """Every expectation holds, and the files have no errors but those they announce."""
    crash: str = ""
    """Why the story could not be played to its end; empty if it was."""
    cycles: tuple[CycleTold, ...] = ()
    workloads: tuple[WorkloadTold, ...] = ()
    queues: tuple[QueueTold, ...] = ()
    checked: int = 0
    """Number of expectations looked at."""
    failures: tuple[Failure, ...] = ()
    errors: tuple[FileError, ...] = ()
    set_aside: tuple[SetAside, ...] = ()


class Outcomes(Struct, frozen=True, kw_only=True, rename="camel"):
    """Several stories, each a world of its own."""

    version: int = VERSION
    ok: bool
    scenarios: tuple[Outcome, ...]


def clock_of(at_ms: int, start_ms: int) -> str:
    """`14:20`; after midnight with the day of the story: `day 2, 14:20`."""
    day = at_ms // 86_400_000 - start_ms // 86_400_000
    return format_clock_ms(at_ms) if day == 0 else f"day {day + 1}, {format_clock_ms(at_ms)}"
