"""Two controllers at once. One leads; what a former leader sent, and lands in the term of the next, does no harm."""

from __future__ import annotations

import signal
import time

from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.front import BIND, Front, Trouble
from tests.kube.faults.worlds import World


def test_a_frozen_leader_is_followed_and_does_no_harm_when_it_wakes_up(world: World, front: Front) -> None:
    world.nodes(2, gpus=4)
    front.trouble[BIND] = Trouble(delay_s=(0.0, 1.0))
    frozen = world.lead(front.option)
    until(lambda: world.leader() is not None, "one leads")
    first = world.leader()
    world.lead()
    for name in ("first", "second", "third"):
        world.job(name, 4)
    until(lambda: front.passed[BIND] >= 2, "it is in the middle of binding")
    frozen.send_signal(signal.SIGSTOP)
    until(lambda: world.leader() not in (None, first), "the other one leads")
    until(lambda: len(world.bound()) == 8, "and binds the rest")
    frozen.send_signal(signal.SIGCONT)
    time.sleep(1.0)
    seen = settle(world)
    assert seen.overbooked == 0
    assert len(world.bound()) == 8
    assert frozen.poll() is None, "it is a rival again"


def test_a_late_bind_to_a_gpu_that_is_given_to_others_is_undone(world: World, front: Front) -> None:
    world.nodes(1, gpus=4)
    _sent_and_killed(world, front, "late", 4)
    world.job("urgent", 4, priority=1000)
    world.lead()
    until(lambda: len(world.bound("urgent")) == 4, "the successor gives the room to another gang")
    there = {pod["metadata"]["uid"] for pod in world.bound("urgent")}
    front.let_go()
    until(lambda: front.passed[BIND] == 4, "the binds land")
    until(lambda: world.told("Overbooked"), "and are seen")
    settle(world)
    assert {pod["metadata"]["uid"] for pod in world.bound("urgent")} == there, "who was there first stays"
    assert world.bound("late") == []
    world.forget("urgent")
    until(lambda: len(world.bound("late")) == 4, "it starts when there is room")
    settle(world)


def test_a_late_bind_of_a_part_of_a_gang_is_undone(world: World, front: Front) -> None:
    """There is room for the one, but not for the others."""
    world.nodes(1, gpus=4)
    _sent_and_killed(world, front, "late", 4)
    world.job("urgent", 3, priority=1000)
    world.lead()
    until(lambda: len(world.bound("urgent")) == 3, "the successor gives the room to another gang")
    front.let_go(1)
    until(lambda: world.told("BoundLate"), "it is seen, and told")
    seen = settle(world)
    assert seen.overbooked == 0
    assert world.bound("late") == []
    assert len(world.bound("urgent")) == 3


def test_a_late_bind_that_fits_is_accepted(world: World, front: Front) -> None:
    """The successor was about to bind the same pod; the one who came late was faster."""
    world.nodes(1, gpus=4)
    _sent_and_killed(world, front, "late", 4, landed=3)
    with Front(world.plane) as second:
        second.hold_binds()
        world.lead(second.option)
        until(lambda: second.held == 1, "the successor binds the fourth")
        front.let_go()
        until(lambda: len(world.bound("late")) == 4, "the late one lands first")
        there = {pod["metadata"]["uid"] for pod in world.bound("late")}
        second.let_go()
        until(lambda: "lands in ours" in world.log(), "it is seen")
        seen = settle(world, quiet_s=7.0)
    assert seen.overbooked == 0
    assert {pod["metadata"]["uid"] for pod in world.bound("late")} == there
    assert not world.told("BoundLate") and not world.told("Overbooked")


def _sent_and_killed(world: World, front: Front, name: str, pods: int, landed: int = 0) -> None:
    """A leader dies while its binds are on their way, but for those that have landed."""
    front.hold_binds(after=landed)
    leader = world.lead(front.option)
    world.job(name, pods)
    until(lambda: front.held == pods - landed, "its binds are on their way")
    until(lambda: len(world.bound(name)) == landed, "some have landed")
    leader.kill()
    leader.wait()
