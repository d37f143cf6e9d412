"""Holding: what a replica is held to by what its job asks for.

Why: a request is a promise to others as well: who takes more memory than it asked for, takes it from somebody.
Owns: the translation of requests and limits of a job, with the meaning that Kubernetes gives them.
Must not: know how it is enforced (`keeping.limiting`).

    CPU      a request is a weight, never a cap; a cap only where the pod template writes a limit
    memory   a cap: the limit of the pod template, else the request
"""

from __future__ import annotations

from optimus.drivers.local.keeping.events import Limits
from optimus.model.gangs import chains
from optimus.model.jobs import Job


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
