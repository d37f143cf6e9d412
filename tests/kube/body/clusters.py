"""A real API server with fake nodes, and real controllers of ours beside it as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.processes import die_with_parent
from optimus.api.crds import definitions

PATIENCE_S = 90.0
NODE = """
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{kubernetes.io/hostname: {name}}}
  annotations: {{kwok.x-k8s.io/node: fake}}
status: {{allocatable: {{cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "{gpus}"}}}}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{optimus.dev/group: {group}}}
  annotations: {{optimus.dev/min-members: "{least}"{notes}}}
spec:
  schedulerName: {scheduler}
  {more}
  containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}}}]
---
"""

DEFAULT_QUEUE = """
apiVersion: optimus.dev/v1alpha1
kind: Queue
metadata: {name: default}
spec: {}
"""


def until(true: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)


class Stand:
    """One namespace of a plane, with nodes of its own."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        self.scheduler = f"optimus-{namespace}"
        self.controllers: list[subprocess.Popen[bytes]] = []
        self.logs: dict[int, Path] = {}
        """By process."""
        self.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n")

    def apply(self, text: str) -> None:
        done = subprocess.run(
            self.plane.kubectl("apply", "-f", "-"), input=text, text=True, check=False, capture_output=True
        )
        assert done.returncode == 0, done.stderr

    def nodes(self, count: int, gpus: int = 4, first: int = 0) -> list[str]:
        names = [f"{self.namespace}-{number}" for number in range(first, first + count)]
        self.apply("".join(NODE.format(name=name, gpus=gpus) for name in names))
        return names

    def gang(
        self, name: str, pods: int, *, least: int | None = None, gpus: int = 1, notes: str = "", more: str = ""
    ) -> None:
        """Bare pods with a label, as nobody has to have a controller. They go to nodes of this stand."""
        here = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}"
        mine = ", ".join(
            f'{{matchFields: [{{key: metadata.name, operator: In, values: ["{node}"]}}]}}' for node in self.mine()
        )
        self.apply(
            "".join(
                POD.format(
                    name=f"{name}-{number}",
                    namespace=self.namespace,
                    group=name,
                    least=least or pods,
                    scheduler=self.scheduler,
                    gpus=gpus,
                    notes=notes,
                    more=more or here % mine,
                )
                for number in range(pods)
            )
        )

    def delete_gang(self, gang: str) -> None:
        """Its pods."""
        words = ("delete", "pod", f"--namespace={self.namespace}", "--selector", f"optimus.dev/group={gang}")
        subprocess.run(self.plane.kubectl(*words, "--wait=false"), check=True, capture_output=True)

    def mine(self) -> list[str]:
        found = json.loads(self.plane.get("/api/v1/nodes"))["items"]
        return [node["metadata"]["name"] for node in found if node["metadata"]["name"].startswith(self.namespace)]

    def start(self, *options: str, module: str = "optimus") -> subprocess.Popen[bytes]:
        # Another story may have brought queues to this server: then the one that is there without them must be one.
        apply = self.plane.kubectl("apply", "-f", "-")
        subprocess.run(apply, input=DEFAULT_QUEUE, text=True, check=False, capture_output=True)
        words = [sys.executable, "-m", module, "controller", f"--kubeconfig={self.plane.kubeconfig()}"]
        words += [f"--scheduler-name={self.scheduler}", f"--lease-namespace={self.namespace}", *options]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        path = self.plane.folder / f"{self.namespace}-{len(self.logs)}.log"
        with path.open("ab") as log:
            started = subprocess.Popen(
                words,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - sets one flag
            )
        self.logs[started.pid] = path
        self.controllers.append(started)
        return started

    def serve_queues(self) -> None:
        """Queues are objects from now on. The one that everybody had before is one of them."""
        self.apply(yaml.safe_dump_all(definitions()))
        for name in ("queues", "nodepools"):
            words = self.plane.kubectl(
                "wait", "--for=condition=Established", f"crd/{name}.optimus.dev", "--timeout=60s"
            )
            subprocess.run(words, check=True, capture_output=True)
        until(lambda: self.make_queue("default", {"gpu": {"limit": "unlimited"}}), "the server knows queues")

    def make_queue(self, name: str, spec: dict[str, Any]) -> bool:
        made = {"apiVersion": "optimus.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        words = self.plane.kubectl("apply", "-f", "-")
        done = subprocess.run(words, input=yaml.safe_dump(made), text=True, check=False, capture_output=True)
        return done.returncode == 0

    def log(self) -> str:
        """Of all of them, one after the other."""
        return "".join(path.read_text(errors="replace") for path in self.logs.values())

    def stop(self) -> None:
        for one in self.controllers:
            if one.poll() is None:
                one.send_signal(signal.SIGCONT)
                one.terminate()
        for one in self.controllers:
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        delete = self.plane.kubectl("delete", "namespace", self.namespace, "--wait=false")
        subprocess.run(delete, check=False, capture_output=True)
        try:
            slices = json.loads(self.plane.get("/apis/resource.k8s.io/v1/resourceslices"))["items"]
        except HTTPError:  # an older server
            slices = []
        names = [
            f"resourceslice/{name}" for one in slices if (name := one["metadata"]["name"]).startswith(self.namespace)
        ]
        for name in (*(f"node/{node}" for node in self.mine()), *names):
            subprocess.run(self.plane.kubectl("delete", name), check=False, capture_output=True)

    # -- what is there ------------------------------------------------------------------------------------------------

    def pods(self) -> list[dict[str, Any]]:
        found = json.loads(self.plane.get(f"/api/v1/namespaces/{self.namespace}/pods"))["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def bound(self, group: str = "") -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.pods()
            if pod["spec"].get("nodeName")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
            and (not group or pod["metadata"]["name"].startswith(f"{group}-"))
        ]

    def gpus(self) -> int:
        """Of the whole plane: other stories may have left a cordoned node."""
        nodes = json.loads(self.plane.get("/api/v1/nodes"))["items"]
        return sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes)

    def over_committed(self) -> dict[str, int]:
        """Nodes that have more GPUs given away than they have, with how many are given away."""
        given: Counter[str] = Counter()
        for pod in self.bound():
            for container in pod["spec"]["containers"]:
                given[pod["spec"]["nodeName"]] += int(container["resources"].get("limits", {}).get("nvidia.com/gpu", 0))
        have = {
            node["metadata"]["name"]: int(node["status"]["allocatable"].get("nvidia.com/gpu", 0))
            for node in json.loads(self.plane.get("/api/v1/nodes"))["items"]
        }
        return {name: count for name, count in given.items() if count > have.get(name, 0)}

    def condition(self, pod: str) -> str:
        for one in self.pods():
            if one["metadata"]["name"] == pod:
                told = [c for c in one["status"].get("conditions", ()) if c["type"] == "PodScheduled"]
                return str(told[0].get("message", "")) if told else ""
        return ""

    def events(self) -> list[tuple[str, str, str]]:
        """(object, reason, note)"""
        found = json.loads(self.plane.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"))["items"]
        return [(one["regarding"]["name"], one["reason"], one.get("note", "")) for one in found]
