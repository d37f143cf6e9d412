"""A sample of what `make soak` does two hundred times: the leader is killed in the middle of starting a gang."""

from __future__ import annotations

from tests.kube.faults.front import Front
from tests.kube.faults.gangs import CLAIMS, JOB, JOB_SET, LABELLED_PODS
from tests.kube.faults.killing import Drawn, Killing, summary
from tests.kube.faults.worlds import INSTALLED_LEASE_S, World

DRAWS = (Drawn(LABELLED_PODS), Drawn(JOB_SET, suspended=True), Drawn(CLAIMS))


def test_whoever_is_killed_in_the_middle_of_a_gang_is_followed(
    jobset_controller: None, world: World, front: Front
) -> None:
    killing = Killing(world, front, 1, DRAWS)
    _is_well(killing, len(DRAWS))


def test_so_is_whoever_has_the_lease_that_people_have(world: World, front: Front) -> None:
    world.lease_s = INSTALLED_LEASE_S
    _is_well(Killing(world, front, 2, (Drawn(JOB, suspended=True),)), 1)


def _is_well(killing: Killing, times: int) -> None:
    told = summary([killing.kill_once() for _ in range(times)])
    assert told["wrong"] == {}
    assert told["looks_with_a_gpu_given_twice"] == 0
    assert told["killed_in_the_middle"] == times, told
