"""UnifiedJobs as real processes in real containers: told to save, stopped, brought back, restarted as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.real_nodes.images import BUSYBOX, PYTHON
from tests.kube.body.clusters import until
from tests.kube.real_nodes.ground import Ground

TRAINING = Path(__file__).with_name("training.py").read_text()
HEARS_USR1 = "trap 'echo saved > /shared/saved; exit 143' USR1; while :; do sleep 0.1; done"
FAILS_ONCE = 'test "$OPTIMUS_ATTEMPT" = 2 && exit 0; test "$OPTIMUS_RANK" = 1 && exit 7; sleep 100000'
HUNGRY = "import os; os.environ['OPTIMUS_ATTEMPT'] == '1' and bytearray(512 << 20)"
Document = dict[str, Any]


class Jobs:
    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        ground.kubectl("wait", "--for=condition=Established", "crd/unifiedjobs.optimus.dev", "--timeout=60s")

    def submit(self, name: str, replicas: int, command: list[str], image: str = BUSYBOX, **more: Any) -> None:
        container = {
            "name": "main",
            "image": image,
            "command": command,
            "volumeMounts": [{"name": "work", "mountPath": "/shared"}],
        }
        volume = {"name": "work", "hostPath": {"path": str(self.ground.folder)}}
        spec = {
            "replicaSpec": {"minReplicas": replicas, "gpu": {"count": 1}},
            "restart": {"backoffLimit": 2, "backoffSeconds": 1, "maxBackoffSeconds": 1},
            "template": {"spec": {"containers": [container], "volumes": [volume]}},
            **more,
        }
        meta = {"name": name, "namespace": self.ground.namespace}
        job = {"apiVersion": "optimus.dev/v1alpha1", "kind": "UnifiedJob", "metadata": meta, "spec": spec}
        self.ground.apply(json.dumps(job))

    def status(self, name: str) -> Document:
        path = f"/apis/optimus.dev/v1alpha1/namespaces/{self.ground.namespace}/unifiedjobs/{name}"
        found: Document = json.loads(self.ground.plane.get(path)).get("status", {})
        return found

    def reaches(self, name: str, phase: str) -> Document:
        until(lambda: self.status(name).get("phase") == phase, f"{name} is {phase}: {self.ground.told()}")
        return self.status(name)

    def change(self, name: str, **spec: Any) -> None:
        words = ("patch", "unifiedjob", name, "-n", self.ground.namespace, "--type=merge", "-p")
        self.ground.kubectl(*words, json.dumps({"spec": spec}))

    def clear(self) -> None:
        self.ground.kubectl("delete", "unifiedjobs", "--all", "-n", self.ground.namespace, "--wait=false")
        until(lambda: not self.ground.pods(), "nothing of them is left")


@pytest.fixture
def jobs(ground: Ground) -> Any:
    made = Jobs(ground)
    yield made
    made.clear()


def test_who_lends_saves_leaves_and_goes_on_where_it_was(jobs: Jobs) -> None:
    ground = jobs.ground
    queues = {team: f"{ground.namespace}-{team}" for team in ("vision", "speech")}
    for queue in queues.values():
        assert ground.make_queue(queue, {"gpu": {"guarantee": 4}, "namespaces": [ground.namespace]})
    jobs.submit(
        "borrower",
        8,
        ["python", "-c", TRAINING],
        image=PYTHON,
        queue=queues["speech"],
        checkpoint={"graceSeconds": 30, "path": "/shared/checkpoints"},
    )
    jobs.reaches("borrower", "Running")
    until(lambda: len(_story(ground, "did")) == 8, f"all have begun: {ground.told()}")
    jobs.submit("owner", 4, ["sleep", "1"], queue=queues["vision"])
    jobs.reaches("owner", "Succeeded")
    (ground.folder / "hurry").touch()
    status = jobs.reaches("borrower", "Succeeded")

    assert (status["attempt"], status["preemptions"], status["failures"]) == (2, 1, 0)
    assert [one["target"] for one in status["targets"]] == [8, 0, 8]
    assert status["lastCheckpoint"]["step"] > 0, "it said so in its last words"
    did, began, left = (_story(ground, word) for word in ("did", "begins", "left"))
    for rank in map(str, range(8)):
        assert did[rank] == list(range(len(did[rank]))), f"rank {rank} did no step twice and left none out"
        assert began[rank][0] == 0 and began[rank][1:] == left[rank], "it began where it had left"


def test_another_signal_is_sent_by_a_hook(jobs: Jobs) -> None:
    jobs.submit("shell", 1, ["sh", "-c", HEARS_USR1], checkpoint={"signal": "SIGUSR1", "graceSeconds": 20})
    jobs.reaches("shell", "Running")
    jobs.change("shell", suspend=True)
    status = jobs.reaches("shell", "Suspended")
    assert (jobs.ground.folder / "saved").read_text() == "saved\n"
    assert (status["preemptions"], status["failures"]) == (0, 0)
    jobs.change("shell", suspend=False)
    assert jobs.reaches("shell", "Running")["attempt"] == 2


def test_a_member_that_fails_takes_its_gang_along(jobs: Jobs) -> None:
    jobs.submit("gang", 3, ["sh", "-c", FAILS_ONCE])
    status = jobs.reaches("gang", "Succeeded")
    assert (status["attempt"], status["failures"], status["preemptions"]) == (2, 1, 0)
    assert "worker-1 exited with code 7" in status["attempts"][0]["message"]


def test_out_of_memory_is_told_and_not_held_against_it(jobs: Jobs) -> None:
    jobs.submit(
        "hungry",
        1,
        ["python", "-c", HUNGRY],
        image=PYTHON,
        replicaSpec={"minReplicas": 1, "memory": "128Mi", "gpu": {"count": 1}},
        restart={"backoffLimit": 0, "backoffSeconds": 1, "maxBackoffSeconds": 1},
    )
    status = jobs.reaches("hungry", "Succeeded")
    assert (status["attempt"], status["failures"]) == (2, 0)
    assert "memory" in status["attempts"][0]["message"]


def _story(ground: Ground, word: str) -> dict[str, list[int]]:
    """By rank: the steps of which this word was said."""
    story = ground.folder / "story"
    found: dict[str, list[int]] = {}
    for line in story.read_text().splitlines() if story.exists() else ():
        rank, said, step = line.split()
        if said == word:
            found.setdefault(rank, []).append(int(step))
    return found
