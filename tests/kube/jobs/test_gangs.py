"""A job follows its number: every arrow of its phases, what is written, and which pods come and go."""

from __future__ import annotations

from tests.kube.jobs.worlds import World, job_spec


def running(least: int = 2, most: int = 0, *, count: int = 0, saves: bool = True, limit: int = 3) -> World:
    world = World(job_spec(least, most, saves=saves, limit=limit))
    world.target(count or least, "Admitted: to pool a")
    world.run()
    return world


def test_it_waits_without_pods_until_it_has_a_number() -> None:
    world = World(job_spec(2))
    world.settle()
    assert (world.phase, world.pods) == ("Pending", {})
    assert world.job["metadata"]["finalizers"] == ["optimus.dev/job"]
    world.target(2)
    assert world.phase == "Starting"
    assert world.live == ["train-worker-0", "train-worker-1"]
    world.run()
    assert (world.phase, world.status["running"], world.status["ready"]) == ("Running", "2/2", 2)
    assert world.status["placement"] == [
        {"replica": "worker-0", "node": "n1"},
        {"replica": "worker-1", "node": "n1"},
    ]


def test_nothing_is_written_where_nothing_changed() -> None:
    world = running()
    assert world.settle() == 0
    world.passes(60)
    assert world.settle() == 0


def test_it_grows_and_shrinks_in_place() -> None:
    world = running(1, 4, count=2)
    world.target(4)
    assert world.phase == "Rescaling"
    world.run()
    assert world.phase == "Running"
    world.target(1, "Shrunk: gave 3 replicas to other")
    assert world.leaving == ["train-worker-1", "train-worker-2", "train-worker-3"]
    world.all_leave()
    assert (world.phase, world.live, world.life.attempt) == ("Running", ["train-worker-0"], 1)
    assert [one["target"] for one in world.status["targets"]] == [2, 4, 1]
    assert world.status["targets"][-1]["reason"] == "Shrunk: gave 3 replicas to other"


def test_whom_the_scheduler_asks_to_leave_is_not_replaced() -> None:
    """It evicts the one that it has chosen and lowers the number, in this order."""
    world = running(1, 4, count=4)
    world.evict("train-worker-1")
    world.target(3)
    world.leaves("train-worker-1")
    assert world.live == ["train-worker-0", "train-worker-2", "train-worker-3"]
    assert (world.phase, world.life.preemptions) == ("Running", 0)
    world.target(4)
    assert world.live[1] == "train-worker-1", "the lowest number that is free"


def test_preempted_it_saves_leaves_and_comes_back() -> None:
    world = running()
    world.target(0, "Reclaimed: taken back for other/train")
    assert world.phase == "Checkpointing"
    assert world.status["message"] == "taken back for other/train"
    world.all_leave()
    assert (world.phase, world.pods, world.status["preemptions"]) == ("Preempted", {}, 1)
    world.target(2)
    world.run()
    assert (world.phase, world.life.attempt) == ("Running", 2)
    assert world.env("train-worker-0")["OPTIMUS_REASON"] == "resumed after preemption"
    assert [one["reason"] for one in world.status["attempts"][:1]] == ["Preempted"]


def test_without_a_checkpoint_it_is_stopped() -> None:
    world = running(saves=False)
    world.target(0, "Preempted: gave way")
    assert world.phase == "Stopping"


def test_a_number_that_comes_back_too_soon_waits_for_those_who_leave() -> None:
    world = running()
    world.target(0, "Reclaimed: for a moment")
    world.target(2)
    assert world.phase == "Checkpointing"
    assert world.live == []
    world.all_leave()
    assert world.live == ["train-worker-0", "train-worker-1"]
    assert world.life.attempt == 2


def test_suspended_by_its_owner_and_resumed() -> None:
    world = running()
    world.suspend()
    assert world.phase == "Checkpointing"
    world.all_leave()
    assert (world.phase, world.status["reason"], world.status["preemptions"]) == ("Suspended", "Suspended", 0)
    condition = world.condition("Suspended")
    assert condition is not None and condition["status"] == "True"
    world.target(0, "Suspended: paused by its owner")
    world.suspend(yes=False)
    assert world.phase == "Pending"
    world.target(2)
    world.run()
    assert world.env("train-worker-1")["OPTIMUS_REASON"] == "resumed by its owner"


def test_suspended_before_it_began() -> None:
    world = World(job_spec(2, suspend=True))
    world.settle()
    assert world.phase == "Suspended"
    world.target(2)
    assert world.pods == {}


