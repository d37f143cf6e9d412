"""A sample of what `make soak` does two hundred times: the leader is killed in the middle of binding a gang."""

from __future__ import annotations

from tests.kube.faults.front import Front
from tests.kube.faults.killing import Killing, summary
from tests.kube.faults.worlds import World

KILLS = 3


def test_whoever_is_killed_in_the_middle_of_a_gang_is_followed(world: World, front: Front) -> None:
    killing = Killing(world, front, seed=1)
    told = summary([killing.kill_once() for _ in range(KILLS)])
    assert told["wrong"] == {}
    assert told["looks_with_a_gpu_given_twice"] == 0
    assert told["killed_in_the_middle"] > 0, told
