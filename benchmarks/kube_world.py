"""The cluster that contenders are measured on: nodes with GPUs, and gangs of pods as each contender knows gangs.

    1,000 nodes of 8 GPUs, 6,000 pods of one GPU in 300 gangs of 20 – or as few as are asked for

Objects are made by the same client for everybody, before anything is measured. Pods have what every pod of a cluster
has: a service account, and the volume with its token, written as the server's admission writes it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from optimus.kube import Client, Cluster, Done, Resource, Writer
from optimus.kube.resources import NAMESPACES, NODES, PODS

NAMESPACE = "bench"
QUEUE = "bench"
JOBS = Resource("batch", "v1", "jobs")
POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups")
IN_FLIGHT = 64
GPUS = 8
GPU = "nvidia.com/gpu"
TOKEN = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
]


class Gangs(StrEnum):
    """How a pod says to which gang it belongs."""

    NONE = "none"
    OPTIMUS = "label optimus.dev/group"
    NATIVE = "scheduling.k8s.io PodGroup"


class Shape(msgspec.Struct, frozen=True):
    gangs: int
    size: int

    @property
    def pods(self) -> int:
        return self.gangs * self.size

    def __str__(self) -> str:
        return f"{self.gangs} gangs of {self.size}"


def node(number: int) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(GPUS)}
    name = f"n{number:04d}"
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "H100"}
    ready = {"type": "Ready", "status": "True", "reason": "Bench", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(gang: str, index: int, size: int, scheduler: str, gangs: Gangs, *, on: str = "") -> dict[str, Any]:
    meta: dict[str, Any] = {"name": f"{gang}-{index:03d}", "labels": {"app": gang}}
    spec = pod_spec(scheduler)
    if gangs is Gangs.OPTIMUS:
        meta["labels"] |= {"optimus.dev/group": gang, "optimus.dev/min-members": str(size), "optimus.dev/queue": QUEUE}
    elif gangs is Gangs.NATIVE:
        spec["schedulingGroup"] = {"podGroupName": gang}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def pod_spec(scheduler: str) -> dict[str, Any]:
    account = {"serviceAccountName": "default", "serviceAccount": "default"}
    token = {"name": "kube-api-access-bench", "projected": {"defaultMode": 420, "sources": TOKEN}}
    mount = {"name": token["name"], "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    requests = {"cpu": "2", "memory": "8Gi", GPU: "1"}
    main = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": requests}}
    return {
        "schedulerName": scheduler,
        **account,
        "containers": [{**main, "volumeMounts": [mount]}],
        "volumes": [token],
    }


def pod_group(name: str, size: int) -> dict[str, Any]:
    policy = {"gang": {"minCount": size}}
    meta = {"name": name}
    api_version = POD_GROUPS.api_version
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": meta, "spec": {"schedulingPolicy": policy}}


def suspended_job(name: str, size: int, scheduler: str, labels: dict[str, str]) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pod_spec(scheduler), "restartPolicy": "Never"}}
    spec = {"suspend": True, "parallelism": size, "completions": size, "backoffLimit": 1_000, "template": template}
    spec["completionMode"] = "Indexed"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


def gang_names(shape: Shape) -> list[str]:
    return [f"g{number:03d}" for number in range(shape.gangs)]


def pods(shape: Shape, scheduler: str, gangs: Gangs) -> list[dict[str, Any]]:
    return [pod(name, index, shape.size, scheduler, gangs) for name in gang_names(shape) for index in range(shape.size)]


async def make_nodes(cluster: Cluster, nodes: int) -> None:
    """And the namespace."""
    await make(cluster, NAMESPACES, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    await make(cluster, NODES, [node(number) for number in range(nodes)])


async def make(cluster: Cluster, resource: Resource, objects: Iterable[dict[str, Any]]) -> float:
    """How many a second."""
    namespace = NAMESPACE if resource.namespaced else ""
    async with Client(cluster) as client:
        writer = Writer(client, in_flight=IN_FLIGHT, timeout_s=60.0)
        begun = time.monotonic()
        made = await asyncio.gather(*(writer.create(resource, one, namespace=namespace) for one in objects))
        wrong = [one for one in made if not isinstance(one, Done)]
        assert not wrong, wrong[0]
        return len(made) / (time.monotonic() - begun)


async def make_pods(cluster: Cluster, shape: Shape, scheduler: str, gangs: Gangs) -> float:
    if gangs is Gangs.NATIVE:
        await make(cluster, POD_GROUPS, [pod_group(name, shape.size) for name in gang_names(shape)])
    return await make(cluster, PODS, pods(shape, scheduler, gangs))
