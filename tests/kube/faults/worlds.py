"""A small world for faults: nodes with GPUs, gangs whose owners make pods anew, and controllers as real processes."""

from __future__ import annotations

import json
import subprocess
import urllib.error
from typing import Any

from msgspec import Struct

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import Stand

LEASE_S = 3
"""The shortest lease there is: a dead leader is followed after so long."""
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
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{optimus.dev/queue: {queue}, optimus.dev/priority: "{priority}"}}
spec:
  completionMode: Indexed
  parallelism: {pods}
  completions: {pods}
  suspend: {suspended}
  template:
    spec:
      schedulerName: {scheduler}
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      nodeSelector: {{stand: {stand}}}
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}}}]
---
"""


class Gang(Struct, frozen=True):
    name: str
    pods: int


class World(Stand):
    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(plane, namespace)
        self.gangs: dict[str, Gang] = {}
        """What must not be lost."""

    def nodes(self, count: int, gpus: int = 4, first: int = 0) -> list[str]:
        names = [f"{self.namespace}-{number}" for number in range(first, first + count)]
        told = (NODE.format(name=one, gpus=gpus, stand=self.namespace, rack=one) for one in names)
        self.apply("".join(told))
        return names

    def job(
        self,
        name: str,
        pods: int,
        *,
        gpus: int = 1,
        suspended: bool = False,
        queue: str = "default",
        priority: int = 0,
    ) -> None:
        """An indexed Job: all its pods at once, each made anew when it is lost."""
        self.apply(
            JOB.format(
                name=name,
                namespace=self.namespace,
                pods=pods,
                gpus=gpus,
                queue=queue,
                suspended=str(suspended).lower(),
                priority=priority,
                scheduler=self.scheduler,
                stand=self.namespace,
            )
        )
        self.gangs[name] = Gang(name, pods)

    def forget(self, name: str) -> None:
        """Its user deletes it."""
        del self.gangs[name]
        self.delete("job", name)

    def delete(self, kind: str, name: str) -> None:
        words = self.plane.kubectl("delete", kind, name, "-n", self.namespace, "--wait=false", "--ignore-not-found")
        subprocess.run(words, check=True, capture_output=True)

    def lead(self, *options: str, module: str = "optimus") -> subprocess.Popen[bytes]:
        return self.start(f"--lease-seconds={LEASE_S}", "-v", *options, module=module)

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

    def find_job(self, name: str) -> dict[str, Any] | None:
        return self.find(f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}")

    def leader(self) -> tuple[str, int] | None:
        """(who, term)"""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/optimus-scheduler"
        found = self.find(path)
        holder = found["spec"].get("holderIdentity") if found else None
        return (str(holder), int(found["spec"].get("leaseTransitions") or 0)) if found and holder else None

    def told(self, reason: str) -> list[str]:
        return [note for _, said, note in self.events() if said == reason]
