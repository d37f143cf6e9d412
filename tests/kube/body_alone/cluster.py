"""For what a real server cannot be made to do at a chosen moment: answers by script, time by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Node, Pod
from optimus.drivers.kube.stranding import Stranding
from optimus.engine.engine import Engine
from optimus.kube import Done, Outcome, Writer
from optimus.model.observations import Observation
from optimus.model.plans import Plan
from optimus.model.queues import Queue


class ScriptedWriter(Writer):
    """Sends nothing; answers as it is told to, when it is told to."""

    def __init__(self) -> None:
        self.binds: list[tuple[str, str]] = []
        self.evicted: list[str] = []
        self.answer: Outcome = Done()
        self.answers: dict[str, Outcome] = {}
        """By pod, where it is another one."""
        self.silent = asyncio.Event()
        self.silent.set()

    async def bind(self, pod: str, node: str, **_: Any) -> Outcome:
        self.binds.append((pod, node))
        await self.silent.wait()
        return self.answers.get(pod, self.answer)

    async def evict(self, pod: str, **_: Any) -> Outcome:
        self.evicted.append(pod)
        return Done()


class Alone:
    """Mirror, engine and acting, with nobody at the other end."""

    def __init__(self, nodes: int = 1) -> None:
        self.mirror = Mirror(shipped_kinds())
        self.engine = Engine()
        self.writer = ScriptedWriter()
        self.now = 0.0
        self.looked_at: list[str] = []
        self.on_server: Callable[[Pod], Pod | None] = lambda pod: pod
        self.acting = Acting(self.mirror, self.writer, self._fetch, lambda *_: None, lambda: None, lambda: self.now)
        self.stranding = Stranding(self.mirror, lambda: self.now)
        self.mirror.tenants.queue(Queue(name="default"))
        for number in range(nodes):
            self.mirror.node(node(f"n{number}"))

    async def turn(self) -> Plan:
        """As one who leads; then whatever was begun comes to its end or waits."""
        self.stranding.look()
        facts: list[Observation] = [*self.mirror.news(), *self.acting.facts()]
        plan = self.engine.step(facts, int(self.now * 1000))
        self.acting.act(plan)
        await settle()
        return plan

    async def _fetch(self, pod: Pod) -> Pod | None:
        self.looked_at.append(pod.metadata.name)
        return self.on_server(pod)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def node(name: str, gpus: int = 8) -> Node:
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    meta = {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}}
    return msgspec.convert({"metadata": meta, "spec": {}, "status": status}, Node)


def pod(name: str, *, gang: str = "", size: int = 1, on: str = "") -> Pod:
    requests = {"cpu": "1", "nvidia.com/gpu": "1"}
    labels = {"optimus.dev/group": gang, "optimus.dev/min-members": str(size)} if gang else {}
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "labels": labels}
    spec: dict[str, Any] = {
        "schedulerName": "optimus",
        "containers": [{"name": "main", "resources": {"requests": requests}}],
    }
    if on:
        spec["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)
