"""A scenario as the runner gets it: a world, what happens to it, and what must be true.

Why: the file is for people; this is what remains when names are resolved, times are numbers and copies are unfolded.
Owns: the structs of a story and of its expectations, each with the place in the file it came from.
Must not: run anything.

    opening ─► cycle 1: events, decide, expectations ─► between ─► cycle 2: events, decide, … ─► final expectations
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from optimus.api.marks import Mark
from optimus.model.nodes import Node
from optimus.model.observations import Observation
from optimus.model.plans import Budget
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.reasons import Code
from optimus.model.settings import Settings
from optimus.model.workloads import Workload


class ExpectedState(StrEnum):
    RUNNING = "running"  # placed: its replicas run or have been told to start
    HELD = "held"  # room is kept for it; it waits for others to leave
    PENDING = "pending"  # waits, for a reason
    STOPPING = "stopping"  # told to stop, still in its room
    STOPPED = "stopped"  # over by decision: refused, or taken out for good
    FINISHED = "finished"  # over by itself: an event of the file said so
    INVALID = "invalid"  # the file is wrong about it, so it never took part


class Range(Struct, frozen=True):
    least: int
    most: int | None
    """None: no upper bound."""

    def holds(self, value: int) -> bool:
        return value >= self.least and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        if self.most == self.least:
            return str(self.least)
        return f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"


class Times(Struct, frozen=True):
    """In which cycles something happened, counted from 1."""

    cycles: tuple[int, ...] | None
    """None: at least once, whenever. Empty: never."""

    def holds(self, happened: tuple[int, ...]) -> bool:
        """`happened` lists the cycles so far in which it did."""
        return bool(happened) if self.cycles is None else tuple(sorted(set(happened))) == self.cycles

    def __str__(self) -> str:
        if self.cycles is None:
            return "at some time"
        return "never" if not self.cycles else "in cycle " + ", ".join(map(str, self.cycles))


class WorkloadExpected(Struct, frozen=True, kw_only=True):
    """Every field that is not None must hold for the workloads, or for `count` of them."""

    mark: Mark
    written: str
    """The key in the file: a name, or a pattern such as `small-*`."""
    workloads: tuple[str, ...]
    """Ids."""
    count: Range | None = None
    """How many of them must match; None means all."""
    state: ExpectedState | None = None
    replicas: Range | None = None
    """All roles together."""
    replicas_by_role: dict[str, Range] = {}
    nodes: tuple[str, ...] | None = None
    """Exactly the nodes that have a replica, sorted."""
    within: tuple[str, ...] | None = None
    """No replica is outside these nodes."""
    devices: dict[str, tuple[int, ...]] | None = None
    """Node -> exactly the device indices in use, sorted."""
    pool: str | None = None
    domains: dict[str, Range] = {}
    """Topology level -> in how many domains its replicas are; `host` counts nodes, `nvlink` NVLink groups."""
    reason: Code | None = None
    says: str | None = None
    """A part of the reason's sentence."""
    cause: Code | None = None
    """Why it was last evicted, moved or shrunk."""
    reserved: bool | None = None
    started: Times | None = None
    grown: Times | None = None
    shrunk: Times | None = None
    moved: Times | None = None
    evicted: Times | None = None


class QueueExpected(Struct, frozen=True, kw_only=True):
    mark: Mark
    queue: str
    pool: str
    share: dict[str, int] = {}
    """Resource -> amount, in the units of `Quota`."""
    allocated: dict[str, int] = {}
    demand: dict[str, int] = {}
    running: Range | None = None
    """Workloads of this very queue."""
    pending: Range | None = None


class NodeExpected(Struct, frozen=True, kw_only=True):
    mark: Mark
    nodes: tuple[str, ...]
    workloads: tuple[str, ...] | None = None
    """Exactly the ids that have a replica there, sorted."""
    free_gpu_milli: Range | None = None


class PlanExpected(Struct, frozen=True, kw_only=True):
    mark: Mark
    empty: bool | None = None
    complete: bool | None = None
    actions: dict[str, Range] = {}
    """Kind of action (`Start`, `Evict`, `Move` …) -> how many. `Move` counts evictions with a new place."""
    conditions: tuple[str, ...] = ()
    """Codes that must be among the plan's conditions."""


class Expectations(Struct, frozen=True, kw_only=True):
    workloads: tuple[WorkloadExpected, ...] = ()
    queues: tuple[QueueExpected, ...] = ()
    nodes: tuple[NodeExpected, ...] = ()
    plan: PlanExpected | None = None

    def __bool__(self) -> bool:
        return bool(self.workloads or self.queues or self.nodes or self.plan)


class Cycle(Struct, frozen=True, kw_only=True):
    number: int
    """From 1."""
    at_ms: int
    note: str = ""
    events: tuple[Observation, ...] = ()
    """What the body reports before this cycle decides, in order."""
    failing_starts: dict[str, str] = {}
    """Workload -> failure: the body cannot start what this cycle's plan starts of it."""
    expect: Expectations = Expectations()
    """Must hold when this cycle's plan has been taken up."""


class Between(Struct, frozen=True, kw_only=True):
    """What becomes of a plan until the next cycle."""

    advance_ms: int = 60_000
    starts_in_ms: int = 0
    """Started replicas run after this time; 0: by the next cycle."""
    slow_stop: bool = False
    """Stopped replicas keep their room for the grace of their workload; else they are gone by the next cycle."""
    ends_on_time: bool = False
    """Work that said how long it takes ends when it has run that long."""


class Scenario(Struct, frozen=True, kw_only=True):
    name: str = ""
    description: str = ""
    start_ms: int = 0
    seed: int = 0
    policy: str = ""
    """Name, or `file.py:name`; empty means the default."""
    settings: Settings = Settings()
    budget: Budget = Budget()
    nodes: tuple[Node, ...] = ()
    pools: tuple[NodePool, ...] = ()
    queues: tuple[Queue, ...] = ()
    workloads: tuple[Workload, ...] = ()
    """Those that are there when the story begins."""
    opening: tuple[Observation, ...] = ()
    """The world above and where its work runs, as observations at `start_ms`."""
    between: Between = Between()
    cycles: tuple[Cycle, ...] = ()
    expect: Expectations = Expectations()
    """Must hold after the last cycle."""
