"""Suspended work has no pods that the server has given a number: the class that its template names says how important
it is."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything, PriorityClass
from optimus.model.observations import WorkloadSeen
from optimus.model.plans import Evict, Start
from optimus.model.queues import Queue, QueuePolicy
from tests.kube.body_alone.cluster import Alone, pod

DAY_MS = 86_400_000
LOW = msgspec.structs.replace(pod("low").metadata, annotations={"optimus.dev/preemptible": "true"})
SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""As on every server."""


def priority_class(name: str, value: int, *, for_all: bool = False) -> PriorityClass:
    return msgspec.convert({"metadata": {"name": name}, "value": value, "globalDefault": for_all}, PriorityClass)


def cluster(classes: dict[str, int]) -> Alone:
    alone = Alone()
    for name, value in (classes | SYSTEM if classes else {}).items():
        alone.mirror.priorities.see(priority_class(name, value))
    return alone


def job(
    name: str,
    created: int,
    named: str = "",
    *,
    gpus: int = 8,
    notes: dict[str, str] | None = None,
    suspend: bool = True,
    **more: Any,
) -> Anything:
    """It fills a node. Suspended, if nothing else is said."""
    container = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"schedulerName": "optimus", "containers": [container], **({"priorityClassName": named} if named else {})}
    meta = {"name": name, "namespace": "team", "uid": f"job-{name}", "labels": {"optimus.dev/queue": "default"}}
    meta |= {"creationTimestamp": f"2026-01-01T00:00:{created:02}Z", "annotations": notes or {}}
    told = {"parallelism": 1, "suspend": suspend, "template": {"spec": spec | more}}
    return msgspec.convert({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": told}, Anything)


def unified(name: str, named: str, **more: Any) -> Anything:
    container = {"name": "m", "image": "none"}
    template = {"spec": {"containers": [container], "priorityClassName": named}}
    meta = {"name": name, "namespace": "team", "uid": f"job-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"queue": "default", "replicaSpec": {"minReplicas": 1}, "template": template, **more}
    told = {"apiVersion": "optimus.dev/v1alpha1", "kind": "UnifiedJob", "metadata": meta, "spec": spec}
    return msgspec.convert(told, Anything)


def priority(mirror: Mirror, gang: str) -> int | None:
    mirror.news()
    return mirror.workloads[f"team/{gang}"].priority


async def started(alone: Alone) -> list[str]:
    return [one.workload for one in (await alone.turn()).actions if isinstance(one, Start)]


async def test_the_more_important_of_two_suspended_jobs_goes_first_although_it_came_later() -> None:
    alone = cluster({"high": 1000, "low": 10})
    alone.mirror.owner(job("old", 1, "low"))
    alone.mirror.owner(job("new", 2, "high"))
    assert await started(alone) == ["team/job/new"]


async def test_a_queue_still_says_how_important_anybody_is_at_most() -> None:
    alone = cluster({"high": 1000, "low": 50})
    alone.mirror.tenants.queue(Queue(name="default", policy=QueuePolicy(max_priority=50)))
    alone.mirror.owner(job("old", 1, "low"))
    alone.mirror.owner(job("new", 2, "high"))
    assert await started(alone) == ["team/job/old"]


async def test_who_says_never_to_preemption_preempts_unless_the_queue_says_so_for_all() -> None:
    """`preemptionPolicy: Never` is not followed, as docs/reference/kubernetes-scheduling.md says, with what to do."""
    for spares_ms, stops in ((0, ["team/pod/low"]), (DAY_MS, [])):
        alone = cluster({"high": 1000})
        policy = QueuePolicy(min_runtime_before_preempt_ms=spares_ms)
        alone.mirror.tenants.queue(Queue(name="default", policy=policy))
        low = msgspec.structs.replace(pod("low", on="n0"), metadata=LOW)
        alone.mirror.pod(low)
        await alone.turn()
        alone.now += 60
        alone.mirror.owner(job("high", 1, "high", preemptionPolicy="Never"))
        plan = await alone.turn()
        assert [one.workload for one in plan.actions if isinstance(one, Evict)] == stops


def test_a_class_that_changes_changes_those_who_wait_and_nobody_else() -> None:
    mirror = cluster({"high": 1000, "low": 10}).mirror
    mirror.owner(job("train", 1, "high"))
    mirror.owner(job("other", 1, "low"))
    runs = pod("runs", on="n0")
    runs = msgspec.structs.replace(
        runs, spec=msgspec.structs.replace(runs.spec, priority=1000, priority_class_name="high")
    )
    mirror.pod(runs)
    assert [priority(mirror, one) for one in ("job/train", "job/other", "pod/runs")] == [1000, 10, 1000]
    mirror.priorities.see(priority_class("high", 2000))
    told = [fact.workload.id for fact in mirror.news() if isinstance(fact, WorkloadSeen)]
    assert told == ["team/job/train"], "pods keep what the server has given them"
    assert priority(mirror, "job/train") == 2000
    mirror.priorities.see(priority_class("high", 2000))
    assert mirror.news() == [], "it is told again after every break"


def test_work_that_was_stopped_is_as_important_as_before() -> None:
    mirror = cluster({"high": 1000}).mirror
    waits = job("train", 1, "high")
    runs = job("train", 1, "high", suspend=False)
    mirror.owner(waits)
    assert priority(mirror, "job/train") == 1000
    mirror.owner(runs)
    assert priority(mirror, "job/train") == 1000, "its pods are on their way"
    mirror.owner(waits)
    assert priority(mirror, "job/train") == 1000


def test_work_whose_class_does_not_exist_waits_for_it() -> None:
    """The server would refuse its pods, and room would be kept for nobody."""
    mirror = cluster({"low": 10}).mirror
    mirror.owner(job("train", 1, "high"))
    mirror.news()
    why = mirror.workloads["team/job/train"].obstacle
    assert why is not None
    assert why.text() == "cannot be placed yet: there is no PriorityClass high, so the server refuses its pods"
    mirror.priorities.see(priority_class("high", 1000))
    assert priority(mirror, "job/train") == 1000 and mirror.workloads["team/job/train"].obstacle is None
    mirror.priorities.gone("high")
    mirror.news()
    assert mirror.workloads["team/job/train"].obstacle == why


def test_without_the_right_to_read_classes_work_goes_by_its_class_of_work() -> None:
    mirror = cluster({}).mirror
    mirror.owner(job("train", 1, "high"))
    assert priority(mirror, "job/train") is None
    assert mirror.workloads["team/job/train"].obstacle is None, "not read is not the same as not there"


def test_who_names_no_class_has_the_one_for_all_if_there_is_one() -> None:
    mirror = cluster({"low": 10}).mirror
    mirror.owner(job("train", 1))
    mirror.owner(job("named", 1, "low"))
    assert priority(mirror, "job/train") is None
    mirror.priorities.see(priority_class("usual", 500, for_all=True))
    assert (priority(mirror, "job/train"), priority(mirror, "job/named")) == (500, 10)
    mirror.priorities.see(priority_class("older", 400, for_all=True))
    assert priority(mirror, "job/train") == 400, "of several, the server takes the lowest"
    for name in ("usual", "older"):
        mirror.priorities.gone(name)
    assert priority(mirror, "job/train") is None


def test_a_number_in_a_template_is_nobodys_and_an_annotation_comes_first() -> None:
    mirror = cluster({"low": 10}).mirror
    mirror.owner(job("greedy", 1, "low", priority=1_000_000_000))
    mirror.owner(job("plain", 1, priority=1_000_000_000))
    mirror.owner(job("said", 1, "low", notes={"optimus.dev/priority": "77"}))
    assert [priority(mirror, f"job/{one}") for one in ("greedy", "plain", "said")] == [10, None, 77]


def test_one_template_speaks_for_a_gang_before_and_after_it_has_pods() -> None:
    """That of its first role by name, whatever their order in the object."""
    mirror = cluster({"high": 1000, "low": 10}).mirror
    container = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    roles = {
        role: {
            "template": {"spec": {"schedulerName": "optimus", "containers": [container], "priorityClassName": named}}
        }
        for role, named in (("Worker", "low"), ("Master", "high"))
    }
    meta = {"name": "t", "namespace": "team", "uid": "t", "labels": {"optimus.dev/queue": "default"}}
    spec = {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": roles}
    told = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": spec}
    mirror.owner(msgspec.convert(told, Anything))
    assert priority(mirror, "pytorchjob/t") == 1000


def test_a_unified_job_says_its_priority_itself_or_leaves_it_to_its_template() -> None:
    mirror = cluster({"high": 1000}).mirror
    mirror.priorities.see(priority_class("usual", 500, for_all=True))
    for one in (unified("by-class", "high"), unified("by-number", "high", priority=7), unified("neither", "")):
        mirror.owner(one)
    found = [priority(mirror, f"unifiedjob/{one}") for one in ("by-class", "by-number", "neither")]
    assert found == [1000, 7, None], "without either, its class of work decides, which it always has"
    mirror.priorities.gone("high")
    mirror.news()
    why = mirror.workloads["team/unifiedjob/by-number"].obstacle
    assert why is not None and "no PriorityClass high" in why.text(), "its pods would be refused all the same"
