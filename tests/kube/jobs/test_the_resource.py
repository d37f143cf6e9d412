"""UnifiedJob as the server takes it: good ones are kept as written and read as meant, wrong ones are refused in words
that say what to do."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import yaml

from hack.controlplane import ControlPlane
from optimus.api.building.submitted import read_cluster_job
from optimus.api.crds import definitions
from optimus.api.submitting import load_submission_data
from optimus.model.jobs import JobType
from optimus.model.workloads import WorkloadClass
from tests.kube.body.clusters import until
from tests.kube.jobs.good_jobs import GOOD
from tests.kube.jobs.wrong_jobs import WRONG, job, pods

SPACE = "unified"
JOBS = f"/apis/optimus.dev/v1alpha1/namespaces/{SPACE}/unifiedjobs"
DEFAULTS = {
    "jobType": "Job",
    "suspend": False,
    "onLoss": "replace",
    "restart": {"backoffLimit": 3, "backoffSeconds": 10, "maxBackoffSeconds": 300},
}


class Server:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def kubectl(self, *words: str, given: object = None) -> subprocess.CompletedProcess[str]:
        text = "" if given is None else json.dumps(given)
        called = self.plane.kubectl("-n", SPACE, *words)
        return subprocess.run(called, input=text, text=True, check=False, capture_output=True)

    def apply(self, document: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        return self.kubectl("apply", "-f", "-", given=document)

    def keep(self, document: dict[str, Any]) -> dict[str, Any]:
        done = self.apply(document)
        assert done.returncode == 0, done.stderr
        return self.get(document["metadata"]["name"])

    def get(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plane.get(f"{JOBS}/{name}"))
        return found

    def say(self, name: str, status: dict[str, Any]) -> dict[str, Any]:
        """As the controller does."""
        patch = json.dumps({"status": status})
        done = self.kubectl("patch", "uj", name, "--subresource=status", "--type=merge", "-p", patch)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = self.get(name)["status"]
        return told


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> Server:
    made = Server(plane)
    words = plane.kubectl("apply", "-f", "-")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    text = yaml.safe_dump_all([*definitions(), space])
    done = subprocess.run(words, input=text, text=True, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    until(lambda: made.apply(job("first")).returncode == 0, "jobs are served")
    return made


def test_there_are_enough_wrong_ones() -> None:
    assert len(WRONG) >= 80
    assert len({name for name, _, _ in WRONG}) == len(WRONG)


@pytest.mark.parametrize(("document", "says"), [pytest.param(*one, id=name) for name, *one in WRONG])
def test_a_wrong_job_is_refused_in_words(server: Server, document: dict[str, Any], says: str) -> None:
    done = server.apply(document)
    assert done.returncode != 0 and says in done.stderr, done.stderr


@pytest.mark.parametrize("name", GOOD)
def test_a_good_job_is_kept_as_written_and_read_as_meant(server: Server, name: str) -> None:
    document = GOOD[name]
    kept = server.keep(document)
    written = document["spec"]
    assert _changed(written, kept["spec"]) == []
    added = {key: value for key, value in kept["spec"].items() if key not in written}
    assert added == {key: value for key, value in DEFAULTS.items() if key not in written}
    job, wrong = read_cluster_job(kept, submitted_ms=0)
    assert wrong == [] and job is not None
    assert job.id == f"{SPACE}/{document['metadata']['name']}"
    if job.job_type in (JobType.JOB, JobType.INTERACTIVE):
        here = {**document, "metadata": {**document["metadata"], "namespace": SPACE}}
        [same] = load_submission_data(here).or_raise().jobs
        assert same.workload == job.workload, "one machine means the same by it"
    assert server.apply(document).stdout.strip().endswith("unchanged"), "it can be applied again"


def _changed(written: Any, kept: Any, path: str = "spec") -> list[str]:
    """What is not as it was written; nothing is null on a server."""
    if isinstance(written, dict) and isinstance(kept, dict):
        said = {key: value for key, value in written.items() if value is not None}
        return [one for key in said for one in _changed(said[key], kept.get(key), f"{path}.{key}")]
    return [] if written == kept else [f"{path}: {written} became {kept}"]


def test_all_that_is_said_comes_to_the_brain(server: Server) -> None:
    read, _ = read_cluster_job(server.keep(GOOD["everything"]), submitted_ms=0)
    assert read is not None
    role = read.workload.gang.roles[0]
    assert (role.min, role.max, role.sizes) == (2, 8, (2, 4, 8)), "the wish is the upper end"
    assert [(one.model, one.speed_percent) for one in role.request.models] == [("A100", 100), ("H100", 150)]
    assert (role.request.gpu_count, role.request.cpu_milli, role.request.memory_mib) == (8, 500, 65_536)
    assert read.job_type is JobType.PYTORCH_ELASTIC and read.workload.speedup_percent == (100, 190, 270)
    assert read.saving.command == ("python", "save.py") and read.saving.path == "/ckpt"
    assert read.restart.backoff_limit == 0 and read.keep_ms == 0 and read.workload.suspended
    service, _ = read_cluster_job(server.keep(GOOD["service"]), submitted_ms=0)
    assert service is not None and service.workload.workload_class is WorkloadClass.INFERENCE
    part, _ = read_cluster_job(server.keep(GOOD["fraction"]), submitted_ms=0)
    assert part is not None
    asked = part.workload.gang.roles[0].request
    assert (asked.gpu_count, asked.gpu_milli, asked.gpu_limit_milli, asked.activity_milli) == (1, 250, 500, 800)


def test_what_rules_cannot_compare_is_said_by_the_reader(server: Server) -> None:
    template = pods(containers=[{"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 4}}}])
    kept = server.keep(job("twice", replicaSpec={"gpu": {"count": 2}}, template=template))
    read, wrong = read_cluster_job(kept, submitted_ms=0)
    assert read is None
    place = "spec.template.spec.containers[0].resources.limits.nvidia.com/gpu"
    assert wrong == [f"{place}: is 4, but spec.replicaSpec.gpu says otherwise"]


def test_what_it_is_stays(server: Server) -> None:
    server.keep(job("stays", arraySize=3))
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"jobType": "MPI"}, "a job stays of its type: delete it and make another"),
        ({"arraySize": 4}, "an array keeps its parts: delete it and make another"),
        ({"arraySize": None}, "an array keeps its parts: delete it and make another"),
        ({"template": {"spec": {"schedulerName": "optimus-two"}}}, "a job stays with its scheduler"),
    )
    for change, says in changes:
        done = server.kubectl("patch", "uj", "stays", "--type=merge", "-p", json.dumps({"spec": change}))
        assert done.returncode != 0 and says in done.stderr, (change, done.stderr)
    others: tuple[dict[str, Any], ...] = ({"suspend": True}, {"priority": 7}, {"queue": "other"})
    for change in others:
        done = server.kubectl("patch", "uj", "stays", "--type=merge", "-p", json.dumps({"spec": change}))
        assert done.returncode == 0, done.stderr


def test_kubectl_scale_sets_the_wish_and_knows_what_is_there(server: Server) -> None:
    server.keep(job("elastic", replicaSpec={"minReplicas": 1, "maxReplicas": 4}))
    done = server.kubectl("scale", "uj", "elastic", "--replicas=3")
    assert done.returncode == 0, done.stderr
    assert server.get("elastic")["spec"]["replicaSpec"]["desiredReplicas"] == 3
    done = server.kubectl("scale", "uj", "elastic", "--replicas=5")
    assert done.returncode != 0 and "desiredReplicas is above maxReplicas" in done.stderr
    server.say("elastic", {"replicas": 2, "selector": "optimus.dev/job=elastic"})
    scale = json.loads(server.plane.get(f"{JOBS}/elastic/scale"))
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "optimus.dev/job=elastic"}


STATUS: dict[str, Any] = {
    "phase": "Running",
    "reason": "Resized",
    "message": "2 of 4 replicas run",
    "observedGeneration": 3,
    "replicas": 2,
    "ready": 2,
    "target": 4,
    "running": "2/4",
    "attempt": 2,
    "failures": 1,
    "preemptions": 1,
    "startTime": "2026-01-05T14:20:00Z",
    "completionTime": "2026-01-05T16:20:00Z",
    "estimatedStart": "2026-01-05T14:20:00Z",
    "estimatedEnd": "2026-01-05T16:20:00Z",
    "selector": "optimus.dev/job=told",
    "url": "http://told:8888",
    "placement": [{"replica": "worker-0", "node": "a"}],
    "lastCheckpoint": {"time": "2026-01-05T15:20:00Z", "step": 1000, "path": "/ckpt/1000"},
    "progress": {
        "step": 1200,
        "total": 5000,
        "fraction": "0.24",
        "stepsPerSecond": "3.2",
        "metrics": {"loss": "0.31"},
    },
    "attempts": [
        {
            "number": 1,
            "started": "2026-01-05T14:20:00Z",
            "ended": "2026-01-05T14:30:00Z",
            "reason": "Reclaimed",
            "message": "for train",
        }
    ],
    "targets": [{"time": "2026-01-05T14:20:00Z", "target": 4, "reason": "Started"}],
    "conditions": [
        {
            "type": "Running",
            "status": "True",
            "reason": "Resized",
            "message": "2 of 4",
            "lastTransitionTime": "2026-01-05T14:20:00Z",
            "observedGeneration": 3,
        }
    ],
    "life": {"deep": {"er": [1, "two", None]}},
}


def test_every_field_of_the_status_is_kept(server: Server) -> None:
    server.keep(job("told", queue="vision"))
    assert server.say("told", {**STATUS, "invented": 1}) == STATUS
    for name in ("attempts", "targets"):
        patch = json.dumps({"status": {name: STATUS[name] * 21}})
        done = server.kubectl("patch", "uj", "told", "--subresource=status", "--type=merge", "-p", patch)
        assert done.returncode != 0 and "must have at most 20 items" in done.stderr


def test_people_see_them_by_short_name_and_columns(server: Server) -> None:
    server.keep(job("seen", queue="vision"))
    server.say("seen", STATUS)
    head, row = server.kubectl("get", "uj", "seen").stdout.splitlines()
    assert head.split() == ["NAME", "PHASE", "RUNNING", "QUEUE", "AGE", "ETA"]
    assert row.split()[:4] == ["seen", "Running", "2/4", "vision"] and row.split()[5] == "2026-01-05T16:20:00Z"
    head, row = server.kubectl("get", "uj", "seen", "-o", "wide").stdout.splitlines()
    assert head.split()[6:] == ["ATTEMPT", "WHY"] and row.split()[6:] == ["2", *STATUS["message"].split()]
    assert "unifiedjob.optimus.dev/seen" in server.kubectl("get", "optimus").stdout, "among all that is of Optimus"
    told = server.kubectl("explain", "uj.spec.replicaSpec.targetReplicas").stdout
    assert "written by the scheduler alone" in told
