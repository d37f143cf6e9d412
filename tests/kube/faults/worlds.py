"""A small world for faults: nodes with GPUs, gangs whose owners make pods anew, and controllers as real processes."""

from __future__ import annotations

import json
import subprocess
import urllib.error
from typing import Any

import yaml
from msgspec import Struct

from hack.controlplane import ControlPlane
from optimus.drivers.kube.installing import Installation
from tests.kube.body.clusters import Stand
from tests.kube.faults.gangs import JOB, Ask, Sort

LEASE_S = 3
"""The shortest lease there is: a dead leader is followed after so long."""
INSTALLED_LEASE_S = Installation().lease_seconds
"""As people have it."""
NODE = """
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{kubernetes.io/hostname: {name}, stand: {stand}, rack: {rack}}}
  annotations: {{kwok.x-k8s.io/node: fake}}
status: {{allocatable: {{cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "{gpus}"}}}}
---
"""


class Gang(Struct, frozen=True):
    name: str
    pods: int
    sort: Sort
    text: str
    """As it was written."""


class World(Stand):
    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(plane, namespace)
        self.gangs: dict[str, Gang] = {}
        """What must not be lost."""
        self.lease_s = LEASE_S

    def nodes(self, count: int, gpus: int = 4, first: int = 0) -> list[str]:
        names = [f"{self.namespace}-{number}" for number in range(first, first + count)]
        told = (NODE.format(name=one, gpus=gpus, stand=self.namespace, rack=one) for one in names)
        self.apply("".join(told))
        return names

    def job(self, name: str, pods: int, **asked: Any) -> None:
        self.create(JOB, name, pods, **asked)

    def create(self, sort: Sort, name: str, pods: int, **asked: Any) -> None:
        """`asked`: fields of `gangs.Ask`."""
        here: dict[str, Any] = {"namespace": self.namespace, "scheduler": self.scheduler}
        text = yaml.safe_dump_all(sort.write(Ask(name=name, pods=pods, **here, **asked)))
        self.apply(text)
        self.gangs[name] = Gang(name, pods, sort, text)

    def forget(self, name: str) -> None:
        """Its user deletes it."""
        words = self.plane.kubectl("delete", "-f", "-", "--wait=false", "--ignore-not-found")
        subprocess.run(words, input=self.gangs.pop(name).text, text=True, check=True, capture_output=True)

    def delete(self, kind: str, name: str) -> None:
        words = self.plane.kubectl("delete", kind, name, "-n", self.namespace, "--wait=false", "--ignore-not-found")
        subprocess.run(words, check=True, capture_output=True)

    def lead(self, *options: str, module: str = "optimus") -> subprocess.Popen[bytes]:
        return self.start(f"--lease-seconds={self.lease_s}", "-v", *options, module=module)

    def leading(self) -> subprocess.Popen[bytes] | None:
        """The process that leads, by its own words."""
        for one in self.controllers:
            said = [line for line in self.logs[one.pid].read_text(errors="replace").splitlines() if "leading" in line]
            if one.poll() is None and said and "not leading" not in said[-1]:
                return one
        return None

    def bind_foreign(self, name: str, node: str, gpus: int) -> None:
        """As a scheduler that does not know of us would."""
        self.apply(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {self.namespace}}}\n"
            f"spec: {{schedulerName: another, nodeName: {node}, containers: [{{name: main, image: none, "
            f'resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}}}]}}\n'
        )

    # -- what is there ------------------------------------------------------------------------------------------------

    def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plane.get(path))
        return found

    def find(self, path: str) -> dict[str, Any] | None:
        """None if there is no such object."""
        try:
            return self.get(path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def owner(self, gang: Gang) -> dict[str, Any] | None:
        """Whoever makes its pods; None if it is gone."""
        return self.find(gang.sort.path(self.namespace, gang.name))

    def is_suspended(self, name: str) -> bool:
        owner = self.owner(self.gangs[name])
        return owner is not None and self.gangs[name].sort.is_suspended(owner)

    def pods_of(self, name: str) -> list[dict[str, Any]]:
        return [pod for pod in self.pods() if pod["metadata"]["labels"].get("gang") == name]

    def volumes_given(self, name: str) -> int:
        """To claims of a gang."""
        kind = f"{self.namespace}-{name}"
        found = self.get("/api/v1/persistentvolumes")["items"]
        return sum(one["spec"]["storageClassName"] == kind and "claimRef" in one["spec"] for one in found)

    def leader(self) -> tuple[str, int] | None:
        """(who, term)"""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/optimus-scheduler"
        found = self.find(path)
        holder = found["spec"].get("holderIdentity") if found else None
        return (str(holder), int(found["spec"].get("leaseTransitions") or 0)) if found and holder else None

    def told(self, reason: str) -> list[str]:
        return [note for _, said, note in self.events() if said == reason]
