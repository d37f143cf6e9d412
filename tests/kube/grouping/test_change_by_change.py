"""Fed one change after the other, the result is what it is when all is read anew: whatever came in whatever order."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from optimus.drivers.kube.grouping import Group, Groups, ObjectRef, Slot, shipped_kinds
from optimus.drivers.kube.objects import Anything, Pod
from tests.kube.grouping.making import a_pod, a_thing

EMPTY = ("_pods", "_gangs", "_things", "_named", "_absent", "_via", "_wanted", "_ids_of", "_children", "_declared")
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def the_owners(draw: st.DrawFn) -> list[Anything]:
    """A cluster's worth of owners, with sizes of their own; some may never be shown."""
    number = st.integers(0, 4)
    mode = draw(st.sampled_from(["Indexed", "NonIndexed"]))
    words = draw(st.sampled_from([{}, {"optimus.dev/queue": "q"}, {"optimus.dev/min-members": "2"}]))
    job = a_thing("batch/v1 Job", "j", {"parallelism": draw(number), "completionMode": mode}, labels=words)
    deployment = a_thing("apps/v1 Deployment", "d", labels=words)
    train = a_thing("trainer.kubeflow.org/v1alpha1 TrainJob", "t")
    replicated = [{"name": "node", "replicas": draw(number), "template": {"spec": {"parallelism": draw(number)}}}]
    two = [*replicated, {"name": "other", "template": {"spec": {"parallelism": draw(number)}}}]
    above = draw(st.sampled_from([train, None]))
    sets = {"replicatedJobs": draw(st.sampled_from([replicated, two]))}
    job_set = a_thing("jobset.x-k8s.io/v1alpha2 JobSet", "s", sets, owner=above)
    return [
        job,
        deployment,
        a_thing("apps/v1 ReplicaSet", "r", owner=draw(st.sampled_from([deployment, None]))),
        train,
        job_set,
        a_thing("batch/v1 Job", "s-node-0", {"parallelism": 2}, owner=job_set),
        a_thing("scheduling.x-k8s.io/v1alpha1 PodGroup", "g", {"minMember": draw(number)}),
        a_thing("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "l", {"leaderWorkerTemplate": {"size": draw(number)}}),
        a_thing("acme.io/v1 Sweep", "w"),
    ]


@st.composite
def a_change(draw: st.DrawFn) -> tuple[str, Any]:
    what = draw(st.sampled_from(["pod", "pod", "pod", "pod", "pod gone", "owner", "owner", "owner gone", "absent"]))
    if what == "pod":
        return what, some_pod(draw)
    if what == "pod gone":
        return what, f"p{draw(st.integers(0, 9))}"
    if what == "absent":
        return what, draw(st.integers(0, 5))
    return what, draw(st.sampled_from(the_owners(draw)))


def some_pod(draw: st.DrawFn) -> Pod:
    number = draw(st.integers(0, 9))
    index = str(draw(st.integers(0, 4)))
    labels: dict[str, str] = {}
    if draw(st.booleans()):
        labels[COMPLETION_INDEX] = index
    owner = draw(st.sampled_from([*the_owners(draw), None]))
    if owner is not None and owner.kind == "LeaderWorkerSet":
        labels |= {f"leaderworkerset.sigs.k8s.io/{word}": index for word in ("group-index", "worker-index")}
        labels["leaderworkerset.sigs.k8s.io/name"] = "l"
    if owner is not None and owner.metadata.name == "s-node-0":
        labels |= {"jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": index}
    labels |= draw(
        st.sampled_from(
            [{}, {}, {"scheduling.x-k8s.io/pod-group": "g"}, {"optimus.dev/group": "x", "optimus.dev/role": "y"}]
        )
    )
    phase = draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]))
    stamp = f"2026-01-01T00:00:0{number * 7 % 10}Z"
    return a_pod(f"n{number % 4}", owner, uid=f"p{number}", phase=phase, labels=labels, creationTimestamp=stamp)


def feed(groups: Groups, change: tuple[str, Any], pods: dict[str, Pod], owners: dict[str, Anything]) -> None:
    what, about = change
    if what == "pod":
        pods[about.metadata.uid] = about
        groups.pod(about)
    elif what == "pod gone":
        pods.pop(about, None)
        groups.pod_gone(about)
    elif what == "owner":
        owners[about.metadata.uid] = about
        groups.owner(about)
    elif what == "owner gone":
        owners.pop(about.metadata.uid, None)
        groups.owner_gone(about.metadata.uid)
    elif missing := groups.missing():
        groups.owner_absent(missing[about % len(missing)])


