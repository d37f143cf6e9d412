"""One run of one contender: a fresh control plane, objects, a watcher, then the contender; what came of it.

    from_start     from when the contender was started until the last pod was seen bound: reading the cluster counts
    draining       from the first pod that was seen bound to the last

Both as pods per second. Every process beside it is told with its processor time during the run and its largest memory.

At the end the server is asked: is every pod of every gang bound, and has no node more than it has GPUs? A run of which
that is not true has no rates, and says what is `wrong`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.kube_contenders import Contender, Peer, apply
from benchmarks.kube_world import (
    GPU,
    GPUS,
    IN_FLIGHT,
    JOBS,
    NAMESPACE,
    Gangs,
    Shape,
    gang_names,
    make,
    make_nodes,
    make_pods,
    pod,
    pods,
    suspended_job,
)
from hack.controlplane import ControlPlane
from hack.controlplane.processes import Process, cpu_seconds
from optimus.kube import Client, Cluster, Meta, Writer, load
from optimus.kube.resources import PODS

LONGEST_S = 900.0
SYNC_S = 5.0
"""Given to a contender to read an almost empty cluster, where what comes while it runs is measured."""


class _Meta(Meta):
    labels: dict[str, str] | None = None


class _Resources(msgspec.Struct):
    limits: dict[str, str] | None = None


class _Container(msgspec.Struct):
    resources: _Resources


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container]
    node_name: str = ""


class BoundPod(msgspec.Struct):
    """As the server lists it."""

    metadata: _Meta
    spec: _Spec

    def gpus(self) -> int:
        return sum(int((one.resources.limits or {}).get(GPU, 0)) for one in self.spec.containers)


class Run(msgspec.Struct, frozen=True):
    """What a watcher saw, and what everybody spent."""

    bound: list[float]
    waited: list[float]
    late: int
    started: float
    spent: dict[str, dict[str, float]]

    def rates(self, asked: int, wrong: str) -> dict[str, Any]:
        """None, but what is wrong, if not all that was asked for was done."""
        if len(self.bound) != asked:
            wrong = f"{len(self.bound)} of {asked} pods were seen bound; {wrong}".rstrip("; ")
        if wrong:
            return {"bound": len(self.bound), "late": self.late, "wrong": wrong}
        first, last, count = self.bound[0], self.bound[-1], len(self.bound)
        return {
            "bound": count,
            "late": self.late,
            "seconds": round(last - self.started, 2),
            "first_after_s": round(first - self.started, 2),
            "from_start": round(count / (last - self.started)),
            "draining": round((count - 1) / (last - first)) if last > first else count,
        }


def drain(contender: Contender, nodes: int, shape: Shape, peer: Peer | None = None) -> dict[str, Any]:
    """All pods wait, then the contender is started."""
    with _plane(contender) as plane:
        cluster = load(str(plane.kubeconfig()))
        _begin(plane, contender, nodes)
        created = asyncio.run(_make(plane, contender, shape, peer))
        run = _measure(plane, contender, shape.pods)
        wrong = flaws(cluster, shape)
    return {**run.rates(shape.pods, wrong), "created_per_s": round(created), "spent": run.spent}


def admit(contender: Contender, nodes: int, shape: Shape) -> dict[str, Any]:
    """Suspended Jobs, which the contender lets go; the job controller then makes their pods."""
    with _plane(contender, controllers=True) as plane:
        cluster = load(str(plane.kubeconfig()))
        _begin(plane, contender, nodes)
        jobs = [
            suspended_job(name, shape.size, contender.scheduler, contender.job_labels) for name in gang_names(shape)
        ]
        asyncio.run(make(cluster, JOBS, jobs))
        run = _measure(plane, contender, shape.pods)
        wrong = flaws(cluster, shape)
    return {**run.rates(shape.pods, wrong), "spent": run.spent}


def arrive(contender: Contender, nodes: int, shape: Shape, per_s: float) -> dict[str, Any]:
    """Gangs come one after the other, at this many pods a second, while the contender runs."""
    with _plane(contender) as plane:
        cluster = load(str(plane.kubeconfig()))
        _begin(plane, contender, nodes)
        watcher = _watcher(plane, shape.pods)
        with _spending(plane, contender.start(plane)) as spent:
            time.sleep(SYNC_S)
            begun = time.monotonic()
            asyncio.run(_come(cluster, contender, shape, per_s))
            run = _seen(watcher, begun, spent)
        wrong = flaws(cluster, shape)
    waited = np.array(run.waited) if run.waited else np.zeros(1)
    half, nearly = (round(float(np.percentile(waited, share)), 3) for share in (50, 99))
    return {
        **run.rates(shape.pods, wrong),
        "per_s": per_s,
        "waited_p50_s": half,
        "waited_p99_s": nearly,
        "spent": run.spent,
    }


def restart(contender: Contender, nodes: int, there: int, shape: Shape) -> dict[str, Any]:
    """So many pods are there already, bound; how long until the first of a new gang is."""
    with _plane(contender) as plane:
        cluster = load(str(plane.kubeconfig()))
        _begin(plane, contender, nodes)
        asyncio.run(make(cluster, PODS, _old_pods(contender, nodes, there)))
        asyncio.run(make_pods(cluster, shape, contender.scheduler, contender.gangs))
        run = _measure(plane, contender, shape.pods)
        wrong = flaws(cluster, shape)
    return {**run.rates(shape.pods, wrong), "pods_before": there, "spent": run.spent}


# -- parts of it ---------------------------------------------------------------------------------------------------


@contextmanager
def _plane(contender: Contender, *, controllers: bool = False) -> Iterator[ControlPlane]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-kube-") as folder,
        ControlPlane(Path(folder), gang_api=contender.gang_api, controllers=controllers) as plane,
    ):
        yield plane


def _begin(plane: ControlPlane, contender: Contender, nodes: int) -> None:
    asyncio.run(make_nodes(load(str(plane.kubeconfig())), nodes))
    if contender.prepare:
        contender.prepare(plane, nodes)


def flaws(cluster: Cluster, shape: Shape) -> str:
    """What the server itself says against a run, empty if nothing: whoever is fast with half a gang is not fast."""
    wrong = asyncio.run(_listed(cluster, shape))
    return f"{wrong[0]}, and {len(wrong) - 1} more" if len(wrong) > 1 else "".join(wrong)


async def _listed(cluster: Cluster, shape: Shape) -> list[str]:
    async with Client(cluster) as client:
        listed = await client.listing(PODS, BoundPod, namespace=NAMESPACE)
    return unfinished(listed.items, shape)


def unfinished(found: Iterable[BoundPod], shape: Shape) -> list[str]:
    gangs: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for one in found:
        if one.spec.node_name:
            gangs[(one.metadata.labels or {}).get("app", "")] += 1
            given[one.spec.node_name] += one.gpus()
    parts = [
        f"{gangs[name]} of {shape.size} pods of {name} are bound"
        for name in gang_names(shape)
        if gangs[name] != shape.size
    ]
    over = [
        f"{count} GPUs of {node} are given away, and it has {GPUS}" for node, count in given.items() if count > GPUS
    ]
    return parts + over


async def _make(plane: ControlPlane, contender: Contender, shape: Shape, peer: Peer | None) -> float:
    cluster = load(str(plane.kubeconfig()))
    if peer is None:
        return await make_pods(cluster, shape, contender.scheduler, contender.gangs)
    if peer.gang:
        objects = [peer.gang_of(name, shape.size) for name in gang_names(shape)]
        apply(plane, objects)
    return await make(cluster, PODS, [peer.dressed(one, shape) for one in pods(shape, contender.scheduler, Gangs.NONE)])


async def _come(cluster: Cluster, contender: Contender, shape: Shape, per_s: float) -> None:
    """Gang after gang, each at its time, whether those before it are all there or not."""
    begun = time.monotonic()
    async with Client(cluster) as client, asyncio.TaskGroup() as coming:
        writer = Writer(client, in_flight=IN_FLIGHT, timeout_s=60.0)
        for number, name in enumerate(gang_names(shape)):
            await asyncio.sleep(max(0.0, begun + number * shape.size / per_s - time.monotonic()))
            for index in range(shape.size):
                one = pod(name, index, shape.size, contender.scheduler, contender.gangs)
                coming.create_task(writer.create(PODS, one, namespace=NAMESPACE))


def _old_pods(contender: Contender, nodes: int, count: int) -> list[dict[str, Any]]:
    """Small ones, without a GPU, in gangs of ten over all nodes."""
    made = []
    for number in range(count):
        one = pod(
            f"old{number // 10:05d}", number % 10, 10, contender.scheduler, contender.gangs, on=f"n{number % nodes:04d}"
        )
        requests = {"cpu": "100m", "memory": "128Mi"}
        one["spec"]["containers"][0]["resources"] = {"requests": requests}
        made.append(one)
    return made


def _measure(plane: ControlPlane, contender: Contender, count: int) -> Run:
    watcher = _watcher(plane, count)
    started = time.monotonic()
    with _spending(plane, contender.start(plane)) as spent:
        return _seen(watcher, started, spent)


def _watcher(plane: ControlPlane, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "benchmarks.kube_watcher", str(plane.kubeconfig()), str(count), str(LONGEST_S)]
    watcher = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "synced\n"
    return watcher


def _seen(watcher: subprocess.Popen[str], started: float, spent: dict[str, dict[str, float]]) -> Run:
    assert watcher.stdout is not None
    told = json.loads(watcher.stdout.readline())
    watcher.wait()
    return Run(told["bound"], told["waited"], told["late"], started, spent)


@contextmanager
def _spending(plane: ControlPlane, processes: list[Process]) -> Iterator[dict[str, dict[str, float]]]:
    """Filled in at the end. A process that ends by itself before has no numbers any more, so the last look counts."""
    everybody = [plane.etcd, plane.api_server, *plane.beside.values()]
    before = {one.name: cpu_seconds(one.pid) if one not in processes else 0.0 for one in everybody}
    spent: dict[str, dict[str, float]] = {}
    yield spent
    for one in everybody:
        if one.alive:
            cpu = round(cpu_seconds(one.pid) - before[one.name], 2)
            spent[one.name] = {"cpu_s": cpu, "peak_mib": _peak_mib(one.pid)}


def _peak_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
