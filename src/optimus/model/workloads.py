"""Workloads: gangs of replicas with what they need and what they may be asked to give up.

A gang is a tree. The root group exists once; every other group exists in `min..max` copies, and every
copy keeps its own topology constraint. Replicas live in roles, the leaves:

    gang ── groups: stage × 4 (each inside one rack)
               └── groups: tensor × 2 (each inside one NVLink domain)
                      └── roles: worker × 8

A slot is (workload, role, ordinal); ordinals count through the copies in order, so the replica's place
in the tree follows from its ordinal (see `optimus.model.gangs`).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from optimus.model.nodes import WHOLE_DEVICE_MILLI, Toleration
from optimus.model.reasons import Reason
from optimus.model.rules import Where

ANY_POOL = "any"


class WorkloadClass(StrEnum):
    INTERACTIVE = "interactive"
    UNATTENDED = "unattended"
    INFERENCE = "inference"


CLASS_PRIORITY = {
    WorkloadClass.INFERENCE: 300,
    WorkloadClass.INTERACTIVE: 200,
    WorkloadClass.UNATTENDED: 100,
}


class Preemptible(StrEnum):
    """Whether running work may be taken out for other work."""

    DEFAULT = "default"  # unattended: yes; interactive and inference: only outside the guarantee
    YES = "yes"
    NO = "no"  # never; is admitted only inside the guarantee
    SURPLUS = "surplus"  # the minimum counts as NO, what is above it as YES
    LENT = "lent"  # only outside the guarantee of its queue, whatever its class


class OnLoss(StrEnum):
    """What a gang does when it falls below its minimum."""

    REPLACE = "replace"  # wait for replacements as long as the grace lasts, then restart as a whole
    RESTART = "restart"  # restart as a whole at once


class ModelSpeed(Struct, frozen=True):
    model: str
    speed_percent: int = 100


class Request(Struct, frozen=True, kw_only=True):
    """What one replica needs."""

    gpu_count: int = 0
    gpu_milli: int = WHOLE_DEVICE_MILLI
    """Of each device. Below 1000 the device is shared."""
    gpu_limit_milli: int = 0
    """How far the share may grow while the device is idle; 0 means not beyond `gpu_milli`."""
    gpu_memory_mib: int = 0
    """Instead of `gpu_milli`: the share follows from the memory of the device that is found."""
    models: tuple[ModelSpeed, ...] = ()
    """Allowed GPU models with their relative speed; empty means any."""
    activity_milli: int = 0
    """Predicted share of the device's time that this replica keeps busy; 0 means unknown."""
    cpu_milli: int = 0
    memory_mib: int = 0
    accelerators: tuple[tuple[str, int], ...] = ()
    """(name, count), sorted by name: TPUs, FPGAs, MIG instances (`mig-1g.5gb`)."""


class Topology(Struct, frozen=True):
    """Levels are label keys of the pool, or `host`, or `nvlink`."""

    required: str = ""
    preferred: str = ""


class Role(Struct, frozen=True, kw_only=True):
    name: str
    min: int = 1
    max: int = 1
    sizes: tuple[int, ...] = ()
    """Allowed counts, ascending, from `min` to `max`; empty means any."""
    request: Request = Request()
    topology: Topology = Topology()
    where: Where = Where()
    """Beside the selector and the tolerations of the workload."""


class Group(Struct, frozen=True, kw_only=True):
    name: str = ""
    min: int = 1
    max: int = 1
    sizes: tuple[int, ...] = ()
    topology: Topology = Topology()
    groups: tuple[Group, ...] = ()
    roles: tuple[Role, ...] = ()


class Checkpoint(Struct, frozen=True, kw_only=True):
    grace_ms: int = 30_000
    interval_ms: int | None = None


class Workload(Struct, frozen=True, kw_only=True):
    id: str
    """`namespace/name`."""
    queue: str
    gang: Group
    workload_class: WorkloadClass = WorkloadClass.UNATTENDED
    priority: int | None = None
    """None means the default of the class."""
    preemptible: Preemptible = Preemptible.DEFAULT
    pools: tuple[str, ...] = (ANY_POOL,)
    """In order of preference; `any` stands for all pools, where it is expected to finish first."""
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    checkpoint: Checkpoint | None = None
    """None: it cannot continue, so losing it means losing all it has done."""
    restart_cost_ms: int = 60_000
    on_loss: OnLoss = OnLoss.REPLACE
    loss_grace_ms: int = 60_000
    submitted_ms: int = 0
    expected_duration_ms: int | None = None
    deadline_ms: int | None = None
    max_runtime_ms: int | None = None
    family: str = ""
    """Similar work shares a family: its history predicts the newcomer."""
    speedup_percent: tuple[int, ...] = ()
    """Measured speed with 1, 2, 3 … replicas of the elastic role; empty means the default curve."""
    suspended: bool = False
    avoids: tuple[str, ...] = ()
    """Nodes on which its body could not start it lately, by name: it goes there only where there is no other place."""
    obstacle: Reason | None = None
    """What its body knows against placing it now; the one reason it waits for, until the body says otherwise. Work that
    runs goes on."""

    @property
    def effective_priority(self) -> int:
        return CLASS_PRIORITY[self.workload_class] if self.priority is None else self.priority

    @property
    def grace_ms(self) -> int:
        """How long it may take to write a checkpoint when it is told to stop."""
        return self.checkpoint.grace_ms if self.checkpoint else 0

    @property
    def namespace(self) -> str:
        return self.id.partition("/")[0]


def share_milli(request: Request, device_memory_mib: int) -> int:
    """Thousandths of a device that one replica takes; above 1000 means it does not fit on such a device."""
    if not request.gpu_memory_mib:
        return request.gpu_milli
    if not device_memory_mib:
        return WHOLE_DEVICE_MILLI + 1
    return -(-request.gpu_memory_mib * WHOLE_DEVICE_MILLI // device_memory_mib)


def is_kept_inside(workload: Workload) -> bool:
    """Whether it stays while it is inside the guarantee of its queue, also for more important work there."""
    if workload.preemptible is Preemptible.DEFAULT:
        return workload.workload_class is not WorkloadClass.UNATTENDED
    return workload.preemptible is Preemptible.LENT


def gives_turns(workload: Workload) -> bool:
    """Whether it can be stopped and continued for work that is no more important."""
    if workload.checkpoint is None:
        return False
    if workload.preemptible is Preemptible.DEFAULT:
        return workload.workload_class is WorkloadClass.UNATTENDED
    return workload.preemptible is Preemptible.YES
