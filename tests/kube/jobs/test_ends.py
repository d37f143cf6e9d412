"""Whose doing an end was: only what is the job's own counts against it; everything is said, and nothing is believed
that makes no sense."""

from __future__ import annotations

import json

import msgspec
import pytest

from optimus.drivers.kube.jobs.replicas import ended_of
from optimus.drivers.kube.objects import Pod
from optimus.lives import Blame
from tests.kube.jobs.worlds import BEGIN_MS, World, job_spec, stamp


def running(least: int = 1, *, limit: int = 0, saves: bool = False) -> World:
    world = World(job_spec(least, limit=limit, saves=saves))
    world.target(least)
    world.run()
    return world


@pytest.mark.parametrize(
    ("reason", "condition", "blame"),
    [
        ("Evicted", "", "Evicted"),
        ("", "EvictionByEvictionAPI", "Evicted"),
        ("", "PreemptionByScheduler", "Evicted"),
        ("Terminated", "TerminationByKubelet", "Evicted"),
        ("", "DeletionByTaintManager", "NodeLost"),
        ("", "DeletionByPodGC", "NodeLost"),
        ("NodeLost", "", "NodeLost"),
        ("OutOfcpu", "", "Rejected"),
        ("OutOfnvidia.com/gpu", "", "Rejected"),
        ("UnexpectedAdmissionError", "", "Rejected"),
        ("NodeAffinity", "", "Rejected"),
    ],
)
def test_what_others_did_is_not_counted(reason: str, condition: str, blame: str) -> None:
    world = running()
    world.fails("train-worker-0", reason, condition=condition)
    assert world.life.failures == 0
    assert world.status["attempts"][0]["reason"] == blame
    world.passes(60)
    world.run()
    assert (world.phase, world.life.attempt) == ("Running", 2)


