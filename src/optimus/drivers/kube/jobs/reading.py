"""Reading: a UnifiedJob of the cluster as the `Job` that is run, with its pod template as it was written.

Why: the scheduler and the controller read the same object, and must understand the same by it.
Owns: what keeps a job from having pods, in words; what the scheduler has written on it.
Must not: refuse what the server accepts for a pod; it says so itself when the pod is made.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from optimus.api.building.submitted import read_cluster_job
from optimus.drivers.kube.jobs.times import read_time
from optimus.drivers.kube.jobs.words import HELD_BECAUSE, TARGET_BECAUSE, WORKER, pod_name
from optimus.drivers.kube.objects import Anything
from optimus.lives.kinds import KINDS, Kind
from optimus.model.jobs import Job
from optimus.model.workloads import Group, Role

LONGEST_HOST_NAME = 63
USUAL_SIGNAL = "SIGTERM"
_READ: dict[str, tuple[int, Read]] = {}
"""By uid: the version of its spec, and what was read then."""
_MOST_READ = 4_096


class Written(Struct, frozen=True, kw_only=True):
    """A job that can be run."""

    job: Job
    """An array is one workload, with as many replicas at once as there is room for."""
    kind: Kind
    template: dict[str, Any]
    """PodTemplateSpec, as it was written."""

    @property
    def role(self) -> Role:
        """The one whose number the scheduler writes."""
        return next(role for role in self.job.workload.gang.roles if role.name == WORKER)

    @property
    def several(self) -> bool:
        """Whether replicas have to find each other."""
        return not self.job.array and (self.role.max > 1 or bool(self.kind.beside))


class Read(Struct, frozen=True):
    job: Job | None
    problems: tuple[str, ...] = ()
    written: Written | None = None


def read_job(thing: Anything) -> Read:
    """Once for each version of its spec."""
    meta = thing.metadata
    known = _READ.get(meta.uid)
    if known is None or known[0] != meta.generation or not meta.generation or not meta.uid:
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        known = _READ[meta.uid] = (meta.generation, _read(thing))
    return known[1]


def written_or_why(thing: Anything) -> Written | str:
    read = read_job(thing)
    return read.written if read.written is not None else "; ".join(read.problems)


def _read(thing: Anything) -> Read:
    meta, spec = thing.metadata, thing.spec if isinstance(thing.spec, dict) else {}
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return Read(None, ("spec.template: is missing",))
    named = {"name": meta.name, "namespace": meta.namespace, "labels": {}, "annotations": {}}
    stored = {"metadata": named, "spec": spec}
    job, problems = read_cluster_job(stored, submitted_ms=read_time(meta.creation_timestamp))
    if job is None or problems:
        return Read(None, tuple(problems) or ("it cannot be read",))
    kind = KINDS.get(job.job_type)
    if kind is None:
        return Read(None, (f"spec.jobType: this version cannot run {job.job_type} jobs",))
    if wrong := _unfit(job, template, meta.name):
        return Read(None, (wrong,))
    written = Written(job=_as_one_workload(job), kind=kind, template=template)
    return Read(written.job, (), written)


def _as_one_workload(job: Job) -> Job:
    if not job.array:
        return job
    workload = job.workload
    (role,) = workload.gang.roles
    many = structs.replace(role, min=1, max=job.array, sizes=())
    gang = Group(topology=workload.gang.topology, roles=(many,))
    return structs.replace(job, workload=structs.replace(workload, gang=gang))


def _unfit(job: Job, template: dict[str, Any], name: str) -> str:
    """What matters only on a cluster; empty if nothing is wrong."""
    (role,) = job.workload.gang.roles
    main = template["spec"]["containers"][0]
    if job.array and role.max > 1:
        return "spec.arraySize: stands beside several replicas; on a cluster each part of an array is one pod"
    longest = pod_name(name, role.name, (job.array or role.max) - 1)
    if len(longest) > LONGEST_HOST_NAME:
        return (
            f"metadata.name: is too long; its pods would be called {longest}, and a host name has at most "
            f"{LONGEST_HOST_NAME} letters"
        )
    if job.workload.checkpoint is None or not (job.saving.command or job.saving.signal != USUAL_SIGNAL):
        return ""
    if (main.get("lifecycle") or {}).get("preStop"):
        return (
            "spec.checkpoint: needs the preStop hook of the first container, and the template has one of its own; "
            "leave one of them out, or ask by SIGTERM, which needs no hook"
        )
    if template["spec"].get("shareProcessNamespace") and not job.saving.command:
        return (
            f"spec.checkpoint.signal: {job.saving.signal} cannot be sent where containers share their processes; "
            "write a command, or ask by SIGTERM"
        )
    return ""


# -- what the scheduler has written -----------------------------------------------------------------------------------


def target_of(thing: Anything) -> int:
    """Nonsense counts as nothing."""
    spec = thing.spec if isinstance(thing.spec, dict) else {}
    long = spec.get("replicaSpec")
    target = long.get("targetReplicas") if isinstance(long, dict) else None
    return target if isinstance(target, int) and not isinstance(target, bool) and target > 0 else 0


def because(thing: Anything) -> tuple[str, str]:
    """Why the number is what it is: a code and a sentence."""
    said = (thing.metadata.annotations or {}).get(TARGET_BECAUSE, "")[:1024]
    code, colon, text = said.partition(": ")
    return (code, text) if colon and code.isalnum() else ("", said)


def held_because(thing: Anything) -> str:
    """Why the scheduler has done with it for good; empty: it has not."""
    return (thing.metadata.annotations or {}).get(HELD_BECAUSE, "")[:1024]


def scheduler_of(thing: Anything) -> str:
    """Whose it is; empty: it does not say."""
    spec = thing.spec if isinstance(thing.spec, dict) else {}
    template = spec.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    named = pod.get("schedulerName") if isinstance(pod, dict) else None
    return named if isinstance(named, str) else ""
