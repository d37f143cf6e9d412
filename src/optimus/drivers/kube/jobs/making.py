"""Making: the pod of one replica, out of the template of its job.

Why: what people wrote is what runs; whatever is added is written down here, and in the reference, and nowhere else.
Owns: the additions: name, labels, owner, finalizer, scheduler, restart policy, grace, how it is told to save, where it
says its last words, the variables of the checkpoint contract, amounts that only the job says, and its name in DNS.
Must not: take anything away, or give a pod what its owner could not have given it.
"""

from __future__ import annotations

import copy
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.jobs import words
from optimus.drivers.kube.jobs.reading import USUAL_SIGNAL, Written
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.requests import FRACTION, GPU_MEMORY, MODELS
from optimus.lives import LeavingCause, Life
from optimus.lives.kinds import Additions, Peers
from optimus.lives.reconciling import grace_ms
from optimus.model.gangs import chains
from optimus.model.jobs import Job
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.workloads import Request

MESSAGE_PATH = "/dev/termination-log"
NVIDIA_GPU, MIG = "nvidia.com/gpu", "mig-"
REASONS = {
    None: "first start",
    LeavingCause.PREEMPTED: "resumed after preemption",
    LeavingCause.SUSPENDED: "resumed by its owner",
    LeavingCause.FAILED: "retry after a failure",
    LeavingCause.LOST: "restarted after it was lost",
    LeavingCause.RESIZED: "restarted with another size",
}
Document = dict[str, Any]


class Start(Struct, frozen=True, kw_only=True):
    """Which replica, and when in the life of its job."""

    role: str
    ordinal: int
    life: Life
    revision: int
    part: int | None = None
    starts: int = 0
    """Of this part of an array."""


def pod_template(job: Job, role: str, thing: Anything) -> Document:
    """As every replica of a role has it, for whoever wants to know what it needs before it is there."""
    spec = thing.spec if isinstance(thing.spec, dict) else {}
    template = copy.deepcopy(spec["template"])
    meta, request = template.get("metadata") or {}, _request(job, role)
    _add_amounts(template["spec"]["containers"][0], request)
    notes = {**(meta.get("annotations") or {}), **_notes_of(request)}
    return {"metadata": {**meta, **({"annotations": notes} if notes else {})}, "spec": template["spec"]}


def pod_of(thing: Anything, written: Written, start: Start, scheduler: str) -> Document:
    job = thing.metadata.name
    template = pod_template(written.job, start.role, thing)
    meta, spec = template["metadata"], template["spec"]
    name = words.pod_name(job, start.role, start.ordinal)
    labels = {
        words.JOB: job,
        words.ROLE: start.role,
        words.INDEX: str(start.ordinal),
        words.ATTEMPT: str(_attempt(start)),
    }
    if start.part is not None:
        labels[words.PART] = str(start.part)
    added = written.kind.dress(written.job, (start.role, start.ordinal), peers_of(thing, written, start.life))
    spec |= {"schedulerName": scheduler, "restartPolicy": "Never"}
    if written.several or written.kind.named:
        spec |= {"hostname": name, "subdomain": job}
    _fill(spec, written, start, added)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": thing.metadata.namespace,
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": {**(meta.get("annotations") or {}), words.REVISION: str(start.revision)},
            "ownerReferences": [owner(thing)],
            "finalizers": [words.ENDED],
        },
        "spec": spec,
    }


def service_of(thing: Anything, written: Written) -> Document | None:
    """Through which replicas find each other by name; None where one is alone."""
    if not (written.several or written.kind.named):
        return None
    meta = thing.metadata
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {words.JOB: meta.name},
            "ownerReferences": [owner(thing)],
        },
        "spec": {"clusterIP": "None", "selector": {words.JOB: meta.name}, "publishNotReadyAddresses": True},
    }


