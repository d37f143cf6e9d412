"""What a body tells the brain. Failures of actions come back here too.

Every observation is a fact about the outside world. `State.apply` takes them one by one and never
raises for a fact it cannot use: it says so in a `Problem` and goes on.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from optimus.model.nodes import Node
from optimus.model.packing import PackingTables
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.workloads import Workload


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class NodeSeen(Struct, frozen=True, tag=True):
    """A node appeared or changed."""

    node: Node


class NodeGone(Struct, frozen=True, tag=True):
    """The node left; whatever ran there is lost."""

    name: str


class PoolSeen(Struct, frozen=True, tag=True):
    pool: NodePool


class PoolGone(Struct, frozen=True, tag=True):
    name: str


class QueueSeen(Struct, frozen=True, tag=True):
    queue: Queue


class QueueGone(Struct, frozen=True, tag=True):
    name: str


class WorkloadSeen(Struct, frozen=True, tag=True):
    """A workload was submitted or its description changed."""

    workload: Workload


class WorkloadEnded(Struct, frozen=True, tag=True):
    """It is over; replicas that still exist are being stopped by the body."""

    workload: str
    outcome: Outcome = Outcome.SUCCEEDED


class SlotBinding(Struct, frozen=True, tag=True):
    """The body has asked for this replica to be started at its place."""

    workload: str
    role: str
    ordinal: int


class SlotRunning(Struct, frozen=True, tag=True):
    """A replica runs. `node` and `devices` are where it really is; empty means where it was placed."""

    workload: str
    role: str
    ordinal: int
    node: str = ""
    devices: tuple[int, ...] = ()
    since_ms: int | None = None


class SlotFailed(Struct, frozen=True, tag=True):
    """The replica could not be started at its place, or failed there; the place is free again, and its workload is not
    started anew before the time has passed."""

    workload: str
    role: str
    ordinal: int
    failure: str = ""
    retry_after_ms: int = 0


class SlotStopping(Struct, frozen=True, tag=True):
    """Somebody else is ending this replica; its room is busy until it is gone."""

    workload: str
    role: str
    ordinal: int


class SlotStays(Struct, frozen=True, tag=True):
    """The replica was told to stop, and somebody refused it: it runs on, and its workload is not asked again before the
    time has passed."""

    workload: str
    role: str
    ordinal: int
    failure: str = ""
    retry_after_ms: int = 0


class SlotDone(Struct, frozen=True, tag=True):
    """The replica has ended well while others of its gang go on: its room is free, and nobody misses it."""

    workload: str
    role: str
    ordinal: int


class SlotGone(Struct, frozen=True, tag=True):
    """The replica is gone, asked for or not; its room is free."""

    workload: str
    role: str
    ordinal: int


class Checkpointed(Struct, frozen=True, tag=True):
    workload: str
    at_ms: int


class SavesInTime(Struct, frozen=True, tag=True):
    """Whether the workload, told to stop now, saves its work within its grace: then stopping it loses nothing."""

    workload: str
    yes: bool = True


class ActivitySeen(Struct, frozen=True, tag=True):
    """The last moment at which the workload's GPUs were seen busy."""

    workload: str
    busy_at_ms: int


class Predicted(Struct, frozen=True, tag=True):
    """A forecast made outside the brain: how long the workload will run in all."""

    workload: str
    duration_ms: int
    high_ms: int | None = None


class RunRemembered(Struct, frozen=True, tag=True):
    """A run that ended before this engine began to watch, or on another cluster: history to learn from."""

    queue: str
    run_ms: int
    family: str = ""
    work_ms: int = 0
    """What one replica would have needed for it; 0 unknown."""


class ServiceRemembered(Struct, frozen=True, tag=True):
    """What the workload had received until then, before this engine began to watch."""

    workload: str
    at_ms: int
    elapsed_ms: int
    attained: int
    """Size x time."""
    worked: int
    """Speed x time."""


class UseRemembered(Struct, frozen=True, tag=True):
    """Past use of one queue, decayed until then, before this engine began to watch."""

    queue: str
    pool: str
    resource: str
    amount: str
    """In digits: it may need more than 64 bits."""
    at_ms: int


class TablesRefreshed(Struct, frozen=True, tag=True):
    """Packing tables learned from the mix of requests seen so far."""

    tables: PackingTables


class Tick(Struct, frozen=True, tag=True):
    """Nothing happened but time."""


Observation = (
    NodeSeen
    | NodeGone
    | PoolSeen
    | PoolGone
    | QueueSeen
    | QueueGone
    | WorkloadSeen
    | WorkloadEnded
    | SlotBinding
    | SlotRunning
    | SlotFailed
    | SlotStopping
    | SlotStays
    | SlotDone
    | SlotGone
    | Checkpointed
    | SavesInTime
    | ActivitySeen
    | Predicted
    | RunRemembered
    | ServiceRemembered
    | UseRemembered
    | TablesRefreshed
    | Tick
)
