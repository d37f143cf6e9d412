"""The whole controller: its brain writes numbers and binds, its jobs controller makes pods, and a job goes from one to
the other and back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import Stand, until


class JobsOfStand(Stand):
    def submit(self, name: str, least: int, most: int, notes: dict[str, str] | None = None, **more: Any) -> None:
        nodes = [{"key": "metadata.name", "operator": "In", "values": [node]} for node in self.mine()]
        terms = [{"matchFields": [one]} for one in nodes]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        pod = {
            "schedulerName": self.scheduler,
            "affinity": affinity,
            "containers": [{"name": "main", "image": "none"}],
        }
        spec = {
            "queue": "default",
            "replicaSpec": {"minReplicas": least, "maxReplicas": most, "gpu": {"count": 1}},
            "checkpoint": {"graceSeconds": 5},
            "template": {"metadata": {"annotations": notes or {}}, "spec": pod},
            **more,
        }
        meta = {"name": name, "namespace": self.namespace}
        self.apply(
            json.dumps({"apiVersion": "optimus.dev/v1alpha1", "kind": "UnifiedJob", "metadata": meta, "spec": spec})
        )

    def job(self, name: str) -> dict[str, Any]:
        path = f"/apis/optimus.dev/v1alpha1/namespaces/{self.namespace}/unifiedjobs"
        items = json.loads(self.plane.get(path))["items"]
        found: dict[str, Any] = next((one for one in items if one["metadata"]["name"] == name), {})
        return found

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.job(name).get("status", {})
        return found


@pytest.fixture
def stand(plane: ControlPlane, namespace_name: str) -> Iterator[JobsOfStand]:
    made = JobsOfStand(plane, namespace_name[:40].strip("-"))
    made.serve_queues()
    yield made
    made.stop()


def test_it_uses_what_is_free_gives_it_back_and_ends(stand: JobsOfStand) -> None:
    stand.nodes(1, gpus=4)
    stand.start()
    stand.submit("elastic", 1, 4)
    until(lambda: stand.status("elastic").get("running") == "4/4", "it uses all there is")
    stand.submit("urgent", 2, 2, {"optimus.dev/seconds": "3"}, priority=1000)
    until(lambda: stand.status("urgent").get("running") == "2/2", "somebody more important comes")
    until(lambda: stand.status("elastic").get("running") == "2/2", "it goes on with less")
    assert stand.status("elastic")["attempt"] == 1
    until(lambda: stand.status("urgent").get("phase") == "Succeeded", "and ends")  # a size stays for five minutes
    assert stand.over_committed() == {}
    delete = stand.plane.kubectl("-n", stand.namespace, "delete", "unifiedjob", "elastic", "urgent", "--wait=false")
    subprocess.run(delete, check=True, capture_output=True)
    until(lambda: stand.pods() == [] and not stand.job("elastic"), "nothing is left")


def test_a_gang_is_preempted_waits_and_comes_back(stand: JobsOfStand) -> None:
    stand.nodes(1, gpus=4)
    stand.start()
    stand.submit("low", 3, 3)
    until(lambda: stand.status("low").get("phase") == "Running", "it runs")
    stand.submit("high", 2, 2, {"optimus.dev/seconds": "3"}, priority=1000)
    until(lambda: stand.status("high").get("phase") == "Running", "the other one runs")
    assert stand.status("low")["phase"] in ("Preempted", "Pending")
    assert stand.status("low")["preemptions"] == 1
    until(lambda: stand.status("high").get("phase") == "Succeeded", "it ends")
    until(lambda: stand.status("low").get("phase") == "Running", "it comes back")
    assert stand.status("low")["attempt"] == 2
    assert stand.over_committed() == {}