def owner(thing: Anything) -> Document:
    return {
        "apiVersion": words.API_VERSION,
        "kind": words.KIND,
        "name": thing.metadata.name,
        "uid": thing.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def peers_of(thing: Anything, written: Written, life: Life) -> Peers:
    meta = thing.metadata
    named: dict[str, tuple[str, ...]] = {}
    for place in sorted(life.places, key=lambda one: one.slot):
        named[place.role] = (*named.get(place.role, ()), words.pod_name(meta.name, *place.slot))
    return Peers(
        namespace=meta.namespace,
        service=meta.name if written.several else "",
        replicas=named,
        job=meta.name,
        attempt=max(life.attempt, 1),
    )


# -- the spec ---------------------------------------------------------------------------------------------------------


def _fill(spec: Document, written: Written, start: Start, added: Additions) -> None:
    if written.job.workload.checkpoint is not None:
        spec["terminationGracePeriodSeconds"] = -(-grace_ms(written.job.workload) // 1000)
    for field, value in added.pod.items():
        spec.setdefault(field, copy.deepcopy(value))
    main = spec["containers"][0]
    main.setdefault("name", "main")
    if added.command:
        main["command"] = list(added.command)
        main.pop("args", None)
    main.setdefault("terminationMessagePath", MESSAGE_PATH)
    _add_hook(main, written)
    own = {one.get("name") for one in main.get("env") or () if isinstance(one, dict)}
    variables = [*_variables(written, start, main["terminationMessagePath"]), *_plain(added.env)]
    main["env"] = [*(main.get("env") or ()), *(one for one in variables if one["name"] not in own)]


def _plain(env: tuple[tuple[str, str], ...]) -> list[Document]:
    return [{"name": name, "value": value} for name, value in env]


def _variables(written: Written, start: Start, status_file: str) -> list[Document]:
    """The contract of docs/guides/checkpoint-and-resume.md."""
    job, life = written.job, start.life
    count = sum(place.role == start.role for place in life.places)
    told = {
        "OPTIMUS_JOB": job.id,
        "OPTIMUS_QUEUE": job.workload.queue,
        "OPTIMUS_ROLE": start.role,
        "OPTIMUS_RANK": "0" if job.array else str(start.ordinal),
        "OPTIMUS_REPLICAS": "1" if job.array else str(count),
        "OPTIMUS_PART": "" if start.part is None else str(start.part),
        "OPTIMUS_ATTEMPT": str(_attempt(start)),
        "OPTIMUS_REASON": _reason(start),
        "OPTIMUS_CHECKPOINT_SIGNAL": job.saving.signal,
        "OPTIMUS_GRACE_SECONDS": str(-(-grace_ms(job.workload) // 1000)),
        "OPTIMUS_STATUS_FILE": status_file,
        "PYTHONUNBUFFERED": "1",
    }
    if job.saving.path:
        part = "" if start.part is None else f"/{start.part}"
        told["OPTIMUS_CHECKPOINT_DIR"] = job.saving.path.rstrip("/") + part
    node = {"name": "OPTIMUS_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return [*_plain(tuple(told.items())), node]


def _attempt(start: Start) -> int:
    return start.starts if start.part is not None else max(start.life.attempt, 1)


def _reason(start: Start) -> str:
    if start.part is not None and start.starts <= 1:
        return REASONS[None]
    if start.life.attempt <= 1 and start.part is None:
        return REASONS[None]
    return REASONS.get(start.life.last_leaving, "restarted")


def _add_hook(main: Document, written: Written) -> None:
    """How it is told to save. SIGTERM is sent by itself; another signal is sent by a hook that waits, since SIGTERM
    follows as soon as the hook is over."""
    saving = written.job.saving
    if written.job.workload.checkpoint is None:
        return
    if saving.command:
        hook = list(saving.command)
    elif saving.signal != USUAL_SIGNAL:
        signal = saving.signal.removeprefix("SIG")
        hook = ["sh", "-c", f"kill -s {signal} 1; while kill -0 1 2>/dev/null; do sleep 0.2; done"]
    else:
        return
    main["lifecycle"] = {**(main.get("lifecycle") or {}), "preStop": {"exec": {"command": hook}}}


# -- amounts ----------------------------------------------------------------------------------------------------------


def _request(job: Job, role: str) -> Request:
    found = {chain.role.name: chain.role.request for chain in chains(job.workload.gang)}
    return found.get(role, Request())


def _add_amounts(main: Document, request: Request) -> None:
    """What the job asks for and its container does not say."""
    resources = main.get("resources") or {}
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    said = requests.keys() | limits.keys()
    if request.cpu_milli and "cpu" not in said:
        requests["cpu"] = f"{request.cpu_milli}m"
    if request.memory_mib and "memory" not in said:
        requests["memory"] = limits["memory"] = f"{request.memory_mib}Mi"
    whole = request.gpu_milli == WHOLE_DEVICE_MILLI and not request.gpu_memory_mib
    if request.gpu_count and whole and NVIDIA_GPU not in said:
        limits[NVIDIA_GPU] = str(request.gpu_count)
    for name, count in request.accelerators:
        resource = f"nvidia.com/{name}" if name.startswith(MIG) else name
        if resource not in said:
            limits[resource] = str(count)
    amounts = {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}
    if amounts:
        main["resources"] = {**resources, **amounts}


def _notes_of(request: Request) -> dict[str, str]:
    """A part of a device, and which models will do, are said by annotations."""
    notes: dict[str, str] = {}
    if request.gpu_count and request.gpu_memory_mib:
        notes[GPU_MEMORY] = f"{request.gpu_memory_mib}Mi"
    elif request.gpu_count and request.gpu_milli != WHOLE_DEVICE_MILLI:
        notes[FRACTION] = f"{request.gpu_milli / 1000:g}"
    if request.models:
        notes[MODELS] = ",".join(
            one.model if one.speed_percent == 100 else f"{one.model}={one.speed_percent / 100:g}x"
            for one in request.models
        )
    return notes
