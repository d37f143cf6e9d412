"""Holding: what a replica is held to by what its job asks for.

Why: a request is a promise to others as well: who takes more memory than it asked for, takes it from somebody.
Owns: the translation of requests and limits of a job, with the meaning that Kubernetes gives them; and as what work
is counted that asks for nothing.
Must not: know how it is enforced (`keeping.limiting`).

    CPU      a request is a weight, never a cap; a cap only where the pod template writes a limit
    memory   a cap: the limit of the pod template, else the request
"""

from __future__ import annotations

from msgspec import structs

from optimus.drivers.local.keeping.events import Limits
from optimus.model.gangs import chains
from optimus.model.jobs import Job
from optimus.model.workloads import Request, Workload

COUNTED = Request(cpu_milli=1000)


def limits_of(job: Job, role: str) -> Limits | None:
    """None for a job that asks for nothing: it is counted as something, but nobody holds it to that."""
    request = next(chain.role.request for chain in chains(job.workload.gang) if chain.role.name == role)
    memory_mib = job.template.memory_limit_mib or request.memory_mib
    limits = Limits(
        cpu_milli=request.cpu_milli or None,
        cpu_limit_milli=job.template.cpu_limit_milli or None,
        memory_bytes=memory_mib << 20 or None,
    )
    return None if limits == Limits() else limits


def as_counted(workload: Workload) -> Workload:
    """For the brain. Work that asks for nothing would all start at once; it counts as a core, of which a machine has so
    many. Nobody else is told: its document says what its owner wrote."""
    roles = workload.gang.roles
    if len(roles) != 1 or workload.gang.groups or roles[0].request != Request():
        return workload
    gang = structs.replace(workload.gang, roles=(structs.replace(roles[0], request=COUNTED),))
    return structs.replace(workload, gang=gang)
