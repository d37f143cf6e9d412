"""`kill -9` of the leader in the middle of binding a gang, again and again: what a round is.

There is room for one gang at a time. One runs, another one comes and waits. The first is deleted; the leader begins to
bind the other, through a front that makes each bind a little slower; when a random number of its binds has landed, and
a random moment later, the leader is killed, and what it has sent and the server has not got is lost with it. A rival
stands by and follows when the lease has run out. Then the question of `checking`: and in no look in between may a GPU
have been given twice.
"""

from __future__ import annotations

import random
import time
from typing import Any

from msgspec import Struct

from tests.kube.body.clusters import until
from tests.kube.faults.checking import overbooked, settle
from tests.kube.faults.front import Front, Trouble
from tests.kube.faults.worlds import World

NODES, GPUS, PODS = 3, 4, 10
RIVALS = 3
BIND_S = 1.5
"""A bind takes up to so long, so that there is a middle to be killed in."""


class Kill(Struct, frozen=True, kw_only=True):
    landed: int
    """Pods of the gang that were bound a moment after its leader was dead."""
    whole_s: float
    """From the kill until all of them were, and everything was in order."""
    overbooked: int
    wrong: str = ""


class Late(Struct, frozen=True, kw_only=True):
    landed: int
    """Binds of the dead leader that landed on GPUs which its successor had given to others."""
    repaired_s: float
    """From the moment at which they were let go until no GPU was given twice."""
    wrong: str = ""


class Killing:
    """A world in which leaders die. Rivals are started ahead, so that one is there when it is needed."""

    def __init__(self, world: World, front: Front, seed: int) -> None:
        self._world, self._front, self._luck = world, front, random.Random(seed)
        self._count = self._late = 0
        world.nodes(NODES, gpus=GPUS)
        for _ in range(RIVALS):
            self._join()
        self._next_gang()
        until(lambda: len(world.bound()) == PODS, "the first gang runs")

    def kill_once(self) -> Kill:
        world, front = self._world, self._front
        self._next_gang()
        old, new = sorted(world.gangs)
        until(lambda: len(world.pods()) == 2 * PODS, "the next gang is there")
        front.binds = Trouble(delay_s=(0.0, BIND_S), dies_with_caller=True)
        asked, passed, wanted = front.asked, front.passed, self._luck.randint(0, PODS - 2)
        world.forget(old)
        until(lambda: front.asked > asked and front.passed - passed >= wanted, "it is in the middle of binding")
        time.sleep(self._luck.uniform(0.0, 0.05))
        self._kill_leader()
        killed_at = time.monotonic()
        landed = len(world.bound(new))
        self._join()
        front.binds = Trouble()
        try:
            seen = settle(world, quiet_s=0.5)
        except AssertionError as error:
            return Kill(landed=landed, whole_s=-1.0, overbooked=0, wrong=str(error)[:2000])
        wrong = "" if len(world.bound(new)) == PODS else f"{new} does not run, though there is room"
        whole_s = round(time.monotonic() - killed_at - 0.5, 2)
        return Kill(landed=landed, whole_s=whole_s, overbooked=seen.overbooked, wrong=wrong)

    def late_once(self) -> Late:
        """All binds of a gang are on their way when the leader dies; its successor gives the room to an urgent gang."""
        world, front = self._world, self._front
        (old,) = world.gangs
        self._next_gang()
        late = max(world.gangs)
        until(lambda: len(world.pods()) == 2 * PODS, "the next gang is there")
        front.hold_binds()
        world.forget(old)
        until(lambda: front.held == PODS, "its binds are on their way")
        self._kill_leader()
        front.hold_no_more()
        self._next_gang(priority=1000)
        urgent = max(world.gangs)
        until(lambda: len(world.bound(urgent)) == PODS, "the successor gives the room to the urgent gang")
        self._join()
        there = {pod["metadata"]["uid"] for pod in world.bound(urgent)}
        passed, begun = front.passed, time.monotonic()
        front.let_go()
        until(lambda: front.passed - passed >= PODS, "they land")
        until(lambda: not overbooked(world, world.pods()), "it is repaired")
        repaired_s = round(time.monotonic() - begun, 2)
        wrong = ""
        try:
            settle(world)
        except AssertionError as error:
            wrong = str(error)[:2000]
        if {pod["metadata"]["uid"] for pod in world.bound(urgent)} != there:
            wrong += f" {urgent} was disturbed"
        landed = sum("in a former term" in line for line in world.log().splitlines()) - self._late
        self._late += landed
        world.forget(late)
        return Late(landed=landed, repaired_s=repaired_s, wrong=wrong)

    def _join(self) -> None:
        self._world.lead(self._front.option)

    def _next_gang(self, priority: int = 0) -> None:
        self._count += 1
        self._world.job(f"gang-{self._count:04d}", PODS, priority=priority)

    def _kill_leader(self) -> None:
        until(self._world.leading, "somebody leads")  # on a busy machine a lease may just have changed hands
        one = self._world.leading()
        assert one is not None
        one.kill()
        one.wait()
        self._world.controllers.remove(one)


def late_summary(late: list[Late]) -> dict[str, Any]:
    return {
        "leaders_killed": len(late),
        "binds_that_landed_late": sum(one.landed for one in late),
        "repaired_s": _times([one.repaired_s for one in late]),
        "wrong": {str(number): one.wrong for number, one in enumerate(late, 1) if one.wrong},
    }


def _times(seconds: list[float]) -> dict[str, float | None]:
    times = sorted(seconds)
    return {"p50": times[len(times) // 2] if times else None, "most": times[-1] if times else None}


def summary(kills: list[Kill]) -> dict[str, Any]:
    return {
        "kills": len(kills),
        "pods_in_a_gang": PODS,
        "killed_before_the_first_bind_landed": sum(kill.landed == 0 for kill in kills),
        "killed_in_the_middle": sum(0 < kill.landed < PODS for kill in kills),
        "killed_after_the_last_bind_landed": sum(kill.landed >= PODS for kill in kills),
        "looks_with_a_gpu_given_twice": sum(kill.overbooked for kill in kills),
        "whole_again_s": _times([kill.whole_s for kill in kills]),
        "wrong": {str(number): kill.wrong for number, kill in enumerate(kills, 1) if kill.wrong},
    }
