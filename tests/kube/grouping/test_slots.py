"""Which pod is which replica: kept while it lives, inherited when it is gone."""

from __future__ import annotations

from optimus.drivers.kube.grouping import Groups, Slot, shipped_kinds
from optimus.drivers.kube.objects import Anything, Pod
from tests.kube.grouping.making import a_pod, a_thing

INDEX = "batch.kubernetes.io/job-completion-index"


def a_job(parallelism: int = 3, **spec: object) -> Anything:
    return a_thing("batch/v1 Job", "j", {"parallelism": parallelism, "completionMode": "Indexed", **spec})


def indexed(uid: str, index: int, phase: str = "Running") -> Pod:
    return a_pod(f"j-{index}-{uid}", a_job(), uid=uid, phase=phase, labels={INDEX: str(index)})


def with_pods(*pods: Pod, job: Anything | None = None) -> Groups:
    groups = Groups(shipped_kinds())
    groups.owner(job or a_job())
    for pod in pods:
        groups.pod(pod)
    return groups


def test_the_next_pod_of_an_index_waits_until_the_one_before_is_gone() -> None:
    groups = with_pods(indexed("old", 1), indexed("new", 1))
    assert groups.slot_of("old") == Slot("worker", 1)
    assert groups.slot_of("new") is None and groups.group_of("new") == "a/job/j"
    groups.pod_gone("old")
    assert groups.slot_of("new") == Slot("worker", 1)
    assert groups.pod_at("a/job/j", Slot("worker", 1)) == indexed("new", 1)


def test_a_pod_that_has_failed_makes_room_at_once() -> None:
    groups = with_pods(indexed("old", 1), indexed("new", 1), indexed("old", 1, "Failed"))
    assert groups.slot_of("old") is None and groups.slot_of("new") == Slot("worker", 1)


def test_one_that_waited_in_vain_leaves_no_trace() -> None:
    groups = with_pods(indexed("old", 1), indexed("new", 1))
    groups.pod_gone("new")
    groups.pod_gone("old")
    groups.pod(indexed("third", 1))
    assert groups.slot_of("third") == Slot("worker", 1)


def test_indices_beyond_what_runs_at_a_time_take_what_is_free() -> None:
    job = a_job(2, completions=4)
    groups = with_pods(indexed("a", 0), indexed("b", 1), job=job)
    groups.pod(indexed("a", 0, "Succeeded"))
    groups.pod(indexed("c", 2))
    assert groups.slot_of("c") == Slot("worker", 0), "an ordinal beyond the parallelism would be one too many"
    groups.pod_gone("b")
    groups.pod(indexed("d", 3))
    groups.pod(indexed("e", 1))
    assert groups.slot_of("d") == Slot("worker", 1)
    assert groups.slot_of("e") == Slot("worker", 2), "its own is taken by another index, which will not make room"


def test_a_pod_without_an_index_keeps_its_ordinal_and_gaps_are_filled() -> None:
    job = a_thing("batch/v1 Job", "j", {"parallelism": 3})
    groups = with_pods(*(a_pod(name, job) for name in "abc"), job=job)
    groups.pod_gone("pod-a-b")
    assert groups.slot_of("pod-a-c") == Slot("worker", 2)
    groups.pod(a_pod("d", job))
    assert groups.slot_of("pod-a-d") == Slot("worker", 1)


def test_the_only_pod_of_a_role_is_waited_for_without_any_index() -> None:
    spec = {"headGroupSpec": {"template": {}}, "workerGroupSpecs": []}
    cluster = a_thing("ray.io/v1 RayCluster", "r", spec)
    groups = with_pods(job=cluster)
    for uid in ("old", "new"):
        groups.pod(a_pod(f"head-{uid}", cluster, uid=uid, labels={"ray.io/group": "headgroup"}))
    assert groups.slot_of("new") is None
    groups.pod_gone("old")
    assert groups.slot_of("new") == Slot("headgroup", 0)


def test_an_owner_that_is_deleted_leaves_its_pods_where_they_are() -> None:
    groups = with_pods(indexed("a", 0), indexed("b", 1))
    groups.owner_gone(a_job().metadata.uid)
    assert not groups.missing(), "it is known to be gone"
    assert groups.slot_of("b") == Slot("worker", 1)
    groups.pod_gone("a")
    groups.pod_gone("b")
    assert not groups.ids()


def test_a_pod_belongs_nowhere_until_its_owners_are_known() -> None:
    groups = Groups(shipped_kinds())
    deployment = a_thing("apps/v1 Deployment", "d")
    replicas = a_thing("apps/v1 ReplicaSet", "r", owner=deployment)
    groups.pod(a_pod("x", replicas))
    assert groups.group_of("pod-a-x") is None or groups.group_of("pod-a-x") == ""
    assert [ref.kind for ref in groups.missing()] == ["apps/ReplicaSet"]
    groups.owner(replicas)
    assert [ref.kind for ref in groups.missing()] == ["apps/Deployment"]
    groups.owner(deployment)
    assert not groups.missing() and groups.group_of("pod-a-x") == "a/pod/x"


def test_a_pod_group_says_how_many_also_for_a_gang_of_an_owner() -> None:
    job = a_job()
    pod = a_pod("x", job, labels={"scheduling.x-k8s.io/pod-group": "g"})
    groups = with_pods(pod, job=job)

    def least() -> int:
        group = groups.group("a/job/j")
        assert group is not None
        return group.min_members

    assert least() == 3
    for asked in (2, 1):
        groups.owner(a_thing("scheduling.x-k8s.io/v1alpha1 PodGroup", "g", {"minMember": asked}))
        assert least() == asked
    groups.owner_gone("PodGroup-a-g")
    assert least() == 3
