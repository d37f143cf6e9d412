"""UnifiedJob as a gang: what its spec says, before it has pods and while it has them.

Why: it says by itself what others say with labels and a table of kinds; the brain is told it as it was written.
Owns: the roles that it declares, and the record of its gang.
Must not: make pods (`drivers.kube.jobs` does, from the same reading), or read a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from optimus.drivers.kube.grouping.declared import DeclaredRole, Template, is_over
from optimus.drivers.kube.grouping.kinds import Kind, StopHow
from optimus.drivers.kube.grouping.overrides import HELD_WHY, word_on
from optimus.drivers.kube.grouping.records import PART, Group, ObjectRef, RoleInGroup, Stop
from optimus.drivers.kube.jobs.making import pod_template
from optimus.drivers.kube.jobs.reading import read_job
from optimus.drivers.kube.jobs.words import BACKING_OFF, BLOCKED, RESCALE_OVERDUE, WORKER
from optimus.drivers.kube.objects import Anything
from optimus.model.jobs import Job

TARGET, SUSPEND = ("spec", "replicaSpec", "targetReplicas"), ("spec", "suspend")


def declared_by_job(thing: Anything) -> tuple[DeclaredRole, ...]:
    """None if it cannot be read; what is wrong is then told in its place."""
    read = read_job(thing)
    if read.job is None:
        return ()
    return tuple(_declared(read.job, role.name, thing) for role in read.job.workload.gang.roles)


def _declared(job: Job, name: str, thing: Anything) -> DeclaredRole:
    role = next(one for one in job.workload.gang.roles if one.name == name)
    template = msgspec.convert(pod_template(job, name, thing), Template)
    return DeclaredRole(
        name=name, min=role.min, count=role.max, max=role.max, sizes=role.sizes, total=role.max, template=template
    )


def job_group(kind: Kind, thing: Anything, gang_id: str, roles: tuple[RoleInGroup, ...]) -> Group:
    read = read_job(thing)
    spec, meta = _mapping(thing.spec), thing.metadata
    workload = read.job.workload if read.job is not None else None
    return Group(
        id=gang_id,
        kind=kind.name,
        object=ObjectRef(
            api_version=thing.api_version, kind=kind.name, namespace=meta.namespace, name=meta.name, uid=meta.uid
        ),
        roles=roles,
        queue=str(spec.get("queue") or ""),
        stop=Stop(how=StopHow.TARGET, field=TARGET),
        suspended=spec.get("suspend") is True,
        admit=spec.get("suspend") is not True,
        suspend_field=SUSPEND,
        over=is_over(kind.over, thing) or meta.deletion_timestamp is not None,
        completed=str(_mapping(thing.status).get("completionTime") or ""),
        created=meta.creation_timestamp or "",
        scheduler_name=_in_template(spec, "schedulerName"),
        names_nobody=not _in_template(spec, "schedulerName"),
        priority_class=_in_template(spec, "priorityClassName") or None,
        job=read.job,
        problems=read.problems,
        workload_class=workload.workload_class if workload is not None else kind.workload_class,
        family=workload.family if workload is not None else "",
        expected_duration_ms=workload.expected_duration_ms if workload is not None else None,
        checkpoint_grace_ms=workload.grace_ms if workload is not None and workload.checkpoint is not None else None,
        target=_target(spec),
        held=word_on(meta, HELD_WHY) is not None,
        trouble=_said(thing, BLOCKED),
        overdue=_said(thing, RESCALE_OVERDUE),
        backs_off=_said(thing, BACKING_OFF),
    )


def is_worker(role: str) -> bool:
    """Also one that needs something else than the others (`dividing`)."""
    return role.partition(PART)[0] == WORKER


def _target(spec: Mapping[str, Any]) -> int | None:
    found = _mapping(spec.get("replicaSpec")).get("targetReplicas")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _in_template(spec: Mapping[str, Any], field: str) -> str:
    found = _mapping(_mapping(spec.get("template")).get("spec")).get(field)
    return found if isinstance(found, str) else ""


def _said(thing: Anything, condition: str) -> str:
    """The message of a condition that holds; empty if it does not."""
    listed = _mapping(thing.status).get("conditions")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and one.get("type") == condition and one.get("status") == "True":
            return str(one.get("message") or one.get("reason") or condition)
    return ""


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
