"""The way back: a job as the UnifiedJob document that says it, in one form whatever form it was written in.

Why: `optimus get job X -o yaml` prints what can be submitted again, here or with `kubectl apply`.
Owns: the normal form: `replicaSpec` and `template`, whole seconds where they are whole, defaults left out.
Must not: know what became of the job; its status is not part of it.

Reading the document at the time at which the job was submitted gives the same job again.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import yaml

from optimus.api.scalars import resolve
from optimus.api.specs.jobs import API_VERSION, KIND
from optimus.api.specs.replicas import SOLE_ROLE
from optimus.model import units
from optimus.model.jobs import Job, Restart, Saving, Template
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Toleration
from optimus.model.workloads import Group, Preemptible, Request, Role, Topology, Workload

_USUAL = Workload(id="", queue="", gang=Group())
_PREEMPTIBLE: dict[Preemptible, bool | str] = {
    Preemptible.YES: True,
    Preemptible.NO: False,
    Preemptible.SURPLUS: "surplus",
    Preemptible.LENT: "lent",
}
_OURS = ("command", "args", "env", "workingDir")


def to_document(job: Job, written: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`written` is the document that the job came as: labels, image and whatever else is passed on come from it.

    Raises ValueError for a job that no document can say: a gang of several roles or groups."""
    workload = job.workload
    namespace, _, name = job.id.partition("/")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    before = written or {}
    for key in ("labels", "annotations"):
        if (before.get("metadata") or {}).get(key):
            metadata[key] = dict(before["metadata"][key])
    if workload.submitted_ms:
        metadata["creationTimestamp"] = units.format_time_ms(workload.submitted_ms)
    spec: dict[str, Any] = {
        "jobType": str(job.job_type),
        "queue": workload.queue,
        "class": str(workload.workload_class),
    }
    _put_wishes(spec, workload)
    spec["replicaSpec"] = _replicas(_sole_role(workload), job.template)
    if job.array:
        spec["arraySize"] = job.array
    topology = _topology(workload.gang.topology)
    if topology:
        spec["topology"] = topology
    if workload.checkpoint is not None:
        spec["checkpoint"] = _checkpoint(job.saving, workload)
    spec["restart"] = _restart(job.restart)
    _put_times(spec, workload)
    if job.keep_ms is not None:
        _put_duration(spec, "ttlAfterFinished", job.keep_ms, "ttlSecondsAfterFinished")
    spec["template"] = _template(job, (before.get("spec") or {}).get("template") or {})
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def to_yaml(document: Mapping[str, Any]) -> str:
    """Text in which everything that could be taken for a number or a boolean is quoted."""
    return yaml.dump(dict(document), Dumper=_Quoting, sort_keys=False, width=120)


