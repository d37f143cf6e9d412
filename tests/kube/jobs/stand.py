"""A namespace of a real API server, the jobs controller as a process beside it, and a hand that stands in for the
scheduler: it writes the number and binds pods."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.processes import die_with_parent
from optimus.api.crds import definitions
from tests.kube.body.clusters import NODE, until

HERE = Path(__file__).parents[3]


class JobStand:
    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace, self.scheduler = plane, namespace, f"optimus-{namespace}"
        self.node = f"{namespace}-0"
        self.controller: subprocess.Popen[bytes] | None = None
        self.log = plane.folder / f"{namespace}-jobs.log"
        self.starts = 0
        self.apply(*definitions())
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.kubectl("wait", "--for=condition=Established", "crd/unifiedjobs.optimus.dev", "--timeout=60s")
        self.apply(yaml.safe_load(NODE.format(name=self.node, gpus=1000).replace("---", "")))

    # -- people and the scheduler -------------------------------------------------------------------------------------

    def kubectl(self, *words: str, given: str = "", fails: bool = False) -> str:
        called = self.plane.kubectl("-n", self.namespace, *words)
        done = subprocess.run(called, input=given, text=True, check=False, capture_output=True)
        assert fails or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def apply(self, *documents: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(documents))

    def submit(
        self, name: str, least: int = 1, most: int = 0, notes: dict[str, str] | None = None, **more: Any
    ) -> None:
        """`notes`: of its pods; KWOK ends them by `optimus.dev/seconds`."""
        container = {"name": "main", "image": "none"}
        pod = {"schedulerName": self.scheduler, "containers": [container]}
        spec = {
            "replicaSpec": {"minReplicas": least, "maxReplicas": most or least, "gpu": {"count": 1}},
            "restart": {"backoffSeconds": 1, "maxBackoffSeconds": 2},
            "template": {"metadata": {"annotations": notes or {}}, "spec": pod},
            **more,
        }
        meta = {"name": name, "namespace": self.namespace}
        job = {"apiVersion": "optimus.dev/v1alpha1", "kind": "UnifiedJob", "metadata": meta, "spec": spec}
        until(lambda: "created" in self.kubectl("apply", "-f", "-", given=json.dumps(job), fails=True), "it is taken")

    def target(self, name: str, count: int, because: str = "Admitted: there is room") -> None:
        patch = {
            "metadata": {"annotations": {"optimus.dev/target-because": because}},
            "spec": {"replicaSpec": {"targetReplicas": count}},
        }
        self.kubectl("patch", "unifiedjob", name, "--type=merge", "-p", json.dumps(patch))

    def bind(self) -> int:
        """Whatever waits; tells how many did."""
        waiting = [
            pod["metadata"]["name"]
            for pod in self.pods()
            if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        ]
        for name in waiting:
            target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/binding"
            self.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(body), fails=True)
        return len(waiting)

    # -- the controller -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        words = [sys.executable, "-m", "tests.kube.jobs.alone"]
        words += [str(self.plane.kubeconfig()), self.namespace, self.scheduler]
        with self.log.open("ab") as log:
            self.controller = subprocess.Popen(
                words,
                stdout=log,
                stderr=log,
                cwd=HERE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - sets one flag
            )
        self.starts += 1

    def kill(self) -> None:
        if self.controller is not None:
            self.controller.send_signal(signal.SIGKILL)
            self.controller.wait()
            self.controller = None

    def stop(self) -> None:
        self.kill()
        for job in self.jobs():  # nobody is left who would take their finalizers away
            self._let_go(f"unifiedjob/{job['metadata']['name']}")
        for pod in self.pods():
            self._let_go(f"pod/{pod['metadata']['name']}")
        self.kubectl("delete", "namespace", self.namespace, "--wait=false", fails=True)
        self.kubectl("delete", "node", self.node, "--wait=false", fails=True)

    def _let_go(self, what: str) -> None:
        self.kubectl("patch", what, "--type=merge", "-p", '{"metadata":{"finalizers":null}}', fails=True)

    # -- what is there ------------------------------------------------------------------------------------------------

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.plane.get(f"/api/v1/namespaces/{self.namespace}/pods"))["items"]
        return found

    def names(self, job: str) -> list[str]:
        """Of pods of a job that have not ended and are not told to."""
        return sorted(
            pod["metadata"]["name"]
            for pod in self.pods()
            if pod["metadata"]["name"].startswith(f"{job}-")
            and not pod["metadata"].get("deletionTimestamp")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        )

    def jobs(self) -> list[dict[str, Any]]:
        path = f"/apis/optimus.dev/v1alpha1/namespaces/{self.namespace}/unifiedjobs"
        found: list[dict[str, Any]] = json.loads(self.plane.get(path))["items"]
        return found

    def status(self, name: str) -> dict[str, Any]:
        found = next((job for job in self.jobs() if job["metadata"]["name"] == name), None)
        return found.get("status", {}) if found is not None else {"phase": "gone"}

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", ""))

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        found = [one for one in self.status(name).get("conditions", ()) if one["type"] == kind]
        return found[0] if found else {}

    def until_phase(self, name: str, *phases: str, bind: bool = True) -> None:
        def there() -> bool:
            if bind:
                self.bind()
            return self.phase(name) in phases

        until(there, f"{name} is {' or '.join(phases)}: {self.status(name)}")

    def until_running(self, name: str, running: str) -> None:
        def there() -> bool:
            self.bind()
            return self.status(name).get("running") == running

        until(there, f"{running} of {name} run")

    def events(self, name: str) -> list[tuple[str, str]]:
        found = json.loads(self.plane.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"))["items"]
        return [(one["reason"], one.get("note", "")) for one in found if one["regarding"]["name"] == name]
