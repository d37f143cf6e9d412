"""UnifiedJobs on a real API server: the number goes up and down, pods come and go, controllers die; what the scheduler
would do is done by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from random import Random

import pytest

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import until
from tests.kube.jobs.stand import JobStand


@pytest.fixture
def stand(plane: ControlPlane, namespace_name: str) -> Iterator[JobStand]:
    made = JobStand(plane, namespace_name[:40].strip("-"))
    yield made
    made.stop()


def test_a_job_follows_the_number(stand: JobStand) -> None:
    stand.start()
    stand.submit("train", 2, 4, checkpoint={"graceSeconds": 5})
    until(lambda: stand.phase("train") == "Pending", "it waits without pods")
    assert stand.pods() == []
    stand.target("train", 2)
    stand.until_phase("train", "Running")
    assert stand.names("train") == ["train-worker-0", "train-worker-1"]
    stand.target("train", 4)
    stand.until_running("train", "4/4")
    stand.target("train", 3, "Shrunk: gave 1 replica above its minimum to other")
    until(lambda: stand.names("train") == [f"train-worker-{n}" for n in range(3)], "the last one leaves")
    until(lambda: stand.phase("train") == "Running", "it goes on")
    stand.target("train", 0, "Reclaimed: taken back for other")
    until(lambda: stand.phase("train") == "Preempted", "it has left")
    until(lambda: stand.pods() == [], "nothing of it is left")
    status = stand.status("train")
    assert (status["attempt"], status["preemptions"], status["failures"]) == (1, 1, 0)
    assert [one["target"] for one in status["targets"]] == [2, 4, 3, 0]
    stand.target("train", 2)
    stand.until_phase("train", "Running")
    assert stand.status("train")["attempt"] == 2
    until(lambda: ("Preempted", "taken back for other") in stand.events("train"), "an event says so")
    stand.kubectl("delete", "unifiedjob", "train", "--wait=false")
    until(lambda: stand.phase("train") == "gone" and stand.pods() == [], "nothing is left")


def test_it_succeeds_and_its_pods_can_still_be_read(stand: JobStand) -> None:
    stand.start()
    stand.submit("short", 2, notes={"optimus.dev/seconds": "1"}, ttlSecondsAfterFinished=4)
    stand.target("short", 2)
    stand.until_phase("short", "Succeeded")
    assert [pod["metadata"].get("finalizers") for pod in stand.pods()] == [None, None]
    assert stand.condition("short", "Complete")["status"] == "True"
    until(lambda: stand.phase("short") == "gone", "after its time it is forgotten")
    until(lambda: stand.pods() == [], "and its pods with it")


def test_a_failure_of_one_starts_all_of_them_again(stand: JobStand) -> None:
    stand.start()
    notes = {"optimus.dev/seconds": "1", "optimus.dev/exit-code": "3"}
    stand.submit("broken", 2, notes=notes, restart={"backoffLimit": 1, "backoffSeconds": 1})
    stand.target("broken", 2)
    stand.until_phase("broken", "Failed")
    status = stand.status("broken")
    assert status["failures"] == 2
    assert status["attempt"] == 2
    assert "exited with code 3" in status["message"]
    assert [one["reason"] for one in status["attempts"]] == ["Error", "Failed"]


def test_what_the_server_forbids_is_said_in_its_words(stand: JobStand) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": stand.namespace},
        "spec": {"hard": {"pods": "1"}},
    }
    stand.apply(quota)
    until(lambda: "used" in stand.kubectl("get", "quota", "few", "-o", "jsonpath={.status}"), "the quota counts")
    stand.start()
    stand.submit("large", 3)
    stand.target("large", 3)
    until(lambda: "exceeded quota" in stand.condition("large", "Blocked").get("message", ""), "it says why")
    quota["spec"] = {"hard": {"pods": "10"}}
    stand.apply(quota)
    stand.until_phase("large", "Running")
    until(lambda: stand.condition("large", "Blocked")["status"] == "False", "all is well")


def test_a_template_that_no_server_takes(stand: JobStand) -> None:
    stand.start()
    stand.submit("odd", 1, notes={"no/such/name": "x"})
    stand.target("odd", 1)
    until(lambda: stand.condition("odd", "Blocked").get("status") == "True", "it says so")
    assert "annotations" in stand.condition("odd", "Blocked")["message"]


def test_an_array_does_all_its_parts(stand: JobStand) -> None:
    stand.start()
    stand.submit("many", 1, notes={"optimus.dev/seconds": "0"}, arraySize=6)
    stand.target("many", 3)
    stand.until_phase("many", "Succeeded")
    assert stand.status("many")["life"]["parts"] == {"done": "0-5"}


def test_pods_whose_job_was_taken_away_by_force_go_too(stand: JobStand) -> None:
    stand.start()
    stand.submit("lost", 2)
    stand.target("lost", 2)
    stand.until_phase("lost", "Running")
    stand.kill()
    stand.kubectl("patch", "unifiedjob", "lost", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    stand.kubectl("delete", "unifiedjob", "lost", "--wait=false")
    stand.start()
    until(lambda: stand.pods() == [], "nobody is left behind")


def test_pods_that_are_to_be_kept_are_kept(stand: JobStand) -> None:
    """And nobody has to take their finalizers away by hand."""
    stand.start()
    stand.submit("kept", 2)
    stand.target("kept", 2)
    stand.until_phase("kept", "Running")
    stand.kubectl("delete", "unifiedjob", "kept", "--cascade=orphan", "--wait=false")
    until(lambda: stand.phase("kept") == "gone", "the job is gone")
    until(lambda: not any(pod["metadata"].get("finalizers") for pod in stand.pods()), "nothing holds them")
    assert len(stand.names("kept")) == 2


@pytest.mark.slow
def test_killed_at_any_moment(stand: JobStand) -> None:
    """Starts, rescales, preemptions and ends, while the controller is killed again and again: each job ends as it
    would have, every attempt is counted once, and nothing is left."""
    chance = Random(7)
    jobs = [f"job-{number}" for number in range(3)]
    for name in jobs:
        stand.submit(name, 1, 4, checkpoint={"graceSeconds": 5})
    wanted = dict.fromkeys(jobs, 0)
    stopped = dict.fromkeys(jobs, 0)
    for _ in range(12):
        stand.start()
        for name in jobs:
            number = chance.choice((0, 1, 2, 3, 4))
            stopped[name] += bool(wanted[name]) and not number
            wanted[name] = number
            stand.target(name, number, "Reclaimed: for a while" if not number else "Admitted: again")
        time.sleep(chance.uniform(0.3, 1.6))
        stand.bind()
        stand.kill()
    stand.start()
    for name in jobs:
        stand.target(name, 2)
    for name in jobs:
        stand.until_phase(name, "Running")
        stand.until_running(name, "2/2")
        status = stand.status(name)
        assert status["failures"] == 0
        assert status["preemptions"] <= stopped[name]
        assert status["attempt"] <= status["preemptions"] + 1
        assert len(stand.names(name)) == 2
    names = [pod["metadata"]["name"] for pod in stand.pods()]
    assert len(names) == len(set(names)) == 6
    for name in jobs:
        stand.kubectl("delete", "unifiedjob", name, "--wait=false")
    until(lambda: stand.jobs() == [] and stand.pods() == [], "nothing is left")
    assert "Traceback" not in stand.log.read_text(), json.dumps(stand.log.read_text()[-2000:])
