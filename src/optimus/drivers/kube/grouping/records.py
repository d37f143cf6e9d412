"""A gang of pods as the body sees it, and the place of each pod in it.

Why: the loop of the body turns these, and nothing else of Kubernetes owners, into workloads of the brain.
Owns: the records that leave this package.
Must not: hold anything that changes.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.objects import PodSpec
from optimus.model.jobs import Job
from optimus.model.workloads import Preemptible, Topology, WorkloadClass

ALONE = "pod"
"""The only role of a pod that is by itself, and of pods of a gang that nobody divides into roles."""


PART = "~"
"""Pods of a role that need something else than the others are a part of it with a name of its own: `worker~1a2b3`."""


class ObjectRef(Struct, frozen=True, kw_only=True):
    """An object that has to be read, or patched."""

    api_version: str
    """Empty where only a label names it: any version of the kind will do."""
    kind: str
    """`kubeflow.org/PyTorchJob`."""
    namespace: str
    name: str
    uid: str = ""
    """Empty where only its name is known."""


class Slot(Struct, frozen=True):
    """Which replica a pod is. Kept while the pod lives."""

    role: str
    ordinal: int


class RoleInGroup(Struct, frozen=True, kw_only=True):
    name: str
    min: int
    """Without so many the gang does not start."""
    count: int
    """Pods that its controller creates now."""
    max: int
    """As far as it may be scaled; `count` where nothing says more."""
    per_copy: int = 0
    """Ordinals count through copies of so many pods (the jobs of a job set); 0: there are no copies."""
    sizes: tuple[int, ...] = ()
    """How many it may be, where not every number will do."""
    total: int = 0
    """How many pods have to end well in all; 0 if they do not end."""
    pods: int = 0
    """Those that are there and hold a slot."""
    ended: int = 0
    """Those that have ended well. They hold no slot any more."""
    template: PodSpec | None = None
    """A pod of this role: the one with the lowest ordinal, else what the owner's template says."""

    @property
    def needed(self) -> int:
        """Of the minimum: what can still be there, as some have ended well."""
        return min(self.min, max(self.total - self.ended, 0)) if self.total else self.min


class Stop(Struct, frozen=True, kw_only=True):
    how: StopHow
    field: tuple[str, ...] = ()
    """For `suspend`: the path to the field."""
    why: str = ""
    """For `never`: the reason."""


class Group(Struct, frozen=True, kw_only=True):
    """One gang."""

    id: str
    """`namespace/kind/name`: a Job and a PyTorchJob may have the same name."""
    kind: str
    """`kubeflow.org/PyTorchJob`, `Pod`, or the kind of the PodGroup that names it."""
    object: ObjectRef | None
    """What is patched to start or to stop it, and gets its events; None for pods without an owner."""
    roles: tuple[RoleInGroup, ...]
    queue: str = ""
    """Empty: the namespace decides."""
    workload_class: WorkloadClass = WorkloadClass.UNATTENDED
    priority: int | None = None
    """As somebody has written it, or the server on its pods."""
    priority_class: str | None = None
    """Where its template decides, since it has no pods: the class that is named there; empty if none is."""
    preemptible: Preemptible = Preemptible.DEFAULT
    not_preemptible_why: str = ""
    fragile_why: str = ""
    """Losing a single pod fails it: it may be stopped as a whole, never made smaller."""
    pools: tuple[str, ...] = ()
    topology: Topology = Topology()
    checkpoint_grace_ms: int | None = None
    expected_duration_ms: int | None = None
    family: str = ""
    stop: Stop
    suspended: bool = False
    """By its owner, or waiting to be admitted: `admit` tells which."""
    admit: bool = False
    """It is suspended and waits in our queue: admitting it means un-suspending it."""
    suspend_field: tuple[str, ...] = ()
    job: Job | None = None
    """Of a UnifiedJob: as it was written."""
    target: int | None = None
    """Of a UnifiedJob: how many replicas its controller has been told to keep; None: it has not been told."""
    held: bool = False
    """Of a UnifiedJob: it was told to end for good."""
    trouble: str = ""
    """Of a UnifiedJob: what keeps its controller from making pods, in its words."""
    overdue: str = ""
    """Of a UnifiedJob: the size it was told to have is not there in time, as its controller says."""
    backs_off: str = ""
    """Of a UnifiedJob: it has failed, and is not to be started again before its time."""
    over: bool = False
    """Its owner says that it has ended."""
    began: str = ""
    """When it was let go, of work that was suspended before; others count the time in which their pods waited."""
    completed: str = ""
    """When it ended well."""
    incomplete: str = ""
    """Why it cannot be scheduled yet, such as an object that is not there."""
    unsupported: str = ""
    """What it uses that cannot be kept: a PodGroup that other gangs name, too."""
    problems: tuple[str, ...] = ()
    """What was written on it and cannot be read; it is scheduled without."""
    created: str = ""
    scheduler_name: str = ""
    """What its pods, or else its template, name."""
    names_nobody: bool = False
    """It has no pods, and its templates leave open who schedules them: where its namespace has opted in, we do."""

    @property
    def min_members(self) -> int:
        return sum(role.min for role in self.roles)
