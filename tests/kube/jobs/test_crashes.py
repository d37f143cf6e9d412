"""The controller dies after any single write, again and again, while the world goes on: nothing is doubled, nothing is
lost, every end is counted once, and in the end the job is done and leaves nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optimus.drivers.kube.jobs.keeping import kept_in, numbers
from tests.kube.jobs.worlds import World, job_spec

STEPS = 60


class Chaos:
    """A world in which anything may happen next, and a controller that may die after any write."""

    def __init__(self, seed: int, spec: dict[str, Any], most: int) -> None:
        self.chance = Random(seed)
        self.world = World(spec)
        self.most = most
        self.counted_before: set[str] = set()
        self.errors: set[str] = set()
        """Uids of pods that failed by themselves, when nobody had asked them to leave."""

    def live_a_while(self) -> None:
        for _ in range(STEPS):
            self.look(dies=self.chance.random() < 0.6)
            self.something_happens()
            self.check()

    def look(self, *, dies: bool) -> None:
        if not self.world.job:
            return
        left = self.chance.randint(0, 4) if dies else 10_000
        for _ in self.world.steps():
            self.check()
            left -= 1
            if left <= 0:
                return

    def something_happens(self) -> None:
        world, chance = self.world, self.chance
        happens = chance.choice(("run", "run", "exit", "leave", "leave", "target", "time", "suspend", "evict", "node"))
        pods = sorted(world.pods)
        name = chance.choice(pods) if pods else ""
        if happens == "target":
            self.set_target(chance.choice((0, self.most, chance.randint(1, self.most))))
        elif happens == "suspend" and chance.random() < 0.4:
            world.job["spec"]["suspend"] = chance.random() < 0.4
            world._changed(spec=True)
        elif happens == "time":
            world.now_ms += chance.choice((1_000, 15_000, 400_000))
        elif name:
            self._happens_to(happens, name)

    def _happens_to(self, happens: str, name: str) -> None:
        world, chance = self.world, self.chance
        pod = world.pods[name]
        told = "deletionTimestamp" in pod["metadata"]
        phase = pod["status"].get("phase")
        if happens == "run" and phase == "Pending" and not told:
            world.start(name, chance.choice(("n1", "n2")))
        elif happens == "exit" and phase == "Running" and not told:
            code = chance.choice((0, 0, 1))
            if code:
                self.errors.add(pod["metadata"]["uid"])
            world.exits(name, code, settle=False)
        elif happens == "leave" and world._is_leaving(pod):
            world.leaves(name, chance.choice((143, 0, 137)), settle=False)
        elif happens == "evict" and chance.random() < 0.3:
            world.evict(name, settle=False)
        elif happens == "node" and phase == "Running" and not told and chance.random() < 0.5:
            world.fails(name, "Evicted", settle=False)

    def set_target(self, count: int) -> None:
        self.world.job["spec"]["replicaSpec"]["targetReplicas"] = count
        self.world._changed(spec=True)

    def check(self) -> None:
        if not self.world.job:
            return
        kept, problem = kept_in(self.world.thing(), "team/train")
        assert problem == ""
        assert len(set(kept.counted)) == len(kept.counted), "an end is counted twice"
        assert set(kept.counted) <= self.world.ended.keys() | self.unseen_ends(), (
            "somebody is counted who has not ended"
        )
        assert kept.life.failures <= len(self.errors)
        for name, pod in self.world.pods.items():
            over = pod["status"].get("phase") in ("Succeeded", "Failed")
            released = not pod["metadata"].get("finalizers")
            counted = pod["metadata"]["uid"] in kept.counted
            assert counted or not released, f"{name} was released before its end was counted"
            assert over or released or not counted or "deletionTimestamp" in pod["metadata"]

    def unseen_ends(self) -> set[str]:
        """Pods that were deleted before they had a node have ended without a word."""
        return {f"pod-{number}" for number in range(1, self.world._uids + 1)} - {
            pod["metadata"]["uid"] for pod in self.world.pods.values() if "deletionTimestamp" not in pod["metadata"]
        }

    def comes_to_rest(self) -> None:
        """Nothing bad happens any more, and the controller lives."""
        world = self.world
        world.job["spec"]["suspend"] = False
        self.set_target(self.most)
        for _ in range(200):
            world.now_ms += 400_000
            world.settle()
            if world.phase in ("Succeeded", "Failed") and not world.live:
                return
            world.all_leave()
            world.run()
            for name in world.live:
                world.exits(name, 0)
        pytest.fail(f"it never ends: {world.phase} {world.status}")


@pytest.mark.parametrize("saves", [True, False])
@settings(max_examples=60, deadline=None)
@example(seed=1)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_gang_survives_every_death_of_its_controller(seed: int, saves: bool) -> None:
    chaos = Chaos(seed, job_spec(2, 4, saves=saves, limit=1000), 4)
    chaos.live_a_while()
    chaos.comes_to_rest()
    world = chaos.world
    assert world.phase == "Succeeded"
    assert world.unreleased() == []
    assert world.live == []
    attempts = [int(one.rpartition("@")[2]) for one in world.made]
    assert attempts == sorted(attempts), "an old attempt is started again"
    assert max(attempts) <= world.life.attempt
    world.delete_job()
    assert world.job == {}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_an_array_does_every_part_once(seed: int) -> None:
    chaos = Chaos(seed, job_spec(1, arraySize=7, limit=1000), 5)
    chaos.live_a_while()
    chaos.comes_to_rest()
    assert chaos.world.phase == "Succeeded"
    parts = kept_in(chaos.world.thing(), "team/train")[0].parts
    assert numbers(parts.done) == set(range(7))
    assert parts.at == {}
    assert chaos.world.unreleased() == []


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_each_failure_is_counted_exactly_once(seed: int) -> None:
    """One replica, and nobody who takes its room: as many failures as it had."""
    chaos = Chaos(seed, job_spec(1, limit=1000), 1)
    chaos.set_target(1)
    world, failed = chaos.world, 0
    for _ in range(40):
        chaos.look(dies=chaos.chance.random() < 0.7)
        world.now_ms += 400_000
        for name, pod in list(world.pods.items()):
            if pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]:
                world.start(name)
            elif pod["status"]["phase"] == "Running" and chaos.chance.random() < 0.5:
                chaos.errors.add(pod["metadata"]["uid"])
                world.exits(name, 1, settle=False)
                failed += 1
    world.settle()
    assert world.life.failures == failed
    assert world.life.attempt in (failed, failed + 1)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_job_that_is_deleted_leaves_nothing(seed: int) -> None:
    chaos = Chaos(seed, job_spec(1, 4, saves=True, limit=1000), 4)
    chaos.live_a_while()
    world = chaos.world
    world.settle()  # it is ours by now
    world.job["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    for _ in range(50):
        chaos.look(dies=True)
        for name in [name for name, pod in world.pods.items() if world._is_leaving(pod)]:
            world.leaves(name, settle=False)
    for _ in range(10):
        world.settle()
        for name in [name for name, pod in world.pods.items() if world._is_leaving(pod)]:
            world.leaves(name, settle=False)
    assert world.job == {}
    assert world.unreleased() == []
    assert world.live == []