class _Quoting(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is yaml's
        return True


def _text(dumper: _Quoting, text: str) -> yaml.ScalarNode:
    style = None if isinstance(resolve(text), str) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Quoting.add_representer(str, _text)


def _put_wishes(spec: dict[str, Any], workload: Workload) -> None:
    if workload.priority is not None:
        spec["priority"] = workload.priority
    if workload.preemptible in _PREEMPTIBLE:
        spec["preemptible"] = _PREEMPTIBLE[workload.preemptible]
    spec["pools"] = list(workload.pools)


def _put_times(spec: dict[str, Any], workload: Workload) -> None:
    if workload.restart_cost_ms != _USUAL.restart_cost_ms:
        _put_duration(spec, "restartCost", workload.restart_cost_ms)
    if workload.on_loss is not _USUAL.on_loss:
        spec["onLoss"] = str(workload.on_loss)
    if workload.loss_grace_ms != _USUAL.loss_grace_ms:
        _put_duration(spec, "lossGrace", workload.loss_grace_ms)
    if workload.max_runtime_ms is not None:
        _put_duration(spec, "maxRuntime", workload.max_runtime_ms)
    if workload.expected_duration_ms is not None:
        _put_duration(spec, "expectedDuration", workload.expected_duration_ms)
    if workload.deadline_ms is not None:
        spec["deadline"] = units.format_time_ms(workload.deadline_ms)
    if workload.family:
        spec["family"] = workload.family
    if workload.speedup_percent:
        spec["speedup"] = [_ratio(percent) for percent in workload.speedup_percent]
    if workload.suspended:
        spec["suspend"] = True


def _put_duration(target: dict[str, Any], word: str, milliseconds: int, long_name: str = "") -> None:
    if milliseconds % 1000:
        target[word] = units.format_duration_ms(milliseconds)
    else:
        target[long_name or f"{word}Seconds"] = milliseconds // 1000


def _sole_role(workload: Workload) -> Role:
    gang = workload.gang
    if gang.groups or len(gang.roles) != 1 or gang.roles[0].name != SOLE_ROLE:
        raise ValueError(f"{workload.id}: a UnifiedJob has one role, called {SOLE_ROLE}")
    return gang.roles[0]


def _replicas(role: Role, template: Template) -> dict[str, Any]:
    found: dict[str, Any] = {"minReplicas": role.min, "maxReplicas": role.max}
    if role.sizes:
        found["sizes"] = list(role.sizes)
    request = role.request
    gpu = _gpu(request)
    if gpu:
        found["gpu"] = gpu
    if request.cpu_milli or template.cpu_limit_milli:  # beside a limit, what is not written would be the limit
        found["cpu"] = _number(units.format_cpu(request.cpu_milli))
    if request.memory_mib or template.memory_limit_mib:
        found["memory"] = units.format_memory(request.memory_mib)
    if request.accelerators:
        found["accelerators"] = dict(request.accelerators)
    return found


def _gpu(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if request.gpu_milli != WHOLE_DEVICE_MILLI or request.gpu_limit_milli:
        found["fraction"] = {"request": _number(units.format_gpu(request.gpu_milli))}
        if request.gpu_limit_milli:
            found["fraction"]["limit"] = _number(units.format_gpu(request.gpu_limit_milli))
    if request.gpu_memory_mib:
        found["memory"] = units.format_memory(request.gpu_memory_mib)
    if request.models:
        found["models"] = [entry.model for entry in request.models]
        speeds = {entry.model: _ratio(entry.speed_percent) for entry in request.models if entry.speed_percent != 100}
        found |= {"speeds": speeds} if speeds else {}
    if request.activity_milli:
        found["activity"] = _number(units.format_gpu(request.activity_milli))
    return {"count": request.gpu_count, **found} if found or request.gpu_count else {}


def _topology(topology: Topology) -> dict[str, str]:
    levels = {"required": topology.required, "preferred": topology.preferred}
    return {key: level for key, level in levels.items() if level}


def _checkpoint(saving: Saving, workload: Workload) -> dict[str, Any]:
    found: dict[str, Any] = {"command": list(saving.command)} if saving.command else {"signal": saving.signal}
    if workload.checkpoint is not None:
        _put_duration(found, "grace", workload.checkpoint.grace_ms)
        if workload.checkpoint.interval_ms is not None:
            _put_duration(found, "interval", workload.checkpoint.interval_ms)
    return {**found, "path": saving.path} if saving.path else found


def _restart(restart: Restart) -> dict[str, Any]:
    found: dict[str, Any] = {"backoffLimit": restart.backoff_limit}
    if restart.backoff_ms != Restart().backoff_ms:
        _put_duration(found, "backoff", restart.backoff_ms)
    if restart.longest_ms != Restart().longest_ms:
        _put_duration(found, "maxBackoff", restart.longest_ms)
    return found


def _template(job: Job, before: Mapping[str, Any]) -> dict[str, Any]:
    template = copy.deepcopy(dict(before))
    pod = dict(template.get("spec") or {})
    first, *others = pod.get("containers") or [{}]
    container: dict[str, Any] = {"name": "main"}
    container.update((key, value) for key, value in first.items() if key not in _OURS)
    container["command"] = list(job.template.command)
    if job.template.env:
        container["env"] = [{"name": name, "value": value} for name, value in job.template.env]
    if job.template.workdir:
        container["workingDir"] = job.template.workdir
    limits = _limits(job.template)
    if limits:
        resources = dict(container.get("resources") or {})
        container["resources"] = {**resources, "limits": {**(resources.get("limits") or {}), **limits}}
    pod["containers"] = [container, *others]
    if job.workload.node_selector:
        pod["nodeSelector"] = dict(job.workload.node_selector)
    if job.workload.tolerations:
        pod["tolerations"] = [_toleration(toleration) for toleration in job.workload.tolerations]
    return {**template, "spec": pod}


def _limits(template: Template) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if template.cpu_limit_milli:
        found["cpu"] = _number(units.format_cpu(template.cpu_limit_milli))
    if template.memory_limit_mib:
        found["memory"] = units.format_memory(template.memory_limit_mib)
    return found


def _toleration(toleration: Toleration) -> dict[str, str]:
    found = {"key": toleration.key} if toleration.key else {}
    if toleration.value:
        found |= {"operator": "Equal", "value": toleration.value}
    else:
        found["operator"] = "Exists"
    return {**found, "effect": toleration.effect} if toleration.effect else found


def _ratio(percent: int) -> int | float | str:
    return _number(units.format_ratio(percent).removesuffix("x"))


def _number(text: str) -> int | float | str:
    """A number where it reads back as the same text."""
    if text.isdigit():
        return int(text)
    return float(text) if repr(float(text)) == text else text
