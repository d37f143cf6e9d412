"""`kill -9` of the leader in the middle of starting a gang, again and again: what a round is.

There is room for one gang at a time. One runs, another one comes and waits: of one sort after the other (`gangs`). The
first is deleted, and the leader begins to start the other. It is killed at a moment that is drawn:

    binding     so many of its binds have landed, and the next one is on its way
    claiming    so many of its claims have a volume, and the next one is about to get it
    admitting   it is not suspended any more, and its operator is making pods

What it has sent and the server has not got is lost with it. A rival stands by and follows when the lease has run out.
Then the question of `checking`: and in no look in between may a GPU have been given twice. That a kill has hit the
middle is not believed but looked for, on the server, when the leader is dead; others do not count.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

from msgspec import Struct

from tests.kube.body.clusters import until
from tests.kube.faults.checking import overbooked, settle
from tests.kube.faults.front import BIND, CLAIM, SUSPEND, Front, Trouble
from tests.kube.faults.gangs import CLAIMS, JOB, JOB_SET, LABELLED_PODS, POD_GROUP, PYTORCH_JOB, Sort
from tests.kube.faults.worlds import World

NODES, GPUS, PODS = 3, 4, 10
RIVALS = 3
DELAY = (0.0, 0.3)
"""Of a bind, so that they land in any order."""
BINDING, ADMITTING, CLAIMING = "binding", "admitting", "claiming"


class Drawn(Struct, frozen=True):
    sort: Sort
    suspended: bool = False

    @property
    def name(self) -> str:
        return f"suspended {self.sort.name}" if self.suspended else self.sort.name


DRAWS = (
    Drawn(JOB),
    Drawn(JOB, suspended=True),
    Drawn(JOB_SET),
    Drawn(JOB_SET, suspended=True),
    Drawn(PYTORCH_JOB),
    Drawn(PYTORCH_JOB, suspended=True),
    Drawn(LABELLED_PODS),
    Drawn(CLAIMS),
)
NATIVE = Drawn(POD_GROUP)
"""On a server that has it."""


class Kill(Struct, frozen=True, kw_only=True):
    sort: str
    moment: str
    hit: bool
    """A part of the gang was bound, or it was admitted and none was, when the leader was dead."""
    landed: int
    """Pods of the gang that were bound then."""
    whole_s: float
    """From the kill until all of them were, and everything was in order."""
    overbooked: int
    lease_s: int
    wrong: str = ""


class Late(Struct, frozen=True, kw_only=True):
    landed: int
    """Binds of the dead leader that landed on GPUs which its successor had given to others."""
    repaired_s: float
    """From the moment at which they were let go until no GPU was given twice."""
    wrong: str = ""


class Killing:
    """A world in which leaders die. Rivals are started ahead, so that one is there when it is needed."""

    def __init__(self, world: World, front: Front, seed: int, draws: tuple[Drawn, ...] = DRAWS) -> None:
        self._world, self._front, self._luck = world, front, random.Random(seed)
        self._count = self._late = 0
        self._draws = self._luck.sample(draws, len(draws))
        world.nodes(NODES, gpus=GPUS)
        for _ in range(RIVALS):
            self._join()
        self._next_gang(Drawn(JOB))
        until(lambda: len(world.bound()) == PODS, "the first gang runs")

    def kill_once(self) -> Kill:
        world, front = self._world, self._front
        told: dict[str, Any]
        drawn = self._draws[self._count % len(self._draws)]
        moment = self._luck.choice(_moments(drawn))
        self._next_gang(drawn)
        old, new = sorted(world.gangs)
        if not drawn.suspended:
            until(lambda: len(world.pods_of(new)) == PODS, "the next gang is there")
        try:
            self._until_the_middle(moment, old)
        except AssertionError as error:
            told = {"sort": drawn.name, "moment": moment, "hit": False, "landed": 0, "lease_s": world.lease_s}
            return Kill(**told, whole_s=-1.0, overbooked=0, wrong=f"{error}; {self._state()}"[:4000])
        self._kill_leader()
        killed_at = time.monotonic()
        landed = len(world.bound(new))
        hit = self._is_hit(moment, new, landed)
        front.lose_held()
        front.trouble.clear()
        self._join()
        told = {
            "sort": drawn.name,
            "moment": moment,
            "hit": hit,
            "landed": landed,
            "lease_s": world.lease_s,
        }
        try:
            seen = settle(world, quiet_s=0.5)
        except AssertionError as error:
            return Kill(**told, whole_s=-1.0, overbooked=0, wrong=str(error)[:2000])
        wrong = "" if len(world.bound(new)) == PODS else f"{new} does not run, though there is room"
        whole_s = round(time.monotonic() - killed_at - 0.5, 2)
        return Kill(**told, whole_s=whole_s, overbooked=seen.overbooked, wrong=wrong)

    def _until_the_middle(self, moment: str, old: str) -> None:
        """`old` leaves, and the leader begins to start the next gang."""
        front = self._front
        before = front.passed.copy()
        verb = CLAIM if moment == CLAIMING else BIND
        landing = 0 if moment == ADMITTING else self._luck.randint(1, PODS - 1)
        front.trouble[verb] = Trouble(delay_s=DELAY)
        front.hold(verb, after=landing)
        self._world.forget(old)
        if moment == ADMITTING:
            until(lambda: front.passed[SUSPEND] > before[SUSPEND], "it is admitted")
        else:
            until(
                lambda: front.held and front.passed[verb] - before[verb] == landing, f"it is in the middle of {moment}"
            )
        time.sleep(self._luck.uniform(*DELAY))

    def _state(self) -> str:
        """For whoever reads of a round that stood still."""
        world, front = self._world, self._front
        pods = [
            f"{pod['metadata']['name']} on {pod['spec'].get('nodeName', 'no node')}: "
            f"{world.condition(pod['metadata']['name'])}"
            for pod in world.pods()
        ]
        counts = f"{front.held} binds held, {front.asked[BIND]} asked, {front.passed[BIND]} passed"
        return f"{counts}; leader {world.leader()}; {'; '.join(pods)}; {world.log()[-1000:]}"

    def _is_hit(self, moment: str, name: str, landed: int) -> bool:
        if moment == CLAIMING:
            return landed == 0 and 0 < self._world.volumes_given(name) < PODS
        return 0 < landed < PODS if moment == BINDING else landed == 0 and not self._world.is_suspended(name)

    def late_once(self) -> Late:
        """All binds of a gang are on their way when the leader dies; its successor gives the room to an urgent gang."""
        world, front = self._world, self._front
        (old,) = world.gangs
        self._next_gang(Drawn(JOB))
        late = max(world.gangs)
        until(lambda: len(world.pods()) == 2 * PODS, "the next gang is there")
        front.hold_binds()
        world.forget(old)
        until(lambda: front.held == PODS, "its binds are on their way")
        self._kill_leader()
        front.hold_no_more()
        self._next_gang(Drawn(JOB), priority=1000)
        urgent = max(world.gangs)
        until(lambda: len(world.bound(urgent)) == PODS, "the successor gives the room to the urgent gang")
        self._join()
        there = {pod["metadata"]["uid"] for pod in world.bound(urgent)}
        passed, begun = front.passed[BIND], time.monotonic()
        front.let_go()
        until(lambda: front.passed[BIND] - passed >= PODS, "they land")
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

    def _next_gang(self, drawn: Drawn, priority: int = 0) -> None:
        self._count += 1
        name = f"gang-{self._count:04d}"
        self._world.create(drawn.sort, name, PODS, priority=priority, suspended=drawn.suspended)

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


def _moments(drawn: Drawn) -> list[str]:
    claims = [CLAIMING] if drawn.sort is CLAIMS else []
    return [BINDING, *([ADMITTING] if drawn.suspended else ()), *claims]


def summary(kills: list[Kill]) -> dict[str, Any]:
    hits = [kill for kill in kills if kill.hit]
    return {
        "kills": len(kills),
        "killed_in_the_middle": len(hits),
        "by_sort": dict(sorted(Counter(kill.sort for kill in hits).items())),
        "by_moment": dict(sorted(Counter(kill.moment for kill in hits).items())),
        "pods_in_a_gang": PODS,
        "looks_with_a_gpu_given_twice": sum(kill.overbooked for kill in kills),
        "whole_again_s": {
            f"lease of {lease_s} s": _times([kill.whole_s for kill in kills if kill.lease_s == lease_s])
            for lease_s in sorted({kill.lease_s for kill in kills})
        },
        "wrong": {str(number): kill.wrong for number, kill in enumerate(kills, 1) if kill.wrong},
    }
