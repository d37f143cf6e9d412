"""A namespace on real nodes whose pods are ours without a word in any manifest, and a real controller beside it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.real_nodes import RealNodes
from hack.controlplane.real_nodes.images import BUSYBOX
from tests.calling import called
from tests.kube.body.clusters import PATIENCE_S, Stand, until

PLAIN = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks-who"}, "spec": {"containers": [{"name": "m"}]}}


class Ground(Stand):
    def __init__(self, plane: ControlPlane, nodes: RealNodes, namespace: str, folder: Path) -> None:
        """`folder`: what containers see as /shared, on every node."""
        super().__init__(plane, namespace)
        self.real, self.folder = nodes, folder
        self.scheduler = "optimus"
        self.kubectl("label", "namespace", namespace, "optimus.dev/scheduler=enabled")
        until(self._is_opted_in, "the server names the scheduler of pods here")

    def _is_opted_in(self) -> bool:
        PLAIN["spec"]["containers"][0]["image"] = BUSYBOX  # type: ignore[index]
        words = ("create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.schedulerName}")
        return self.kubectl(*words, "-n", self.namespace, stdin=json.dumps(PLAIN)) == self.scheduler

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        done = subprocess.run(self.plane.kubectl(*words), input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def optimus(self, *words: str) -> str:
        """The command line, as an administrator of the cluster."""
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.plane.kubeconfig()),
            "OPTIMUS_TARGET": "kube:",
            "OPTIMUS_NAMESPACE": self.namespace,
        }
        done = called(words, env=environment, timeout_s=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def job(
        self,
        name: str,
        pods: int,
        command: list[str],
        *,
        image: str = BUSYBOX,
        queue: str = "default",
        requests: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        node: str = "",
        grace_s: int = 30,
    ) -> None:
        """An indexed Job whose pods start together. Nothing of it may fail: one pod that does fails the Job."""
        rank = {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
        container = {
            "name": "main",
            "image": image,
            "command": command,
            "env": [
                {"name": "OPTIMUS_RANK", "valueFrom": {"fieldRef": rank}},
                *({"name": key, "value": value} for key, value in (environment or {}).items()),
            ],
            "resources": {"requests": requests or {}, "limits": {"nvidia.com/gpu": "1"}},
            "volumeMounts": [{"name": "work", "mountPath": "/shared"}],
        }
        template = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": grace_s,
            "containers": [container],
            "volumes": [{"name": "work", "hostPath": {"path": str(self.folder)}}],
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
        }
        made = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"optimus.dev/queue": queue},
                "annotations": {"optimus.dev/min-members": str(pods)},
            },
            "spec": {
                "completionMode": "Indexed",
                "parallelism": pods,
                "completions": pods,
                "backoffLimit": 0,
                "template": {"spec": template},
            },
        }
        self.apply(yaml.safe_dump(made))

    def status(self, job: str) -> dict[str, Any]:
        found = json.loads(self.plane.get(f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{job}"))
        return dict(found["status"])

    def completes(self, job: str) -> None:
        def is_over() -> bool:
            status = self.status(job)
            assert not status.get("failed"), f"{job}: {status}; {self.told()}"
            return "completionTime" in status

        until(is_over, f"{job} completes: {self.told()}")

    def running(self, job: str) -> list[dict[str, Any]]:
        """Pods whose containers run, as their kubelets say."""
        return [
            pod
            for pod in self.pods()
            if pod["metadata"]["labels"].get("job-name") == job
            and [one["state"] for one in pod["status"].get("containerStatuses", ()) if "running" in one["state"]]
        ]

    def told(self) -> list[str]:
        """What kubelets and Kubernetes say of pods that did not run: empty if all is well."""
        return [
            f"{pod['metadata']['name']}: {pod['status'].get('reason', '')} {pod['status'].get('message', '')}"
            for pod in self.pods()
            if pod["status"].get("reason")
        ]

    def refusal(self, node: str) -> str:
        """What a kubelet says to a pod with a GPU that nobody has scheduled; it is gone afterwards."""
        container = {"name": "main", "image": BUSYBOX, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        meta = {"name": f"past-us-{node}", "namespace": self.namespace}
        spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
        self.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))
        path = f"/api/v1/namespaces/{self.namespace}/pods/{meta['name']}"

        def said() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(self.plane.get(path))["status"]
            return found

        until(lambda: said()["phase"] != "Pending", f"{node} has looked at it")
        reason = str(said().get("reason", said()["phase"]))
        self.kubectl("delete", "pod", meta["name"], "-n", self.namespace, "--grace-period=0", "--force")
        return reason

    def delete(self, job: str) -> None:
        self.kubectl("delete", "job", job, "-n", self.namespace, "--wait=false")

    def stop(self) -> None:
        """Room is needed by the next story, and nobody has to be asked twice."""
        self.kubectl("delete", "jobs", "--all", "-n", self.namespace, "--wait=false")
        self.kubectl("delete", "pods", "--all", "-n", self.namespace, "--wait=false", "--grace-period=1")
        super().stop()
        until(lambda: not self.pods(), "all containers of this story have ended")


def places(pods: list[dict[str, Any]]) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in pods)
