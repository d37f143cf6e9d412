"""Who is measured at the same API server: how each is started, and how its pods say that they are a gang.

    raw             a bare loop of binds to places known beforehand: what the server takes, and no scheduler can pass
    optimus         `optimus controller`, as `optimus install` leaves it: the rights of its role, queues and policies,
                    election, events, conditions and numbers (benchmarks/kube_installation.py)
    kube-scheduler  the stock scheduler, which knows no gangs
    native gangs    the same with the gang API of its version
    kueue           Kueue admits suspended Jobs, the stock scheduler binds their pods

Others, of which only a program is at hand, by a file (see `Peer`). Client limits are off for all of them.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchmarks import kube_installation
from benchmarks.kube_world import GPUS, NAMESPACE, QUEUE, Gangs, Shape
from hack.controlplane import ControlPlane
from hack.controlplane.processes import Process
from hack.operators import KUEUE, install, start

DEFAULT = "default-scheduler"


class Contender(msgspec.Struct, frozen=True):
    name: str
    start: Callable[[ControlPlane], list[Process]]
    scheduler: str = DEFAULT
    gangs: Gangs = Gangs.NONE
    gang_api: bool = False
    prepare: Callable[[ControlPlane, int], None] | None = None
    """What it needs before anything can ask for it: objects, on a cluster of so many nodes."""
    job_labels: dict[str, str] = {}
    """Of suspended Jobs that it admits."""


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A scheduler of others, in a file:

    name: acme
    schedulerName: acme-scheduler
    manifests: [crds.yaml, rbac.yaml]                    # applied before it is started
    command: /opt/acme --kubeconfig={kubeconfig}         # one program; lines for several
    podLabels: {acme.io/gang: "{gang}"}
    podAnnotations: {acme.io/min: "{size}"}
    gang: {apiVersion: acme.io/v1, kind: Gang, …}        # one for each gang, where it wants an object
    """

    name: str
    scheduler_name: str
    command: str
    manifests: list[str] = []
    pod_labels: dict[str, str] = {}
    pod_annotations: dict[str, str] = {}
    gang: dict[str, Any] = {}

    def contender(self) -> Contender:
        return Contender(self.name, self._start, self.scheduler_name)

    def dressed(self, pod: dict[str, Any], shape: Shape) -> dict[str, Any]:
        """Its pods, with what makes them a gang."""
        words = {"gang": pod["metadata"]["labels"]["app"], "size": str(shape.size)}
        for field, more in (("labels", self.pod_labels), ("annotations", self.pod_annotations)):
            filled = {key: value.format(**words) for key, value in more.items()}
            pod["metadata"][field] = {**pod["metadata"].get(field, {}), **filled}
        return pod

    def gang_of(self, name: str, size: int) -> dict[str, Any]:
        text = msgspec.json.encode(self.gang).decode().replace("{gang}", name).replace('"{size}"', str(size))
        made: dict[str, Any] = msgspec.json.decode(text)
        return made

    def _start(self, plane: ControlPlane) -> list[Process]:
        for path in self.manifests:
            apply = plane.kubectl("apply", "--server-side", "-f", path)
            subprocess.run(apply, check=True, stdout=subprocess.DEVNULL)
        made = []
        for number, line in enumerate(filter(None, self.command.splitlines())):
            words = shlex.split(line.format(kubeconfig=plane.kubeconfig()))
            made.append(_begin(plane, f"{self.name}-{number}", words))
        return made


def peer(path: Path) -> Peer:
    """Raises ValueError, with what is wrong where."""
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=Peer)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # also of a field that there is not
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(Peer))
        raise ValueError(f"{path}: {error}; fields are {known}") from None


def _begin(plane: ControlPlane, name: str, words: list[str]) -> Process:
    plane.beside[name] = process = Process(name, words, plane.folder)
    process.start()
    return process


def _raw(plane: ControlPlane) -> list[Process]:
    return [_begin(plane, "raw", [sys.executable, "-m", "benchmarks.kube_raw", str(plane.kubeconfig())])]


def _optimus(plane: ControlPlane) -> list[Process]:
    return [_begin(plane, "optimus", kube_installation.controller(plane))]


def _stock(plane: ControlPlane) -> list[Process]:
    return [plane.start_scheduler()]


def _kueue(plane: ControlPlane) -> list[Process]:
    return [start(plane, KUEUE), plane.start_scheduler()]


def _queue_of_ours(plane: ControlPlane, nodes: int) -> None:
    kube_installation.install(plane, GPUS * nodes)


def _queue_of_kueue(plane: ControlPlane, nodes: int) -> None:
    version = "kueue.x-k8s.io/v1beta2"
    flavour = {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "gpu"}}
    amounts = {"cpu": 64 * nodes, "memory": f"{512 * nodes}Gi", "nvidia.com/gpu": GPUS * nodes}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": "gpu", "resources": resources}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    queue = {"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": QUEUE}, "spec": spec}
    local = {
        "apiVersion": version,
        "kind": "LocalQueue",
        "metadata": {"name": QUEUE, "namespace": NAMESPACE},
        "spec": {"clusterQueue": QUEUE},
    }
    install(plane, KUEUE)
    apply(plane, [flavour, queue, local])


def apply(plane: ControlPlane, objects: list[dict[str, Any]]) -> None:
    words = plane.kubectl("apply", "--server-side", "-f", "-")
    subprocess.run(words, input=yaml.safe_dump_all(objects), text=True, check=True, stdout=subprocess.DEVNULL)


RAW = Contender("raw", _raw)
OPTIMUS = Contender(
    "optimus", _optimus, "optimus", Gangs.OPTIMUS, prepare=_queue_of_ours, job_labels={"optimus.dev/queue": QUEUE}
)
STOCK = Contender("kube-scheduler", _stock)
NATIVE = Contender("native gangs", _stock, DEFAULT, Gangs.NATIVE, gang_api=True)
WITH_KUEUE = Contender(
    "kueue", _kueue, DEFAULT, prepare=_queue_of_kueue, job_labels={"kueue.x-k8s.io/queue-name": QUEUE}
)
