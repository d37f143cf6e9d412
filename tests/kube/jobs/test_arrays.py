"""Arrays: each part is done once, by whichever ordinal is free; one that fails is tried again by itself."""

from __future__ import annotations

from tests.kube.jobs.worlds import World, job_spec


def array(parts: int, *, limit: int = 1, saves: bool = False) -> World:
    return World(job_spec(1, arraySize=parts, limit=limit, saves=saves))


def part(world: World, name: str) -> str:
    return world.env(name)["OPTIMUS_PART"]


def test_as_many_at_once_as_the_number_says() -> None:
    world = array(5)
    world.target(2)
    world.run()
    assert world.live == ["train-worker-0", "train-worker-1"]
    assert [part(world, name) for name in world.live] == ["0", "1"]
    assert world.phase == "Running"
    world.exits("train-worker-0")
    assert part(world, "train-worker-0") == "2", "the same ordinal takes the next part"
    assert world.status["message"] == "1 of 5 parts are done"


def test_all_parts_are_done() -> None:
    world = array(5)
    world.target(3)
    seen = []
    while world.phase != "Succeeded":
        world.run()
        seen.append(part(world, world.live[0]))
        world.exits(world.live[0])
    assert sorted(seen) == ["0", "1", "2", "3", "4"]
    assert world.unreleased() == []


def test_no_more_pods_than_parts() -> None:
    world = array(2)
    world.target(10)
    assert world.live == ["train-worker-0", "train-worker-1"]


def test_one_that_fails_is_tried_again_and_nobody_waits_for_it() -> None:
    world = array(3)
    world.target(1)
    world.run()
    world.exits("train-worker-0", 1)
    assert part(world, "train-worker-0") == "1", "the next one meanwhile"
    world.passes(10)
    world.run()
    world.exits("train-worker-0")
    assert part(world, "train-worker-0") == "0"
    assert world.env("train-worker-0")["OPTIMUS_ATTEMPT"] == "2"


def test_one_that_fails_too_often_fails_the_array_at_its_end() -> None:
    world = array(3, limit=0)
    world.target(3)
    world.run()
    world.exits("train-worker-1", 1)
    assert world.phase == "Running"
    world.exits("train-worker-0")
    world.exits("train-worker-2")
    assert (world.phase, world.status["message"]) == ("Failed", "1 of 3 parts failed: 1")


def test_a_smaller_number_stops_the_last_ones_and_their_parts_wait() -> None:
    world = array(4, saves=True)
    world.target(3)
    world.run()
    world.target(1)
    assert world.leaving == ["train-worker-1", "train-worker-2"]
    world.all_leave()
    assert world.live == ["train-worker-0"]
    world.exits("train-worker-0")
    assert part(world, "train-worker-0") == "1"


def test_preempted_as_a_whole_and_back() -> None:
    world = array(4, saves=True)
    world.target(2)
    world.run()
    world.target(0, "Reclaimed: for other")
    assert world.phase == "Checkpointing"
    world.all_leave()
    assert (world.phase, world.status["preemptions"], world.pods) == ("Preempted", 1, {})
    world.target(2)
    assert [part(world, name) for name in world.live] == ["0", "1"]
    assert world.env("train-worker-0")["OPTIMUS_REASON"] == "resumed after preemption"


def test_a_lost_one_begins_anew_and_is_not_counted() -> None:
    world = array(2, limit=0)
    world.target(2)
    world.run()
    world.fails("train-worker-0", "Evicted")
    assert part(world, "train-worker-0") == "0"
    assert world.life.failures == 0


def test_parts_have_their_own_folder() -> None:
    world = World(job_spec(1, arraySize=2, checkpoint={"graceSeconds": 5, "path": "/data"}))
    world.target(2)
    assert world.env("train-worker-1")["OPTIMUS_CHECKPOINT_DIR"] == "/data/1"