def seen(groups: Groups, pods: dict[str, Pod]) -> tuple[dict[str, Group | None], dict[str, Any], set[ObjectRef]]:
    """All that can be asked."""
    found = {one: groups.group(one) for one in groups.ids()}
    places = {uid: (groups.group_of(uid), groups.slot_of(uid)) for uid in pods}
    return found, places, set(groups.missing())


def holds_what_it_promises(groups: Groups, pods: dict[str, Pod]) -> None:
    taken: dict[tuple[str | None, Slot], str] = {}
    for uid, pod in pods.items():
        slot, where = groups.slot_of(uid), groups.group_of(uid)
        assert not (pod.over and slot)
        if slot is not None:
            assert where is not None and (where, slot) not in taken, "two pods in one slot"
            taken[where, slot] = uid
            assert groups.pod_at(where, slot) == pod


@settings(max_examples=400)
@given(changes=st.lists(a_change(), max_size=40), shuffled=st.randoms(use_true_random=False))
def test_change_by_change_is_all_at_once(changes: list[tuple[str, Any]], shuffled: Any) -> None:
    groups = Groups(shipped_kinds())
    pods: dict[str, Pod] = {}
    owners: dict[str, Anything] = {}
    before: dict[str, tuple[str | None, Slot]] = {}
    told: dict[str, Group | None] = {}
    for change in changes:
        feed(groups, change, pods, owners)
        holds_what_it_promises(groups, pods)
        for one in groups.take_changed():
            told[one] = groups.group(one)
        assert {one: found for one, found in told.items() if found} == seen(groups, pods)[0], "a change was not told"
        for uid, (where, had) in before.items():
            kept = change[0] != "pod" or change[1].metadata.uid != uid
            if kept and change[0] in ("pod", "pod gone") and uid in pods and groups.group_of(uid) == where:
                assert groups.slot_of(uid) == had, "a slot is kept while the pod lives"
        before = {uid: (groups.group_of(uid), slot) for uid in pods if (slot := groups.slot_of(uid))}
    all_pods, all_owners = list(pods.values()), list(owners.values())
    shuffled.shuffle(all_pods)
    shuffled.shuffle(all_owners)
    anew = Groups.of(shipped_kinds(), owners=all_owners, pods=all_pods, absent=groups.absent, remembered=groups.slots())
    assert seen(anew, pods) == seen(groups, pods)


@settings(max_examples=100)
@given(changes=st.lists(a_change(), max_size=40))
def test_nothing_is_left_when_all_is_gone(changes: list[tuple[str, Any]]) -> None:
    groups = Groups(shipped_kinds())
    pods: dict[str, Pod] = {}
    owners: dict[str, Anything] = {}
    for change in changes:
        feed(groups, change, pods, owners)
    for uid in list(pods):
        groups.pod_gone(uid)
    for uid in list(owners):
        groups.owner_gone(uid)
    left = [value for name, value in vars(groups).items() if name in EMPTY]
    assert not any(left), dict(zip(EMPTY, left, strict=True))


def calls_of_one_change(pods: int) -> int:
    """Calls of Python functions for a pod that goes and comes back, its gang read each time."""
    groups = Groups(shipped_kinds())
    job = a_thing("batch/v1 Job", "j", {"parallelism": pods, "completionMode": "Indexed"})
    groups.owner(job)
    several = [a_pod(f"n{i}", job, labels={COMPLETION_INDEX: str(i)}) for i in range(pods)]
    for pod in several:
        groups.pod(pod)
    groups.group("a/job/j")
    counted = [0]

    def count(_: object, event: str, __: object) -> None:
        counted[0] += event == "call"

    sys.setprofile(count)
    try:
        groups.pod_gone(several[pods // 2].metadata.uid)
        groups.group("a/job/j")
        groups.pod(several[pods // 2])
        groups.group("a/job/j")
    finally:
        sys.setprofile(None)
    return counted[0]


def test_a_change_costs_the_same_in_a_large_gang() -> None:
    assert calls_of_one_change(5_000) < 1.2 * calls_of_one_change(50)