def test_one_failure_and_all_start_again_after_a_while() -> None:
    world = running()
    world.exits("train-worker-1", 7)
    assert (world.phase, world.leaving) == ("Stopping", ["train-worker-0"])
    world.all_leave()
    assert (world.phase, world.status["reason"]) == ("Pending", "BackingOff")
    assert "replica worker-1 exited with code 7; next try at" in world.status["message"]
    assert list(world.pods) == ["train-worker-1"], "its log can be read meanwhile"
    assert world.again_ms == world.now_ms + 10_000
    world.passes(10)
    assert world.live == ["train-worker-0", "train-worker-1"]
    assert world.env("train-worker-0")["OPTIMUS_REASON"] == "retry after a failure"
    backing_off = world.condition("BackingOff")
    assert backing_off is not None and backing_off["status"] == "False"


def test_after_too_many_failures_it_is_over() -> None:
    world = running(1, limit=1)
    for _ in range(2):
        world.exits("train-worker-0", 1)
        world.passes(10)
        world.run()
    assert world.phase == "Failed"
    assert world.status["message"] == "replica worker-0 exited with code 1 (2 failures)"
    failed = world.condition("Failed")
    assert failed is not None and (failed["status"], failed["reason"]) == ("True", "Error")
    assert world.unreleased() == []


def test_all_end_well_one_after_the_other() -> None:
    world = running()
    world.exits("train-worker-0")
    assert world.phase == "Running"
    assert world.live == ["train-worker-1"], "nobody takes the place of one that is done"
    world.exits("train-worker-1")
    assert world.phase == "Succeeded"
    assert world.unreleased() == []
    assert sorted(world.pods) == ["train-worker-0", "train-worker-1"], "their logs can still be read"
    assert world.status["completionTime"]


def test_the_scheduler_ends_it_for_good() -> None:
    world = running()
    world.job["metadata"]["annotations"]["optimus.dev/held-because"] = "RanTooLong: ran longer than the 1h it may"
    world.target(0, "RanTooLong: ran longer than the 1h it may")
    assert world.phase == "Stopping"
    world.all_leave()
    assert world.phase == "Failed"
    failed = world.condition("Failed")
    assert failed is not None and failed["reason"] == "RanTooLong"


def test_after_its_time_it_is_forgotten() -> None:
    world = World(job_spec(1, ttlSecondsAfterFinished=60))
    world.target(1)
    world.run()
    world.exits("train-worker-0")
    assert world.again_ms == world.now_ms + 60_000
    world.passes(59)
    assert world.job
    world.passes(1)
    assert world.job == {}
    assert world.pods == {}


def test_deleted_while_it_runs() -> None:
    world = running()
    world.delete_job()
    assert world.leaving == ["train-worker-0", "train-worker-1"]
    assert world.job, "as long as its pods are there"
    world.all_leave()
    assert (world.job, world.pods) == ({}, {})


def test_deleted_while_it_waits_for_places() -> None:
    world = World(job_spec(2))
    world.target(2)
    world.delete_job()
    assert (world.job, world.pods) == ({}, {})


def test_a_rescale_that_takes_too_long_is_said() -> None:
    world = running(1, 4, count=1)
    world.target(4)
    assert world.condition("RescaleOverdue") is None
    assert world.again_ms == world.now_ms + 600_000
    world.passes(600)
    overdue = world.condition("RescaleOverdue")
    assert overdue is not None and overdue["status"] == "True"
    assert overdue["message"] == "1 of 4 replicas run 10 minutes after they were asked for; it should go back to 1"
    world.target(1, "Shrunk: it did not start in time")
    overdue = world.condition("RescaleOverdue")
    assert overdue is not None and overdue["status"] == "False"
    assert world.phase == "Running"


def test_a_job_that_cannot_be_read_says_why_and_has_no_pods() -> None:
    world = World({"replicaSpec": {"minReplicas": 4, "maxReplicas": 2, "targetReplicas": 4}, "template": {}})
    world.settle()
    valid = world.condition("Valid")
    assert valid is not None and (valid["status"], valid["reason"]) == ("False", "Malformed")
    assert world.pods == {}


def test_what_others_write_into_the_status_stays() -> None:
    world = running()
    world.status["estimatedEnd"] = "2030-01-01T00:00:00Z"
    world.status["conditions"].append({"type": "Waiting", "status": "False"})
    world.target(0, "Reclaimed: x")
    world.all_leave()
    assert world.status["estimatedEnd"] == "2030-01-01T00:00:00Z"
    assert world.condition("Waiting") == {"type": "Waiting", "status": "False"}
