"""A command as a Job: what `optimus run` makes of its options on a cluster.

Why: the same line runs a script on one machine and on a cluster; there it needs an image to run in.
Owns: how the fields of a UnifiedJob that `optimus run` writes become those of a batch/v1 Job.
Must not: drop an option in silence: what a Job cannot say is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimus.drivers.kube.desk.refusing import invalid
from optimus.drivers.kube.grouping.overrides import PREFIX, QUEUE

GPU = "nvidia.com/gpu"
NO_IMAGE = "--image: is missing; on a cluster a command runs in a container, such as --image python:3.12"
INDEX = "batch.kubernetes.io/job-completion-index"
PART = "OPTIMUS_PART"
READ = frozenset(
    {"command", "queue", "gpu", "replicas", "restart", "cpu", "memory", "class", "priority", "env", "checkpoint"}
    | {"image", "pools", "workdir", "arraySize"}
)


def job_of(document: Mapping[str, Any], scheduler: str) -> dict[str, Any]:
    spec, meta = document["spec"], document["metadata"]
    if unread := sorted(f"--{name}" for name in spec if name not in READ):
        raise invalid(f"{', '.join(unread)}: not on a cluster yet; write a Job and `optimus submit` it")
    parts = spec.get("arraySize")
    if parts and spec.get("replicas", 1) != 1:
        raise invalid("--array with --replicas: parts of several replicas are not on a cluster yet; use a JobSet")
    least, most = (1, parts) if parts else _replicas(spec.get("replicas", 1))
    retries = spec.get("restart", {}).get("backoffLimit", 0)
    annotations = _annotations(spec, least)
    grace = spec.get("checkpoint", {}).get("graceSeconds")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": meta["name"],
            **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
            "labels": {QUEUE: spec.get("queue", "default")},
            "annotations": annotations,
        },
        "spec": {
            "parallelism": most,
            "completions": most,
            "completionMode": "Indexed",  # each replica has its number: JOB_COMPLETION_INDEX
            # A part that fails is its own affair: the others run on.
            **({"backoffLimitPerIndex": retries} if parts else {"backoffLimit": retries}),
            "template": {
                "spec": {
                    "schedulerName": scheduler,
                    "restartPolicy": "Never",
                    **({"terminationGracePeriodSeconds": grace} if grace is not None else {}),
                    "containers": [_container(spec)],
                }
            },
        },
    }


def _container(spec: Mapping[str, Any]) -> dict[str, Any]:
    command = spec["command"]
    requests = {name: str(spec[name]) for name in ("cpu", "memory") if spec.get(name)}
    gpus = spec.get("gpu") or 0
    if gpus != int(gpus):
        raise invalid(f"--gpus: {gpus}: parts of a GPU are not on a cluster yet; write a whole number")
    limits = {GPU: str(int(gpus))} if gpus else {}
    env: list[dict[str, Any]] = [{"name": name, "value": str(value)} for name, value in (spec.get("env") or {}).items()]
    if spec.get("arraySize"):
        env.append({"name": PART, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}})
    return {
        "name": "main",
        "image": spec["image"],
        "command": ["sh", "-c", command] if isinstance(command, str) else list(command),
        **({"workingDir": spec["workdir"]} if spec.get("workdir") else {}),
        "env": env,
        "resources": {"requests": {**requests, **limits}, "limits": limits},
    }


def _annotations(spec: Mapping[str, Any], least: int) -> dict[str, str]:
    said = {
        "min-members": least,
        "class": spec.get("class"),
        "priority": spec.get("priority"),
        "pools": ",".join(spec.get("pools") or ()),
    }
    if grace := spec.get("checkpoint", {}).get("graceSeconds"):
        said["checkpoint-grace"] = f"{grace}s"
    return {f"{PREFIX}{name}": str(value) for name, value in said.items() if value not in (None, "")}


def _replicas(told: Any) -> tuple[int, int]:
    return (told["min"], told["max"]) if isinstance(told, dict) else (told, told)
