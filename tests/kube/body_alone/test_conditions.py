"""What pods that wait are told: when it is something new, and only while they wait."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import structs

from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.reporting import AGAIN_S, PASS_S, SETTLED_S, WRITES_A_SECOND, Reporting
from optimus.kube import Conflict, Done, Outcome
from optimus.kube.events import Recorder, Regarding
from optimus.model.plans import Plan, Wait
from optimus.model.reasons import Code, Reason, reason
from tests.kube.body_alone.cluster import Alone, pod


class Quiet(Recorder):
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def say(self, regarding: Regarding, reason: str, note: str, *, action: str, kind: str = "Normal") -> None:
        self.said.append((reason, note))


class Told:
    """Reporting of a cluster with pods that wait, and what it writes."""

    def __init__(self, pods: int = 2) -> None:
        self.alone, self.events = Alone(), Quiet()
        self.written: list[str] = []
        self.versions: list[str] = []
        self.answer: Outcome = Done()
        self.alone.writer.patch = self._patch  # type: ignore[method-assign, assignment]
        self.reporting = Reporting(self.alone.mirror, self.alone.writer, self.events, lambda: self.alone.now)
        for number in range(pods):
            self.see(pod(f"p-{number}", gang="g", size=pods))
        self.alone.mirror.news()

    def see(self, one: Pod, version: str = "1") -> None:
        self.alone.mirror.pod(structs.replace(one, metadata=structs.replace(one.metadata, resource_version=version)))

    async def _patch(self, _resource: object, name: str, _changes: Any, **options: Any) -> Outcome:
        self.written.append(name)
        self.versions.append(options["resource_version"])
        return self.answer

    async def hear(self, why: Reason, after_s: float = 0.0) -> list[str]:
        """Pods that are written to when it waits for this reason."""
        self.alone.now += after_s
        self.reporting.tell(Plan(version=0, actions=(), waiting=(Wait("team/group/g", why),)))
        self.alone.now += SETTLED_S
        self.written.clear()
        self.reporting._look()
        for workload, uid in self.reporting._next():
            await self.reporting._condition(asyncio.Semaphore(1), workload, uid)
        return sorted(self.written)


def short_of(count: int) -> Reason:
    return reason(Code.NOT_READY, missing=f"{count} of 9 pods are there")


async def test_other_numbers_are_told_as_an_event_and_not_on_every_pod() -> None:
    told = Told()
    assert await told.hear(short_of(1)) == ["p-0", "p-1"]
    assert await told.hear(short_of(2), AGAIN_S) == []
    assert [note.partition(": ")[2] for _, note in told.events.said] == [
        "1 of 9 pods are there",
        "2 of 9 pods are there",
    ]
    assert await told.hear(short_of(2), AGAIN_S) == [] and len(told.events.said) == 2, "the same is not said again"
    assert await told.hear(reason(Code.SUSPENDED)) == ["p-0", "p-1"], "another reason is"


async def test_pods_that_come_later_are_told_too() -> None:
    told = Told()
    await told.hear(short_of(1))
    told.see(pod("p-2", gang="g", size=2))
    told.alone.mirror.news()
    assert await told.hear(short_of(1), AGAIN_S) == ["p-2"]


async def test_one_that_is_bound_meanwhile_is_not_told_that_it_waits() -> None:
    told = Told()
    told.reporting.tell(Plan(version=0, actions=(), waiting=(Wait("team/group/g", short_of(1)),)))
    told.alone.now += SETTLED_S
    told.reporting._look()
    told.see(pod("p-0", gang="g", size=2, on="n0"), version="2")
    for workload, uid in told.reporting._next():
        await told.reporting._condition(asyncio.Semaphore(1), workload, uid)
    assert told.written == ["p-1"] and told.versions == ["1"], "the server is told which version of it was meant"


async def test_a_version_that_is_not_the_last_is_told_again() -> None:
    told = Told(pods=1)
    told.answer = Conflict("another version")
    assert await told.hear(short_of(1)) == ["p-0"]
    told.answer = Done()
    assert await told.hear(short_of(1), AGAIN_S) == ["p-0"]
    assert await told.hear(short_of(1), AGAIN_S) == []


async def test_so_many_at_a_time() -> None:
    told = Told(pods=WRITES_A_SECOND * PASS_S + 10)
    assert len(await told.hear(short_of(1))) == WRITES_A_SECOND * PASS_S
    assert len(await told.hear(short_of(1))) == 10, "the rest follows"
