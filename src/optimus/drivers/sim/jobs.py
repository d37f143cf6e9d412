"""Jobs: what a trace says of one piece of work, and what nobody may know before it has happened.

Why: every source, from a CSV of three columns to a table of measured step times, becomes the same record.
Owns: the record, and the workload that a scheduler is shown of it.
Must not: let the truth (`work`) through to a scheduler. What it may know is in the workload, predictions included.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.drivers.sim.works import Work
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.workloads import (
    Checkpoint,
    Group,
    ModelSpeed,
    Preemptible,
    Request,
    Role,
    Topology,
    Workload,
    WorkloadClass,
)

NAMESPACE = "trace"
ROLE = "main"


class Job(Struct, frozen=True, kw_only=True):
    name: str
    submit_ms: int
    work: Work
    """The truth: how long it takes and how fast it goes where. Hidden from schedulers."""
    queue: str = "default"
    family: str = ""
    """Similar jobs share one; schedulers may learn from those that ended."""
    workload_class: WorkloadClass = WorkloadClass.UNATTENDED
    priority: int | None = None
    preemptible: Preemptible = Preemptible.DEFAULT

    replicas: int = 1
    """What its owner asked for, also where schedulers are free to choose; the ideal time of its work is for these."""
    min_replicas: int = 0
    """0: as many as asked for, so it is rigid."""
    max_replicas: int = 0
    sizes: tuple[int, ...] = ()
    gpus: int = 1
    """Devices of each replica; 0 for work without GPUs."""
    gpu_milli: int = WHOLE_DEVICE_MILLI
    models: tuple[ModelSpeed, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    activity_milli: int = 0
    topology: Topology = Topology()

    expected_ms: int | None = None
    """The run time that schedulers are told; it may be wrong. None: nobody knows."""
    speedup_percent: tuple[int, ...] = ()
    """The speed by replicas that schedulers are told; empty: nobody knows."""
    deadline_ms: int | None = None

    checkpoint_ms: int | None = 0
    """Work saved every so often; 0: always up to date; None: it cannot continue and starts again."""
    checkpoint_cost_ms: int = 0
    """Time that each of them takes away from the work."""
    grace_ms: int = 0
    """How long it takes to write a checkpoint and leave when it is told to."""
    start_ms: int = 0
    """From having its place to doing its first work."""
    restart_ms: int = 30_000
    """The same for every later start, and for every change of size or place."""
    fails_at: tuple[float, ...] = ()
    """Parts of its work (0 to 1) at which it fails, each once; it goes on from its last checkpoint."""

    @property
    def id(self) -> str:
        return f"{NAMESPACE}/{self.name}"

    @property
    def least(self) -> int:
        return self.min_replicas or self.replicas

    @property
    def most(self) -> int:
        return max(self.max_replicas, self.replicas) if self.min_replicas else self.replicas

    @property
    def total_gpus(self) -> int:
        """As asked for."""
        return self.replicas * self.gpus

    @property
    def gpu_milli_per_replica(self) -> int:
        return self.gpus * self.gpu_milli


def workload_of(job: Job) -> Workload:
    """All that a scheduler is told."""
    request = Request(
        gpu_count=job.gpus,
        gpu_milli=job.gpu_milli,
        models=job.models,
        activity_milli=job.activity_milli,
        cpu_milli=job.cpu_milli,
        memory_mib=job.memory_mib,
    )
    role = Role(name=ROLE, min=job.least, max=job.most, sizes=job.sizes, request=request)
    return Workload(
        id=job.id,
        queue=job.queue,
        gang=Group(roles=(role,), topology=job.topology),
        workload_class=job.workload_class,
        priority=job.priority,
        preemptible=job.preemptible,
        checkpoint=_contract(job),
        restart_cost_ms=job.restart_ms,
        submitted_ms=job.submit_ms,
        expected_duration_ms=job.expected_ms,
        deadline_ms=job.deadline_ms,
        family=job.family,
        speedup_percent=job.speedup_percent,
    )


def _contract(job: Job) -> Checkpoint | None:
    if job.checkpoint_ms is None:
        return None
    return Checkpoint(grace_ms=job.grace_ms, interval_ms=max(job.checkpoint_ms, 1))
