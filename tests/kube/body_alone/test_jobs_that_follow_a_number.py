"""UnifiedJobs as the scheduler meets them: one number is written, pods come and are bound, and nothing else is touched.

The jobs controller of these stories is a few lines (`obey`): what the real one makes of the number is told elsewhere.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube.objects import Anything, Pod
from optimus.drivers.kube.targets import COME_S
from optimus.kube import Conflict, Done, Outcome, Refused, Resource, Unknown
from optimus.model.plans import Action, Drop, Plan
from optimus.model.queues import PoolQuota, Queue, Quota
from optimus.model.reasons import Code, reason
from tests.kube.body_alone.cluster import Alone, ScriptedWriter, node, settle

JOBS = Resource("optimus.dev", "v1alpha1", "unifiedjobs")
Document = dict[str, Any]


class PatchingWriter(ScriptedWriter):
    def __init__(self) -> None:
        super().__init__()
        self.patches: list[Document] = []
        self.patched: Outcome = Done()

    async def patch(self, resource: Resource, name: str, changes: Any, **_: Any) -> Outcome:
        self.patches.append(changes)
        return self.patched


class Steered(Alone):
    """A cluster with a server that keeps what is written on jobs, and shows it when it is told to."""

    writer: PatchingWriter

    def __init__(self, nodes: int = 1) -> None:
        super().__init__(nodes)
        self.writer = PatchingWriter()
        self.acting._writer = self.acting._targets._writer = self.writer
        self.acting._targets._resource_of = lambda *_: JOBS
        self.jobs: dict[str, Document] = {}
        self.pods: dict[str, Pod] = {}

    def two_teams(self, guarantee: int) -> None:
        """Vision has a guarantee; speech may use what is idle."""
        quota = PoolQuota(pool="default", resources={"gpu": Quota(guarantee=guarantee * 1000)})
        self.mirror.tenants.queue(Queue(name="vision", quotas=(quota,)))
        self.mirror.tenants.queue(Queue(name="speech"))

    def submit(self, name: str, least: int, most: int, **spec: Any) -> None:
        replicas = {"minReplicas": least, "maxReplicas": most, "gpu": {"count": 1}}
        container = {"name": "main", "image": "busybox", "command": ["sleep", "60"]}
        self.jobs[name] = {
            "apiVersion": "optimus.dev/v1alpha1",
            "kind": "UnifiedJob",
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"uid-{name}",
                "creationTimestamp": f"2026-01-01T00:00:{len(self.jobs):02d}Z",
            },
            "spec": {"replicaSpec": replicas, "template": {"spec": {"containers": [container]}}, **spec},
        }
        self.show(name)

    def show(self, name: str, **status: Any) -> None:
        """The watch tells of the job."""
        self.jobs[name]["status"] = {**self.jobs[name].get("status", {}), **status}
        self.mirror.owner(msgspec.convert(self.jobs[name], Anything))

    def written(self, name: str) -> int | None:
        """The number that was written last, which the watch shows from now on."""
        for body in self.writer.patches:
            if body["metadata"]["uid"] == f"uid-{name}":
                self.jobs[name]["spec"]["replicaSpec"]["targetReplicas"] = body["spec"]["replicaSpec"]["targetReplicas"]
                notes = self.jobs[name]["metadata"].setdefault("annotations", {})
                notes |= body["metadata"]["annotations"]
        self.show(name)
        found: int | None = self.jobs[name]["spec"]["replicaSpec"].get("targetReplicas")
        return found

    def because(self, name: str) -> str:
        self.written(name)
        return str(self.jobs[name]["metadata"]["annotations"]["optimus.dev/target-because"])

    def obey(self, name: str, *ordinals: int) -> None:
        """Its controller makes these pods."""
        for ordinal in ordinals:
            self.pods[f"{name}-worker-{ordinal}"] = one = replica(name, ordinal)
            self.mirror.pod(one)

    def land(self) -> None:
        """The watch shows the binds that were sent."""
        for name, where in self.writer.binds:
            if name in self.pods and not self.pods[name].spec.node_name:
                self.change(name, on=where)

    def change(self, name: str, *, on: str = "", phase: str = "Running", leaving: bool = False) -> None:
        one = self.pods[name]
        where = on or one.spec.node_name or ""
        ordinal = int(name.rpartition("-")[2])
        self.pods[name] = replica(name.partition("-worker-")[0], ordinal, on=where, phase=phase, leaving=leaving)
        self.mirror.pod(self.pods[name])

    def gone(self, name: str) -> None:
        self.mirror.pod_gone(self.pods.pop(name).metadata.uid)

    async def runs(self, name: str, replicas: int) -> None:
        await self.turn()
        assert self.written(name) == replicas
        self.obey(name, *range(replicas))
        await self.turn()
        self.land()
        await self.turn()


def replica(job: str, ordinal: int, *, on: str = "", phase: str = "Pending", leaving: bool = False) -> Pod:
    name = f"{job}-worker-{ordinal}"
    meta: Document = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "labels": {"optimus.dev/job": job, "optimus.dev/role": "worker", "optimus.dev/index": str(ordinal)},
        "creationTimestamp": "2026-01-01T00:01:00Z",
        "ownerReferences": [
            {"apiVersion": JOBS.api_version, "kind": "UnifiedJob", "name": job, "uid": f"uid-{job}", "controller": True}
        ],
        **({"deletionTimestamp": "2026-01-01T00:02:00Z"} if leaving else {}),
    }
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "optimus", "containers": [container], **({"nodeName": on} if on else {})}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase}}, Pod)


def plan_of(*actions: Action) -> Plan:
    return Plan(version=1, actions=actions)


async def test_a_job_waits_without_pods_and_is_bound_as_they_come() -> None:
    one = Steered()
    one.submit("train", 4, 4)
    await one.turn()
    assert one.written("train") == 4 and one.because("train").startswith("Started")
    assert one.writer.binds == []
    one.obey("train", 0, 1)
    await one.turn()
    assert sorted(name for name, _ in one.writer.binds) == ["train-worker-0", "train-worker-1"]
    one.obey("train", 2, 3)
    await one.turn()
    assert len(one.writer.binds) == 4
    assert len(one.writer.patches) == 1, "the number is written once"


async def test_one_that_does_not_fit_gets_no_number() -> None:
    one = Steered()
    one.submit("huge", 9, 9)
    await one.turn()
    assert one.written("huge") is None and one.writer.patches == []


async def test_it_starts_with_what_is_free_and_grows_when_room_appears() -> None:
    one = Steered()
    one.submit("first", 6, 6)
    await one.runs("first", 6)
    one.submit("elastic", 1, 4)
    await one.runs("elastic", 2)
    for ordinal in range(6):
        one.change(f"first-worker-{ordinal}", phase="Succeeded")
    one.show("first", phase="Succeeded")
    await one.turn()
    assert one.written("elastic") == 4 and one.because("elastic").startswith("Grown")
    one.obey("elastic", 2, 3)
    await one.turn()
    assert [name for name, _ in one.writer.binds][-2:] == ["elastic-worker-2", "elastic-worker-3"]


async def test_it_gives_back_what_was_lent_replica_by_replica() -> None:
    one = Steered()
    lent = (
        Queue(name="vision", quotas=(PoolQuota(pool="default", resources={"gpu": Quota(guarantee=6000)}),)),
        Queue(name="speech"),
    )
    for queue in lent:
        one.mirror.tenants.queue(queue)
    one.submit("elastic", 1, 8, queue="speech", preemptible=True)
    await one.runs("elastic", 8)
    one.submit("own", 6, 6, queue="vision")
    await one.turn()
    assert one.written("elastic") == 2 and one.because("elastic").startswith("Shrunk")
    assert len(one.writer.evicted) == 6, "the brain says which"
    assert one.written("own") is None, "the room is busy until they have left"
    for name in one.writer.evicted:
        one.change(name, leaving=True)
    await one.turn()
    assert one.written("own") is None
    for name in one.writer.evicted:
        one.gone(name)
    await one.turn()
    assert one.written("own") == 6
    assert one.written("elastic") == 2, "it is not told to take back what was taken"


def taken_over(job: str, least: int, most: int, *, target: int, bound: int, done: int = 0) -> Steered:
    """What a leader finds whose predecessor died when it had bound so many of its pods."""
    one = Steered()
    one.submit(job, least, most)
    one.jobs[job]["spec"]["replicaSpec"]["targetReplicas"] = target
    one.show(job)
    one.obey(job, *range(target))
    for ordinal in range(bound):
        one.change(f"{job}-worker-{ordinal}", on="n0", phase="Succeeded" if ordinal < done else "Running")
    return one


async def test_who_takes_over_in_the_middle_of_a_start_binds_the_rest_and_asks_for_no_more() -> None:
    one = taken_over("train", 8, 8, target=8, bound=5)
    for _ in range(3):
        await one.turn()
        one.land()
    assert sorted(name for name, _ in one.writer.binds) == [f"train-worker-{ordinal}" for ordinal in (5, 6, 7)]
    assert one.written("train") == 8 and one.writer.patches == []


async def test_who_takes_over_while_it_grows_goes_on_to_the_size_it_can_have() -> None:
    one = taken_over("elastic", 1, 8, target=4, bound=2)
    for _ in range(3):
        await one.turn()
        one.land()
        one.obey("elastic", *(n for n in range(one.written("elastic") or 0) if f"elastic-worker-{n}" not in one.pods))
    assert one.written("elastic") == 8
    assert len({name for name, _ in one.writer.binds}) == 6


async def test_a_number_counts_those_that_are_done_also_for_who_takes_over() -> None:
    one = taken_over("train", 4, 4, target=4, bound=4, done=2)
    await one.turn()
    await one.turn()
    assert one.written("train") == 4 and one.writer.patches == [] and one.writer.evicted == []


async def test_room_that_was_only_promised_is_in_no_number() -> None:
    one = Steered()
    one.submit("elastic", 1, 4)
    await one.runs("elastic", 4)
    why = reason(Code.ROOM_LOST)
    one.acting.act(plan_of(Drop("team/unifiedjob/elastic", (("worker", 4), ("worker", 5)), why)))
    assert one.written("elastic") == 4 and len(one.writer.patches) == 1


async def test_places_that_nobody_came_to_are_taken_out_of_the_number() -> None:
    one = Steered()
    one.submit("elastic", 1, 4)
    await one.turn()
    assert one.written("elastic") == 4
    one.acting.act(plan_of(Drop("team/unifiedjob/elastic", (("worker", 3),), reason(Code.HOLD_EXPIRED, held="5m"))))
    await settle()
    assert one.written("elastic") == 3


async def test_a_gang_that_must_leave_is_told_so_by_its_number_alone() -> None:
    one = Steered()
    one.mirror.tenants.queue(
        Queue(name="vision", quotas=(PoolQuota(pool="default", resources={"gpu": Quota(guarantee=8000)}),))
    )
    one.mirror.tenants.queue(Queue(name="speech"))
    one.submit("lent", 8, 8, queue="speech", preemptible=True)
    await one.runs("lent", 8)
    one.submit("own", 8, 8, queue="vision")
    await one.turn()
    assert one.written("lent") == 0 and one.because("lent").startswith("Reclaimed")
    assert one.writer.evicted == [], "its controller asks it to save and leave"
    for ordinal in range(8):
        one.gone(f"lent-worker-{ordinal}")
    await one.turn()
    assert one.written("own") == 8


async def test_a_job_that_is_suspended_leaves_and_stays_away() -> None:
    one = Steered()
    one.submit("train", 2, 2)
    await one.runs("train", 2)
    one.jobs["train"]["spec"]["suspend"] = True
    one.show("train")
    await one.turn()
    assert one.written("train") == 0 and one.because("train").startswith("Suspended")
    for ordinal in range(2):
        one.gone(f"train-worker-{ordinal}")
    await one.turn()
    assert one.written("train") == 0
    one.jobs["train"]["spec"]["suspend"] = False
    one.show("train")
    await one.turn()
    assert one.written("train") == 2


async def test_one_that_was_suspended_and_left_before_anybody_looked_has_no_number_either() -> None:
    one = Steered()
    one.submit("train", 2, 2)
    await one.runs("train", 2)
    one.jobs["train"]["spec"]["suspend"] = True
    one.show("train")
    for ordinal in range(2):
        one.gone(f"train-worker-{ordinal}")
    await one.turn()
    assert one.written("train") == 0 and one.because("train").startswith("Suspended")
    await one.turn()
    assert [body["spec"]["replicaSpec"]["targetReplicas"] for body in one.writer.patches] == [2, 0]


async def test_a_replica_that_is_done_keeps_the_others_where_they_are() -> None:
    one = Steered()
    one.submit("train", 3, 3)
    await one.runs("train", 3)
    one.change("train-worker-1", phase="Succeeded")
    await one.turn()
    await one.turn()
    assert one.written("train") == 3 and len(one.writer.patches) == 1
    assert one.writer.evicted == []


@pytest.mark.parametrize("answer", [Conflict("later"), Unknown("no answer"), Refused("TooManyRequests", "busy", 3.0)])
async def test_a_number_that_came_at_a_bad_moment_is_written_again(answer: Outcome) -> None:
    one = Steered()
    one.writer.patched = answer
    one.submit("train", 2, 2)
    await one.turn()
    assert len(one.writer.patches) == 1 and one.acting.unsettled
    one.writer.patched = Done()
    await one.turn()
    assert len(one.writer.patches) == 1, "not at once"
    one.now += 4.0
    await one.turn()
    assert len(one.writer.patches) == 2
    assert one.written("train") == 2
    await one.turn()
    assert not one.acting._targets.unsettled


async def test_who_may_not_be_started_gives_its_places_back() -> None:
    one = Steered()
    one.writer.patched = Refused("Forbidden", "a policy says no")
    one.submit("train", 8, 8)
    plan = await one.turn()
    assert plan.actions
    one.submit("other", 8, 8)
    one.writer.patched = Done()
    plan = await one.turn()
    (reason,) = [wait.reason for wait in plan.waiting if wait.workload == "team/unifiedjob/train"]
    assert "a policy says no" in reason.text()
    assert one.written("other") == 8


async def test_room_is_not_kept_for_pods_that_never_come() -> None:
    one = Steered()
    one.submit("train", 8, 8)
    await one.turn()
    assert one.written("train") == 8
    one.submit("other", 8, 8)
    blocked = {"type": "Blocked", "status": "True", "message": "exceeded quota: gpus"}
    one.show("train", conditions=[blocked])
    await one.turn()
    one.now += COME_S + 1
    await one.turn()
    assert one.written("train") == 0
    assert one.because("train") == "RolledBack: no pod has come for its places: exceeded quota: gpus"
    await one.turn()
    assert one.written("other") == 8


async def test_growth_for_which_no_pod_comes_is_taken_back_and_the_rest_stays() -> None:
    one = Steered()
    one.submit("elastic", 1, 2)
    await one.runs("elastic", 2)
    one.jobs["elastic"]["spec"]["replicaSpec"]["maxReplicas"] = 4
    one.show("elastic")
    await one.turn()
    assert one.written("elastic") == 4
    one.now += 1
    await one.turn()
    one.now += COME_S + 1
    await one.turn()
    assert one.written("elastic") == 2 and one.because("elastic").startswith("RolledBack")
    assert one.writer.evicted == []


async def test_growth_that_does_not_begin_to_run_is_taken_back_once() -> None:
    one = Steered()
    one.submit("elastic", 1, 4)
    await one.runs("elastic", 4)
    one.change("elastic-worker-2", phase="Pending")
    one.change("elastic-worker-3", phase="Pending")
    late = {"type": "RescaleOverdue", "status": "True", "message": "2 of 4 replicas run after 10 minutes"}
    one.show("elastic", conditions=[late])
    await one.turn()
    assert one.written("elastic") == 2
    assert one.because("elastic") == "RolledBack: 2 of 4 replicas run after 10 minutes"
    assert sorted(one.writer.evicted) == ["elastic-worker-2", "elastic-worker-3"], "those that run stay"
    await one.turn()
    assert one.written("elastic") == 2, "until its controller says something else"


async def test_after_a_failure_it_is_not_started_before_its_time() -> None:
    one = Steered()
    one.submit("train", 2, 2)
    waits = {
        "type": "BackingOff",
        "status": "True",
        "message": "replica worker-0 exited with code 1; next try at 10:00",
    }
    one.show("train", conditions=[waits])
    plan = await one.turn()
    assert one.written("train") is None
    (reason,) = [wait.reason for wait in plan.waiting if wait.workload == "team/unifiedjob/train"]
    assert reason.code is Code.NOT_READY and "exited with code 1" in reason.text()
    one.show("train", conditions=[{**waits, "status": "False"}])
    await one.turn()
    assert one.written("train") == 2


async def test_one_that_cannot_be_read_says_what_is_wrong() -> None:
    one = Steered()
    one.submit("train", 5, 2)
    plan = await one.turn()
    (reason,) = [wait.reason for wait in plan.waiting if wait.workload == "team/unifiedjob/train"]
    assert reason.code is Code.MALFORMED and "minimum" in reason.text()
    assert one.writer.patches == []


async def test_one_that_is_over_frees_everything() -> None:
    one = Steered()
    one.submit("train", 8, 8)
    await one.runs("train", 8)
    one.submit("next", 8, 8)
    for ordinal in range(8):
        one.change(f"train-worker-{ordinal}", phase="Failed")
    one.show("train", phase="Failed")
    await one.turn()
    await one.turn()
    assert one.written("next") == 8


async def test_two_nodes_and_a_job_that_wants_both() -> None:
    one = Steered(2)
    one.mirror.node(node("n2", gpus=0))
    one.submit("train", 16, 16)
    await one.runs("train", 16)
    assert {where for _, where in one.writer.binds} == {"n0", "n1"}
