"""What is between the controller and its server breaks: the server, its store, watches, binds. Nothing is lost."""

from __future__ import annotations

import time

from hack.controlplane import ControlPlane
from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.front import BIND, Front, Trouble
from tests.kube.faults.worlds import World


def test_slow_and_failing_binds(world: World, front: Front) -> None:
    """A third is refused by an error, a third of the rest is done and answered with one, and all are slow."""
    world.nodes(3, gpus=4)
    front.trouble[BIND] = Trouble(delay_s=(0.0, 0.4), fails=0.3, after=0.3)
    world.lead(front.option)
    for name in ("first", "second", "third"):
        world.job(name, 4)
    until(lambda: front.failed[BIND] >= 4, "binds fail")
    seen = settle(world)
    assert len(world.bound()) == 12
    assert seen.overbooked == 0


def test_the_server_is_killed_and_started_again(world: World, plane: ControlPlane) -> None:
    world.nodes(2, gpus=4)
    world.lead()
    world.job("before", 4)
    until(lambda: world.bound("before"), "it begins")
    plane.api_server.kill()
    plane.start_again(plane.api_server)
    world.job("after", 4)
    world.job("waits", 4)
    seen = settle(world)
    assert seen.overbooked == 0
    assert len(world.bound("before")) == len(world.bound("after")) == 4


def test_the_store_of_the_server_stands_still(world: World, plane: ControlPlane) -> None:
    """For longer than a lease: nobody can lead, and whoever led decides nothing on what it cannot know."""
    world.nodes(2, gpus=4)
    world.lead()
    world.lead()
    world.job("before", 4)
    until(lambda: world.bound("before"), "it begins")
    world.job("during", 4)
    plane.etcd.pause()
    try:
        time.sleep(5.0)
    finally:
        plane.etcd.go_on()
    plane.api_server.wait_until(plane.is_ready)
    world.job("waits", 4)
    seen = settle(world)
    assert seen.overbooked == 0
    assert len(world.bound("before")) == len(world.bound("during")) == 4


def test_watches_are_cut_and_history_is_lost(world: World, front: Front, plane: ControlPlane) -> None:
    """While it is cut off, a gang is deleted, another one comes, and the server forgets what happened (410)."""
    world.nodes(2, gpus=4)
    world.lead(front.option)
    world.job("stays", 4)
    world.job("goes", 4)
    settle(world)
    for _ in range(3):
        front.cut_watches()
    front.refuses = True
    front.cut_watches()
    world.forget("goes")
    world.job("comes", 4)
    plane.api_server.kill()
    plane.start_again(plane.api_server)
    front.refuses = False
    until(lambda: len(world.bound("comes")) == 4, "what was missed is seen")
    seen = settle(world)
    assert seen.overbooked == 0
    assert len(world.bound("stays")) == 4
