"""A patch that starts or suspends work, and a server that has no time, fails, or does not want it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube.acting import PATCH_AGAIN_S
from optimus.drivers.kube.objects import Pod
from optimus.kube import Conflict, Done, Outcome, Refused, Unknown
from optimus.model.plans import Start
from tests.kube.body_alone.cluster import Alone, pod, settle
from tests.kube.body_alone.test_started_and_stopped_at_once import Patched, job

PASSING = (
    Refused("TooManyRequests", "later", retry_after_s=3.0),
    Refused("NotSent", "nobody listens"),
    Unknown("500", answered=True),
    Unknown("no answer"),
    Conflict("another version"),
)
FORBIDDEN = Refused("Forbidden", "a policy says no")


class Answered(Patched):
    def __init__(self, *answers: Outcome) -> None:
        super().__init__()
        self.answers = list(answers)
        self.slow.set()
        self.writer.patch = self._answer  # type: ignore[method-assign]

    async def _answer(self, resource: object, name: str, changes: Any, **_: Any) -> Outcome:
        await super()._patch(resource, name, changes)
        return self.answers.pop(0) if self.answers else Done()

    @property
    def asked(self) -> list[bool]:
        return [suspend for suspend, _ in self.sent]

    async def later(self, seconds: float) -> None:
        self.now += seconds
        await self.turn()
        await settle()


async def running(alone: Alone) -> None:
    """A Job of one pod, on a node."""
    alone.mirror.owner(job(suspended=False))
    one = pod("j-0", on="n0")
    ref = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    alone.mirror.pod(_owned(one, ref))
    await alone.turn()


def _owned(one: Pod, ref: dict[str, Any]) -> Pod:
    said = msgspec.to_builtins(one)
    said["metadata"]["ownerReferences"] = [ref]
    return msgspec.convert(said, Pod)


@pytest.mark.parametrize("answer", PASSING, ids=str)
async def test_work_is_suspended_a_little_later_and_no_pod_of_it_is_evicted(answer: Outcome) -> None:
    alone = Answered(answer)
    await running(alone)
    alone.take_back()
    await settle()
    await alone.later(PATCH_AGAIN_S + 3.0)
    assert alone.asked == [True, True] and alone.writer.evicted == []
    await alone.later(60.0)
    assert alone.asked == [True, True], "it was done, and is asked for no more"


@pytest.mark.parametrize("answer", PASSING, ids=str)
async def test_work_is_started_a_little_later(answer: Outcome) -> None:
    alone = Answered(answer)
    alone.mirror.owner(job(suspended=True))
    await alone.turn()
    await alone.later(PATCH_AGAIN_S + 3.0)
    assert alone.asked == [False, False]


async def test_what_the_watch_shows_is_not_asked_for_again() -> None:
    alone = Answered(Unknown("no answer"))
    alone.mirror.owner(job(suspended=True))
    await alone.turn()
    alone.mirror.owner(job(suspended=False))
    await alone.later(60.0)
    assert alone.asked == [False]


async def test_work_that_may_not_be_suspended_is_evicted() -> None:
    alone = Answered(FORBIDDEN)
    await running(alone)
    alone.take_back()
    await settle()
    assert alone.writer.evicted == ["j-0"]


async def test_work_that_may_not_be_started_gives_its_places_back_and_tries_again() -> None:
    alone = Answered(FORBIDDEN)
    alone.mirror.owner(job(suspended=True))
    await alone.turn()
    facts = alone.acting.facts()
    assert [fact.failure for fact in facts if hasattr(fact, "failure")] == [
        "it cannot be started: Forbidden: a policy says no"
    ]
    alone.engine.step(facts, int(alone.now * 1000))
    alone.now += 60.0
    plan = await alone.turn()
    assert any(isinstance(action, Start) for action in plan.actions) and alone.asked == [False, False]
