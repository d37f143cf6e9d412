"""A gang of which a part cannot be bound does not keep the rest for longer than a controller may take to mend it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from optimus.drivers.kube.describing import LOSS_GRACE_MS
from optimus.drivers.kube.objects import Anything, Owner
from optimus.kube import Done, Refused, Resource
from optimus.model.plans import Plan, Shrink
from optimus.model.reasons import Code, reason
from tests.kube.body_alone.cluster import Alone, pod, settle

JOBS = Resource("batch", "v1", "jobs")


async def test_what_was_bound_of_a_gang_leaves_when_the_rest_cannot_follow() -> None:
    alone = Alone()
    names = ["a", "b", "c"]
    alone.writer.answers["c"] = Refused("NotTaken", "kube-scheduler did not take n0")
    for name in names:
        alone.mirror.pod(pod(name, gang="g", size=3))
    await alone.turn()
    for name in ("a", "b"):
        alone.mirror.pod(pod(name, gang="g", size=3, on="n0"))
    while alone.now * 1000 < 2 * LOSS_GRACE_MS and not alone.writer.evicted:
        alone.now += 5.0
        await alone.turn()
    assert sorted(alone.writer.evicted) == ["a", "b"]
    assert alone.now * 1000 <= LOSS_GRACE_MS + 60_000


async def test_work_that_one_lost_pod_fails_leaves_as_a_whole() -> None:
    alone = Alone()
    spec = {"parallelism": 3, "completions": 3, "backoffLimit": 0, "template": {"spec": {}}}
    meta = {"name": "j", "namespace": "team", "uid": "uid-j"}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    alone.mirror.owner(msgspec.convert(made, Anything))
    owner = Owner(api_version="batch/v1", kind="Job", name="j", uid="uid-j", controller=True)
    for number in range(3):
        one = pod(f"j-{number}", on="n0")
        alone.mirror.pod(structs.replace(one, metadata=structs.replace(one.metadata, owner_references=[owner])))
    await alone.turn()
    assert alone.mirror.workloads["team/job/j"].gang.roles[0].min == 1, "it could be made smaller"
    cause = reason(Code.SHRUNK, replicas="1 replica", beneficiary="other")
    sent: list[Any] = []

    async def patch(_resource: object, name: str, changes: Any, **_: Any) -> Done:
        sent.append((name, changes["spec"]))
        return Done()

    alone.writer.patch = patch  # type: ignore[method-assign, assignment]
    alone.acting._resource_of = lambda *_: JOBS
    alone.acting.act(Plan(version=0, actions=(Shrink("team/job/j", (("worker", 2),), cause),)))
    await settle()
    assert sent == [("j", {"suspend": True})] and alone.writer.evicted == []
