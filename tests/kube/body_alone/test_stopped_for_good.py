"""Work that is stopped or refused for good stays so, whoever leads next; only people start it again."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.objects import Anything, Pod
from optimus.kube import Done, Outcome, Refused, Resource
from optimus.model.plans import Evict, Plan, Reject
from optimus.model.queues import Queue, QueuePolicy
from optimus.model.reasons import Code, reason
from tests.kube.body_alone.cluster import Alone, pod, settle

JOBS = Resource("batch", "v1", "jobs")
JOB = "team/job/j"


class Server:
    """Holds one Job, and gives it its pod."""

    def __init__(self) -> None:
        meta = {"name": "j", "namespace": "team", "uid": "uid-j", "labels": {"optimus.dev/queue": "short"}}
        spec: dict[str, Any] = {"parallelism": 1, "completions": 1, "suspend": True}
        spec["template"] = {"spec": msgspec.to_builtins(pod("x").spec)}
        self.job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}

    def suspended(self) -> bool:
        return bool(self.job["spec"]["suspend"])

    @property
    def notes(self) -> dict[str, str]:
        found: dict[str, str] = self.job["metadata"].get("annotations", {})
        return found

    def leader(self) -> Alone:
        alone = Alone()
        alone.mirror.tenants.queue(Queue(name="short", policy=QueuePolicy(max_runtime_ms=60_000)))
        alone.acting._resource_of = lambda *_: JOBS
        alone.writer.patch = self._patch  # type: ignore[method-assign, assignment]
        self.show(alone)
        return alone

    async def _patch(self, _resource: object, _name: str, changes: Any, **_: Any) -> Outcome:
        notes = {**self.notes, **changes["metadata"].get("annotations", {})}
        self.job["metadata"]["annotations"] = {key: value for key, value in notes.items() if value is not None}
        self.job["spec"] = {**self.job["spec"], **changes.get("spec", {})}
        return Done()

    def show(self, alone: Alone) -> None:
        alone.mirror.owner(msgspec.convert(self.job, Anything))

    def a_pod(self, on: str = "") -> Pod:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
        made = msgspec.to_builtins(pod("j-0", on=on))
        made["metadata"]["ownerReferences"] = [owner]
        return msgspec.convert(made, Pod)


async def test_who_ran_too_long_is_not_started_by_the_next_leader() -> None:
    server = Server()
    alone = server.leader()
    await alone.turn()
    assert not server.suspended(), "it is let go"
    server.show(alone)
    alone.mirror.pod(server.a_pod(on="n0"))
    await alone.turn()
    alone.now += 61
    await alone.turn()
    assert server.suspended() and server.notes["optimus.dev/hold"] == "true"
    assert server.notes["optimus.dev/held-because"].startswith("RanTooLong")
    later = server.leader()
    for _ in range(3):
        later.now += 100
        plan = await later.turn()
        assert server.suspended() and plan.actions == ()
    del server.job["metadata"]["annotations"]["optimus.dev/hold"]  # as `optimus resume` does
    server.show(later)
    await later.turn()
    assert not server.suspended() and "optimus.dev/held-because" not in server.notes


async def test_who_is_refused_for_good_is_held() -> None:
    server = Server()
    alone = server.leader()
    alone.mirror.news()
    cause = reason(Code.WAITED_TOO_LONG, allowed="1h", queue="short")
    alone.acting.act(Plan(version=0, actions=(Reject(JOB, cause),)))
    await settle()
    assert server.notes["optimus.dev/hold"] == "true" and server.suspended()
    assert server.notes["optimus.dev/held-because"] == f"WaitedTooLong: {cause.text()}"


async def test_bare_pods_that_somebody_keeps_are_asked_again() -> None:
    """Nothing can be written on them that would stop them."""
    alone = Alone()
    asked: list[str] = []

    async def refuse(name: str, **_: Any) -> Outcome:
        asked.append(name)
        return Refused("DisruptionBudget", "not now") if len(asked) < 3 else Done()

    alone.writer.evict = refuse  # type: ignore[method-assign, assignment]
    alone.acting._respect_budgets = True
    alone.mirror.pod(pod("a", on="n0"))
    await alone.turn()
    cause = reason(Code.RAN_TOO_LONG, allowed="1h")
    alone.acting.act(Plan(version=0, actions=(Evict("team/pod/a", cause, 0, final=True),)))
    for _ in range(4):
        await settle()
        alone.now += 6
        alone.acting.facts()
    assert len(asked) >= 3
