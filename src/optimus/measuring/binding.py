"""Binding: how many pods a second a real API server binds, by a bare loop and by `optimus controller`.

Why: somebody who thinks of installing it wants to know what it does on their own server, without a checkout of ours.
Owns: what is made for it, all of it removed again whatever happens, and when it is refused.
Must not: be run where it could hurt. Nodes that only seem to be there are no news to a control plane, but on a real
cluster agents are started on them, autoscalers count them, and clouds clear them away.

    made        one namespace; nodes of eight GPUs with a taint and a label of their own; pods that only fit there
    bare        binds to places known beforehand, as fast as the server answers: nobody can be faster
    optimus     `optimus controller` as it is installed, under a name of its own: it has to read the cluster, decide
                and bind gangs of twenty

The bare loop is measured before and after, and its better run counts: the server is cold at first, and machines are
shared. Each is a process of its own, and the same watch here sees when pods are bound. Nothing ever runs: there is no
kubelet behind these nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from optimus.kube import Change, Client, Cluster, Done, Gone, Meta, Reflector, Resource, Writer, load
from optimus.kube.errors import NotFound
from optimus.kube.resources import LEASES, NAMESPACES, NODES, PODS
from optimus.kube.writing import outcome_of
from optimus.measuring.timing import machine

GPU = "nvidia.com/gpu"
GPUS = 8
GANG = 20
LABEL = "optimus.dev/bench"
FAKE = "kwok.x-k8s.io/node"
"""Annotation of nodes that only seem to be there."""
IN_FLIGHT = 64
LONGEST_S = 300.0
ACCOUNT_S = 30.0
"""So long a new namespace may be without its service account: until then no pod can be made in it."""
END_S = 10.0
Say = Callable[[str], None]


class BenchError(Exception):
    """It was not measured; the text says why and what to do."""


class Where(Struct, frozen=True, kw_only=True):
    kubeconfig: str = ""
    context: str = ""

    def cluster(self) -> Cluster:
        return load(self.kubeconfig, self.context)


class Rate(Struct, frozen=True, kw_only=True, rename="camel"):
    bound: int
    pods_per_second: int
    """From the first that was seen bound to the last."""
    from_start_per_second: int
    """From the start of the process: reading the cluster and deciding count."""
    first_after_seconds: float


class Measured(Struct, frozen=True, kw_only=True, rename="camel"):
    server: str
    nodes: int
    pods: int
    bare: Rate
    optimus: Rate
    ratio: float
    """What the controller reaches of the bare loop."""
    machine: dict[str, str]
    """From which it was measured."""


class PodSpec(Struct, rename="camel", gc=False):
    node_name: str = ""


class Pod(Struct, gc=False):
    metadata: Meta
    spec: PodSpec


class Condition(Struct):
    type: str = ""
    status: str = ""


class NodeMeta(Meta):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class NodeStatus(Struct):
    conditions: list[Condition] = []


class Node(Struct):
    metadata: NodeMeta
    status: NodeStatus

    @property
    def is_real(self) -> bool:
        ready = any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)
        return ready and (self.metadata.annotations or {}).get(FAKE) != "fake"


async def measure(where: Where, *, nodes: int, pods: int, anyway: bool, say: Say) -> Measured:
    """All of it: look, make, measure, remove. Raises `BenchError`, or `KubeError` where the server says no."""
    cluster, name, here = where.cluster(), f"optimus-bench-{os.getpid()}", machine()
    async with Client(cluster) as client:
        await _look(client, anyway=anyway)
        async with _made(client, name, nodes, say):
            bare = await _drain(client, name, pods, "bare", _process(where, name, "bare"), say)
            ours = await _drain(client, name, pods, name, _process(where, name, "optimus"), say)
            again = await _drain(client, name, pods, "bare", _process(where, name, "bare"), say)
    bare = max(bare, again, key=lambda rate: rate.pods_per_second)
    ratio = round(ours.pods_per_second / max(bare.pods_per_second, 1), 2)
    return Measured(server=cluster.server, nodes=nodes, pods=pods, bare=bare, optimus=ours, ratio=ratio, machine=here)


async def _look(client: Client, *, anyway: bool) -> None:
    there = (await client.listing(NODES, Node)).items
    left = [node.metadata.name for node in there if LABEL in (node.metadata.labels or {})]
    if left:
        clear = f"kubectl delete nodes,namespaces -l {LABEL}"
        raise BenchError(f"{len(left)} nodes of another measurement are there; if nobody measures now: {clear}")
    real = [node.metadata.name for node in there if node.is_real]
    if real and not anyway:
        told = ", ".join(real[:3]) + (f" and {len(real) - 3} more" if len(real) > 3 else "")
        raise BenchError(
            f"the cluster has real nodes ({told}): nodes that only seem to be there would get agents, count for "
            "autoscalers and be cleared away by clouds. Measure on a cluster of its own (kind, KWOK, `make kube-up`), "
            "or say --anyway"
        )
    with contextlib.suppress(NotFound):
        await client.request("GET", "/apis/optimus.dev", verb="get")
        if not anyway:
            raise BenchError(
                "Optimus is installed there: two controllers would write the status of its queues. Measure on a "
                "cluster of its own, or say --anyway"
            )


# -- what is made, and removed ----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _made(client: Client, name: str, nodes: int, say: Say) -> AsyncIterator[None]:
    try:
        say(f"making namespace {name} and {nodes} nodes")
        await _create(client, NAMESPACES, [{"metadata": {"name": name, "labels": {LABEL: name}}}])
        await _create(client, NODES, [_node(f"{name}-{number}", name) for number in range(nodes)])
        yield
    finally:
        say("removing all of it")
        await asyncio.shield(_remove(client, name, nodes))


async def _remove(client: Client, name: str, nodes: int) -> None:
    """The pods first: a node that is gone would leave them behind. Nodes by their names, one by one: a selector that
    somebody on the way does not hear would be the end of a cluster."""
    writer = Writer(client, in_flight=IN_FLIGHT, timeout_s=60.0)
    done = [await outcome_of(_empty(client, resource, name)) for resource in (PODS, LEASES)]
    done += await asyncio.gather(*(writer.delete(NODES, f"{name}-{number}") for number in range(nodes)))
    done.append(await writer.delete(NAMESPACES, name))
    if wrong := [one.message for one in done if not isinstance(one, Done | Gone)]:
        raise BenchError(f"not all was removed ({wrong[0]}): kubectl delete nodes,namespaces -l {LABEL}={name}")


async def _empty(client: Client, resource: Resource, namespace: str) -> bytes:
    force = msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    return await client.request("DELETE", resource.path(namespace), body=force, timeout_s=60.0, verb="delete")


async def _create(client: Client, resource: Resource, objects: Sequence[dict[str, Any]], namespace: str = "") -> None:
    writer = Writer(client, in_flight=IN_FLIGHT, timeout_s=60.0)
    made = await asyncio.gather(*(writer.create(resource, one, namespace=namespace) for one in objects))
    for one in made:
        if not isinstance(one, Done):
            raise BenchError(f"{resource.plural} could not be made: {one.message}")


def _node(name: str, bench: str) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(GPUS)}
    ready = {"type": "Ready", "status": "True", "reason": "Bench"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, LABEL: bench}},
        "spec": {"taints": [{"key": LABEL, "value": bench, "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def _pod(number: int, pods: int, bench: str, scheduler: str) -> dict[str, Any]:
    gang, size = f"{scheduler}-{number // GANG}", min(GANG, pods - number // GANG * GANG)
    requests = {"cpu": "2", "memory": "8Gi", GPU: "1"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{scheduler}-{number}",
            "labels": {"optimus.dev/group": gang, "optimus.dev/min-members": str(size)},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "nodeSelector": {LABEL: bench},
            "tolerations": [{"key": LABEL, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
        },
    }


# -- one of the two ---------------------------------------------------------------------------------------------------


def _process(where: Where, name: str, who: str) -> list[str]:
    named = ["--kubeconfig", where.kubeconfig] if where.kubeconfig else []
    named += ["--context", where.context]
    if who == "bare":
        return [sys.executable, "-m", "optimus.measuring.binding", *named, name]
    own = ["--scheduler-name", name, "--lease-namespace", name]
    return [sys.executable, "-m", "optimus", "controller", *named, *own]


class Seen:
    def __init__(self, count: int) -> None:
        self.bound: dict[str, float] = {}
        self.all = asyncio.Event()
        self._count = count

    def hear(self, change: Change[Pod]) -> None:
        if change.object is not None and change.object.spec.node_name:
            self.bound.setdefault(change.object.metadata.uid, time.monotonic())
            if len(self.bound) >= self._count:
                self.all.set()


async def _drain(client: Client, name: str, pods: int, scheduler: str, words: list[str], say: Say) -> Rate:
    """All pods wait, then the process is started."""
    who = "the bare loop" if scheduler == "bare" else "optimus controller"
    say(f"making {pods} pods for {who}")
    waiting = [_pod(number, pods, name, scheduler) for number in range(pods)]
    await _first(client, name, waiting[0])
    await _create(client, PODS, waiting[1:], namespace=name)
    seen = Seen(pods)
    reflector = Reflector(client, PODS, Pod, seen.hear, namespace=name)
    watching = asyncio.create_task(reflector.run())
    try:
        await reflector.synced.wait()
        say(f"{who} binds them")
        started = time.monotonic()
        await _run_until(words, seen, who)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await _empty(client, PODS, name)
    times = sorted(seen.bound.values())
    return Rate(
        bound=len(times),
        pods_per_second=round((len(times) - 1) / max(times[-1] - times[0], 0.001)),
        from_start_per_second=round(len(times) / max(times[-1] - started, 0.001)),
        first_after_seconds=round(times[0] - started, 2),
    )


async def _first(client: Client, namespace: str, pod: dict[str, Any]) -> None:
    """A new namespace takes pods once it has its service account."""
    until = time.monotonic() + ACCOUNT_S
    while True:
        try:
            return await _create(client, PODS, [pod], namespace=namespace)
        except BenchError as error:
            if "serviceaccount" not in str(error) or time.monotonic() > until:
                raise
        await asyncio.sleep(0.2)


async def _run_until(words: list[str], seen: Seen, who: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    talking, done = asyncio.create_task(process.communicate()), asyncio.create_task(seen.all.wait())
    try:
        await asyncio.wait((talking, done), timeout=LONGEST_S, return_when=asyncio.FIRST_COMPLETED)
        if not seen.all.is_set():  # the watch may be behind a process that has done its work
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(done), END_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        done.cancel()
        _, said = await talking
    if not seen.all.is_set():
        last = (said.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise BenchError(f"{who} bound {len(seen.bound)} pods and no more: {last}")


# -- the bare loop, as a process of its own ---------------------------------------------------------------------------


async def bind_all(where: Where, namespace: str) -> None:
    """Every pod of the bare loop, to places in order. Decides nothing."""
    async with Client(where.cluster()) as client:
        found = await client.listing(PODS, Pod, namespace=namespace)
        names = sorted(pod.metadata.name for pod in found.items if not pod.spec.node_name)
        writer = Writer(client, in_flight=IN_FLIGHT, timeout_s=60.0)
        seats = [(pod, f"{namespace}-{number // GPUS}") for number, pod in enumerate(names)]
        await asyncio.gather(*(writer.bind(pod, node, namespace=namespace) for pod, node in seats))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--context", default="")
    parser.add_argument("namespace")
    asked = parser.parse_args()
    asyncio.run(bind_all(Where(kubeconfig=asked.kubeconfig, context=asked.context), asked.namespace))


if __name__ == "__main__":
    main()
