"""What stories of the client share: narrow structs, manifests, a client of the rig, and patience."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from hack.controlplane import ControlPlane
from optimus.kube import Client, Cluster, Done, Meta, Writer, load
from optimus.kube.reflecting import Change
from optimus.kube.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS

PATIENCE_S = 60.0


class PodMeta(Meta):
    annotations: dict[str, str] | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class PodStatus(msgspec.Struct, gc=False):
    phase: str = ""


class Pod(msgspec.Struct, gc=False):
    metadata: PodMeta
    spec: PodSpec
    status: PodStatus


class ConfigMap(msgspec.Struct, gc=False):
    metadata: Meta
    data: dict[str, str] | None = None


def cluster_of(plane: ControlPlane, user: str = "admin") -> Cluster:
    return load(str(plane.kubeconfig(user)))


def document(value: Any) -> bytes:
    return json.dumps(value).encode()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **labels: str) -> dict[str, Any]:
    spec = {
        "schedulerName": "nobody",
        "containers": [{"name": "main", "image": "none"}],
        "terminationGracePeriodSeconds": 1,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


async def make_namespace(client: Client, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, document(body))
    return name


async def make_node(client: Client, name: str) -> None:
    allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    meta = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": allocatable}}
    await client.create(NODES, document(body))


async def make_pods(client: Client, namespace: str, names: Iterable[str], **labels: str) -> None:
    made = await asyncio.gather(
        *(Writer(client).create(PODS, pod(name, **labels), namespace=namespace) for name in names)
    )
    assert all(isinstance(one, Done) for one in made), made


async def make_config_maps(client: Client, namespace: str, names: Iterable[str], **data: str) -> None:
    writer = Writer(client)
    made = await asyncio.gather(
        *(writer.create(CONFIG_MAPS, config_map(name, **data), namespace=namespace) for name in names)
    )
    assert all(isinstance(one, Done) for one in made), made


async def until(true: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.02)


class Copy:
    """What somebody knows who only hears changes; complains about any that do not follow from what was told before."""

    def __init__(self) -> None:
        self.told: list[Change[Any]] = []
        self.now: dict[str, Any] = {}

    def hear(self, change: Change[Any]) -> None:
        self.told.append(change)
        if change.what == "added":
            assert change.key not in self.now, f"{change.key} was there already"
        else:
            assert change.key in self.now, f"{change.key} was never told"
        if change.what == "deleted":
            assert self.now.pop(change.key).metadata.uid == change.uid
        else:
            self.now[change.key] = change.object

    def whats(self, key: str = "") -> list[str]:
        return [change.what.value for change in self.told if not key or change.key == key]
