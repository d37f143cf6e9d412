"""UnifiedJobs, the scheduler and the jobs controller together, on a real API server: from submission to the end.

Nodes and containers are KWOK's. One process of ours leads; the stories see only what people see.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import Stand, until

Document = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]


class Jobs(Stand):
    """A cluster with queues and jobs as resources."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(plane, namespace)
        self.serve_queues()
        self.kubectl("wait", "--for=condition=Established", "crd/unifiedjobs.optimus.dev", "--timeout=60s")

    def kubectl(self, *words: str, given: str = "", fails: bool = False) -> str:
        called = self.plane.kubectl("-n", self.namespace, *words)
        done = subprocess.run(called, input=given, text=True, check=False, capture_output=True)
        assert fails or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def submit(self, name: str, least: int, most: int = 0, *, seconds: str = "", **more: Any) -> None:
        notes = {"optimus.dev/seconds": seconds} if seconds else {}
        pod: Document = {
            "schedulerName": self.scheduler,
            "containers": [{"name": "main", "image": "none"}],
            "affinity": _only_on(self.mine()),
        }
        job = {
            "apiVersion": "optimus.dev/v1alpha1",
            "kind": "UnifiedJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "replicaSpec": {"minReplicas": least, "maxReplicas": most or least, "gpu": {"count": 1}},
                "restart": {"backoffSeconds": 1, "maxBackoffSeconds": 2},
                "template": {"metadata": {"annotations": notes}, "spec": pod},
                **more,
            },
        }
        until(
            lambda: "created" in self.kubectl("apply", "-f", "-", given=json.dumps(job), fails=True), f"{name} is taken"
        )

    def job(self, name: str) -> Document:
        found = self.kubectl("get", "unifiedjob", name, "-o", "json", fails=True)
        return json.loads(found) if found.startswith("{") else {}

    def status(self, name: str) -> Document:
        return self.job(name).get("status", {})

    def runs(self, name: str, running: str) -> None:
        until(
            lambda: (self.status(name).get("phase"), self.status(name).get("running")) == ("Running", running),
            f"{name} runs as {running}",
        )

    def reaches(self, name: str, phase: str) -> None:
        until(lambda: self.status(name).get("phase") == phase, f"{name} is {phase}")

    def pods_of(self, job: str) -> list[Document]:
        found = self.kubectl("get", "pods", "-l", f"optimus.dev/job={job}", "-o", "json")
        return json.loads(found)["items"]

    def stop(self) -> None:
        for job in json.loads(self.kubectl("get", "unifiedjobs", "-o", "json"))["items"]:
            self.kubectl("delete", "unifiedjob", job["metadata"]["name"], "--wait=false", fails=True)
        until(lambda: not json.loads(self.kubectl("get", "unifiedjobs,pods", "-o", "json"))["items"], "all is gone")
        super().stop()


def _only_on(nodes: list[str]) -> Document:
    """Other stories have nodes on the same server."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.fixture
def jobs(plane: ControlPlane, namespace_name: str) -> Iterator[Jobs]:
    made = Jobs(plane, namespace_name[:40].strip("-"))
    yield made
    made.stop()


def test_a_gang_from_submission_to_its_end(jobs: Jobs) -> None:
    jobs.nodes(2, gpus=4)
    jobs.start()
    jobs.submit("train", 6, seconds="3")
    jobs.reaches("train", "Running")
    assert len({pod["spec"]["nodeName"] for pod in jobs.pods_of("train")}) == 2
    jobs.reaches("train", "Succeeded")
    status = jobs.status("train")
    assert (status["attempt"], status["failures"], status["preemptions"]) == (1, 0, 0)
    assert [one["target"] for one in status["targets"]] == [6]
    shown = jobs.kubectl("get", "unifiedjobs")
    assert "train" in shown and "Succeeded" in shown


def test_suspended_and_resumed_by_its_owner(jobs: Jobs) -> None:
    jobs.nodes(1, gpus=2)
    jobs.start()
    jobs.submit("train", 2)
    jobs.runs("train", "2/2")
    jobs.kubectl("patch", "unifiedjob", "train", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    jobs.reaches("train", "Suspended")
    until(lambda: jobs.pods_of("train") == [], "nothing of it is left")
    assert jobs.status("train")["preemptions"] == 0
    jobs.kubectl("patch", "unifiedjob", "train", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    jobs.runs("train", "2/2")


def test_a_member_that_fails_costs_the_gang_its_attempt_and_no_room_meanwhile(jobs: Jobs) -> None:
    jobs.nodes(1, gpus=2)
    jobs.start()
    notes = {"optimus.dev/seconds": "2", "optimus.dev/exit-code": "3"}
    jobs.submit(
        "bad", 2, restart={"backoffLimit": 1, "backoffSeconds": 2, "maxBackoffSeconds": 2}, **_with_notes(jobs, notes)
    )
    jobs.reaches("bad", "Failed")
    status = jobs.status("bad")
    assert status["failures"] == 2 and "exited with code 3" in status["message"]
    jobs.submit("next", 2, seconds="1")
    jobs.reaches("next", "Succeeded")


def test_an_array_of_a_hundred_on_four_gpus(jobs: Jobs) -> None:
    jobs.nodes(1, gpus=4)
    jobs.start()
    jobs.submit("sweep", 1, seconds="1", arraySize=100)
    until(lambda: jobs.status("sweep").get("phase") == "Succeeded", "all parts are done", 240)
    assert "100 of 100" in jobs.status("sweep")["message"] or jobs.status("sweep")["failures"] == 0


def test_a_leader_that_dies_in_the_middle_of_a_start(jobs: Jobs) -> None:
    jobs.nodes(2, gpus=8)
    first = jobs.start("--lease-seconds=3")
    jobs.submit("train", 16)
    until(lambda: jobs.pods_of("train"), "its pods begin to come")
    first.send_signal(signal.SIGKILL)
    first.wait()
    jobs.start("--lease-seconds=3")
    jobs.runs("train", "16/16")
    assert len(jobs.pods_of("train")) == 16 and jobs.status("train")["attempt"] == 1


def test_a_job_that_no_node_can_ever_run_says_so_at_once(jobs: Jobs) -> None:
    jobs.nodes(1, gpus=2)
    jobs.start()
    jobs.submit("huge", 1, replicaSpec={"minReplicas": 1, "gpu": {"count": 64}})
    until(lambda: "64" in str(jobs.status("huge").get("message", "")), "its status says why")
    status = jobs.status("huge")
    assert status["phase"] == "Pending" and status["reason"] in ("NeverFits", "NoSuchDevice", "NoMatchingNode")


def _with_notes(jobs: Jobs, notes: dict[str, str]) -> Document:
    pod = {
        "schedulerName": jobs.scheduler,
        "containers": [{"name": "main", "image": "none"}],
        "affinity": _only_on(jobs.mine()),
    }
    return {"template": {"metadata": {"annotations": notes}, "spec": pod}}


def test_documents_are_yaml(jobs: Jobs) -> None:
    """The example of the reference, as it stands there, is taken by the server."""
    text = (ROOT / "docs/reference/unifiedjob.md").read_text(encoding="utf-8")
    example = yaml.safe_load(text.split("```yaml")[1].split("```")[0])
    example["metadata"]["namespace"] = jobs.namespace
    jobs.kubectl("apply", "--dry-run=server", "-f", "-", given=json.dumps(example))