def test_turned_away_again_and_again_it_waits_longer_each_time() -> None:
    world, waits = running(), []
    for _ in range(4):
        world.fails("train-worker-0", "OutOfcpu")
        waits.append((world.life.retry_at_ms - world.now_ms) // 1000)
        world.passes(60)
        world.run()
    assert waits == [1, 2, 4, 8]
    assert world.phase == "Running"


def test_out_of_memory_is_tried_again_but_not_for_ever() -> None:
    world = running()
    for number in range(7):
        assert world.phase == "Running", number
        world.exits("train-worker-0", 137, reason="OOMKilled")
        assert world.life.failures == 0
        world.passes(300)
        world.run()
    assert world.phase == "Failed"
    assert "ran out of memory" in world.status["message"]
    failed = world.condition("Failed")
    assert failed is not None and failed["reason"] == "OutOfMemory"


def test_an_error_of_its_own_is_counted() -> None:
    world = running()
    world.exits("train-worker-0", 2)
    assert (world.phase, world.life.failures) == ("Failed", 1)


def test_one_of_a_gang_that_is_drained_takes_the_gang_with_it() -> None:
    """All save, so that all go on from the same step."""
    world = running(3, saves=True)
    world.evict("train-worker-1")
    assert world.leaving == ["train-worker-0", "train-worker-1", "train-worker-2"]
    world.all_leave()
    assert (world.life.failures, world.life.preemptions) == (0, 0)
    world.run()
    assert (world.phase, world.life.attempt) == ("Running", 2)


def test_one_that_is_not_needed_is_replaced_by_itself() -> None:
    world = World(job_spec(1, 3, saves=True))
    world.target(3)
    world.run()
    world.evict("train-worker-2")
    assert world.leaving == ["train-worker-2"]
    world.leaves("train-worker-2")
    assert world.live == ["train-worker-0", "train-worker-1", "train-worker-2"]
    assert world.life.attempt == 1


def test_a_node_that_does_not_answer_is_not_waited_for() -> None:
    world = running(2, saves=True)
    world.dead_nodes.add("n1")
    world.target(0, "Reclaimed: x")
    assert world.phase == "Checkpointing"
    world.passes(34)
    assert world.phase == "Checkpointing"
    world.passes(2)
    assert (world.phase, world.pods) == ("Preempted", {}), "they are taken away without their kubelet"


def test_a_slow_node_is_waited_for() -> None:
    world = running(2, saves=True)
    world.target(0, "Reclaimed: x")
    world.passes(3600)
    assert world.phase == "Checkpointing"


def test_a_pod_that_is_taken_away_by_force_starts_the_gang_again() -> None:
    world = running(2, saves=True)
    world.vanish("train-worker-0")
    assert world.leaving == ["train-worker-1"]
    world.all_leave()
    assert world.life.failures == 0
    world.run()
    assert (world.phase, world.life.attempt) == ("Running", 2)


def test_killed_after_its_grace_is_said() -> None:
    world = running(1, saves=True)
    world.target(0, "Reclaimed: x")
    world.leaves("train-worker-0", 137)
    assert any(one.reason == "GraceOver" and "30 seconds" in one.text for one in world.said)


def test_a_pod_that_never_had_a_node_costs_nothing() -> None:
    world = World(job_spec(2))
    world.target(2)
    world.target(0, "HoldExpired: its place was not taken")
    assert (world.pods, world.life.failures) == ({}, 0)
    assert world.phase == "Preempted"


def test_an_image_that_cannot_be_had_is_said() -> None:
    world = World(job_spec(1))
    world.target(1)
    pod = world.pods["train-worker-0"]
    pod["spec"]["nodeName"] = "n1"
    state = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    pod["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    world.settle()
    assert world.status["reason"] == "ContainersWaiting"
    assert world.status["message"] == "train-worker-0: ErrImagePull: no such image"


# -- last words --------------------------------------------------------------------------------------------------------


def test_last_words_are_progress_and_checkpoint() -> None:
    world = running(1, saves=True)
    world.target(0, "Reclaimed: x")
    told = {
        "step": 120,
        "total": 1000,
        "fraction": 0.12,
        "steps_per_second": 2.5,
        "metrics": {"loss": 0.25, "name": "run"},
        "last_checkpoint_ms": BEGIN_MS,
        "checkpoint": {"step": 120, "at_ms": BEGIN_MS, "path": "/data/120"},
    }
    world.leaves("train-worker-0", 143, json.dumps(told) + "\n")
    assert world.status["lastCheckpoint"] == {"time": stamp(BEGIN_MS), "step": 120, "path": "/data/120"}
    assert world.status["progress"] == {
        "step": 120,
        "total": 1000,
        "fraction": "0.12",
        "stepsPerSecond": "2.5",
        "metrics": {"loss": "0.25", "name": "run"},
    }
    world.target(1)
    world.run()
    assert world.status["lastCheckpoint"]["step"] == 120, "it is known until there is a newer one"


@pytest.mark.parametrize(
    "message",
    ["Traceback: no", "{", "[1, 2]", "{" * 5000, '{"a":' * 900 + "1" + "}" * 900, "{} and more", "\x00{}"],
)
def test_nonsense_is_said_and_nothing_follows(message: str) -> None:
    world = running(limit=3)
    world.exits("train-worker-0", 1, message=message)
    assert "progress" not in world.status
    assert [one.reason for one in world.said if one.reason == "StatusIgnored"] == ["StatusIgnored"]
    assert world.life.failures == 1


@pytest.mark.parametrize(
    "told",
    [
        {"step": -1, "total": "many", "fraction": 7, "metrics": [1], "checkpoint": 3},
        {"step": 2**80, "fraction": True, "last_checkpoint_ms": 2**62, "metrics": {"a": {"b": 1}}},
        {"last_checkpoint_ms": BEGIN_MS + 86_400_000},
        {"metrics": {"a": 1e400}},
    ],
)
def test_what_cannot_be_is_left_out(told: dict[str, object]) -> None:
    world = running(limit=3)
    world.exits("train-worker-0", 0, message=json.dumps(told).replace("Infinity", "1e400"))
    assert world.phase == "Succeeded"
    assert "lastCheckpoint" not in world.status
    assert world.status.get("progress", {}) == {}


def test_a_failed_side_car_is_an_error_of_its_own() -> None:
    statuses = [
        {"name": "side", "state": {"terminated": {"exitCode": 4}}},
        {"name": "main", "state": {"terminated": {"exitCode": 0}}},
    ]
    pod = {
        "metadata": {"name": "train-worker-0"},
        "spec": {"containers": [{"name": "main"}, {"name": "side"}]},
        "status": {"phase": "Failed", "containerStatuses": statuses},
    }
    ended = ended_of(msgspec.convert(pod, Pod), BEGIN_MS, lambda _: True)
    assert ended is not None
    assert (ended.blame, ended.code) == (Blame.OWN, 4)
