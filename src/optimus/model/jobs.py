"""Jobs: what a UnifiedJob asks to be run, beyond what the brain has to know of it.

A job is a template and a gang. The brain sees workloads: one for the job, or one for each part of an array. What is
started in a granted place, how it is told to save its work, and when it is given up, is said here.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, structs

from optimus.model.workloads import Workload


class JobType(StrEnum):
    """How replicas find each other and change their number."""

    JOB = "Job"
    PYTORCH_ELASTIC = "PyTorchElastic"
    HOROVOD_ELASTIC = "HorovodElastic"
    MPI = "MPI"
    SERVICE = "Service"
    INTERACTIVE = "Interactive"


class Template(Struct, frozen=True, kw_only=True):
    """What every replica runs."""

    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    """Sorted by name."""
    workdir: str = ""
    """Empty: where it was submitted from."""
    cpu_limit_milli: int = 0
    """What a replica never gets more of; 0: whatever is idle. What it asks for is `Request.cpu_milli`."""
    memory_limit_mib: int = 0
    """A replica that needs more is ended; 0: what it asks for is its limit."""


class Saving(Struct, frozen=True, kw_only=True):
    """How a replica is told to save its work before it is stopped; the time for it is `Workload.checkpoint`."""

    signal: str = "SIGTERM"
    command: tuple[str, ...] = ()
    """Run beside the replica instead of the signal, with its environment."""
    path: str = ""
    """Folder of its checkpoints; empty: one that the body makes."""


class Restart(Struct, frozen=True, kw_only=True):
    """After a failure the whole gang starts again."""

    backoff_limit: int = 3
    """So many failures are forgiven. Being preempted, moved or resized is no failure."""
    backoff_ms: int = 10_000
    """Before the first retry; twice as long before each further one."""
    longest_ms: int = 300_000

    def wait_ms(self, failures: int) -> int:
        """After so many failures."""
        return min(self.backoff_ms << min(max(failures - 1, 0), 30), self.longest_ms)


class Job(Struct, frozen=True, kw_only=True):
    workload: Workload
    """Its id is the job's: `namespace/name`."""
    template: Template
    job_type: JobType = JobType.JOB
    array: int = 0
    """Parts 0 … n-1, each a workload of its own; 0: it is one."""
    saving: Saving = Saving()
    restart: Restart = Restart()
    keep_ms: int | None = None
    """How long it is remembered after its end; None: as the body does it."""

    @property
    def id(self) -> str:
        return self.workload.id

    def workloads(self) -> tuple[Workload, ...]:
        """What the brain sees: `namespace/name`, or `namespace/name/0`, `…/1` for the parts of an array."""
        if not self.array:
            return (self.workload,)
        family = self.workload.family or self.id
        return tuple(
            structs.replace(self.workload, id=f"{self.id}/{part}", family=family) for part in range(self.array)
        )


def job_of_workload(workload: str) -> str:
    """The job that a workload belongs to."""
    return "/".join(workload.split("/")[:2])
