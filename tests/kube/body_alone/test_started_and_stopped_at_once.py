"""Work that is admitted and taken back before the watch has shown that it was un-suspended."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from optimus.drivers.kube.objects import Anything
from optimus.kube import Done, Resource
from optimus.model.plans import Evict, Plan, Start
from optimus.model.reasons import Code, reason
from tests.kube.body_alone.cluster import Alone, settle

JOBS = Resource("batch", "v1", "jobs")
MARK = "optimus.dev/suspended"


def job(*, suspended: bool) -> Anything:
    template = {"spec": {"schedulerName": "optimus", "containers": [{"name": "main"}]}}
    spec = {"parallelism": 1, "completions": 1, "suspend": suspended, "template": template}
    meta = {"name": "j", "namespace": "team", "uid": "uid-j", "labels": {"optimus.dev/queue": "default"}}
    return msgspec.convert({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}, Anything)


class Patched(Alone):
    """The first patch is slow, the second would overtake it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[bool, str | None]] = []
        self.slow = asyncio.Event()
        self.writer.patch = self._patch  # type: ignore[method-assign, assignment]
        self.acting._resource_of = lambda *_: JOBS

    async def _patch(self, _resource: object, _name: str, changes: Any, **_: Any) -> Done:
        if not self.sent:
            await self.slow.wait()
        self.sent.append((changes["spec"]["suspend"], changes["metadata"]["annotations"][MARK]))
        return Done()

    def take_back(self) -> None:
        cause = reason(Code.RECLAIMED, beneficiary="other", queue="default", entitlement="guarantee")
        self.acting.act(Plan(version=0, actions=(Evict("team/job/j", cause, 0),)))


async def test_it_is_suspended_again_with_our_mark_and_in_this_order() -> None:
    alone = Patched()
    alone.mirror.owner(job(suspended=True))
    plan = await alone.turn()
    assert any(isinstance(action, Start) for action in plan.actions)
    alone.take_back()
    await settle()
    assert alone.sent == [], "the second waits for the first"
    alone.slow.set()
    await settle()
    await settle()
    assert alone.sent == [(False, None), (True, "true")]


async def test_what_the_watch_shows_counts_from_then_on() -> None:
    alone = Patched()
    alone.slow.set()
    alone.mirror.owner(job(suspended=True))
    await alone.turn()
    alone.mirror.owner(job(suspended=False))
    await alone.turn()
    alone.mirror.owner(job(suspended=True))  # its user
    await alone.turn()
    alone.take_back()
    await settle()
    assert alone.sent == [(False, None)], "it is suspended already"
