"""What people say with labels and annotations, and who speaks first."""

from __future__ import annotations

from typing import Any

import pytest

from optimus.drivers.kube.grouping import Group, Groups, Slot, shipped_kinds, start_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.model.workloads import Preemptible, Topology, WorkloadClass
from tests.kube.grouping.making import a_pod, a_thing


def a_job(spec: dict[str, Any] | None = None, **more: Any) -> Group:
    groups = Groups(shipped_kinds())
    groups.owner(
        a_thing("batch/v1 Job", "train", {"parallelism": 4, "completionMode": "Indexed", **(spec or {})}, **more)
    )
    group = groups.group("a/job/train")
    assert group is not None
    return group


def test_everything_can_be_said() -> None:
    group = a_job(
        labels={"optimus.dev/queue": "vision", "optimus.dev/class": "interactive", "optimus.dev/min-members": "2"},
        annotations={
            "optimus.dev/priority": "-7",
            "optimus.dev/preemptible": "surplus",
            "optimus.dev/pools": "h100, a100",
            "optimus.dev/topology": "rack",
            "optimus.dev/preferred-topology": "host",
            "optimus.dev/checkpoint-grace": "90s",
            "optimus.dev/expected-duration": "2h30m",
        },
    )
    assert (group.queue, group.workload_class, group.priority) == ("vision", WorkloadClass.INTERACTIVE, -7)
    assert (group.preemptible, group.pools) == (Preemptible.SURPLUS, ("h100", "a100"))
    assert group.topology == Topology(required="rack", preferred="host")
    assert (group.checkpoint_grace_ms, group.expected_duration_ms) == (90_000, 9_000_000)
    assert (group.roles[0].min, group.roles[0].count, group.problems) == (2, 4, ())


def test_the_object_speaks_before_its_template_and_an_annotation_before_a_label() -> None:
    template = {"template": {"metadata": {"labels": {"optimus.dev/queue": "t", "optimus.dev/class": "inference"}}}}
    group = a_job(template, labels={"optimus.dev/queue": "l"}, annotations={"optimus.dev/queue": "a"})
    assert (group.queue, group.workload_class) == ("a", WorkloadClass.INFERENCE)
    assert a_job(template).queue == "t"


@pytest.mark.parametrize(
    ("word", "value", "told"),
    [
        ("class", "batch", "batch is none of interactive, unattended, inference"),
        ("priority", "high", "must be a whole number, not high"),
        ("min-members", "0", "must be at least 1, not 0"),
        ("preemptible", "maybe", "maybe is none of true, false"),
        ("checkpoint-grace", "soon", "duration"),
    ],
)
def test_what_cannot_be_read_is_told_and_left_out(word: str, value: str, told: str) -> None:
    group = a_job(annotations={f"optimus.dev/{word}": value})
    assert told in group.problems[0] and group.problems[0].startswith(f"optimus.dev/{word}: ")
    plain = a_job()
    assert (group.workload_class, group.priority, group.preemptible) == (
        plain.workload_class,
        plain.priority,
        plain.preemptible,
    )


def test_fewer_members_are_taken_from_the_last_roles_and_more_than_all_are_all() -> None:
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 4}}}
    for said, least in {"3": [1, 2], "1": [1, 0], "9": [1, 4]}.items():
        groups = Groups(shipped_kinds())
        groups.owner(a_thing("kubeflow.org/v1 PyTorchJob", "t", spec, labels={"optimus.dev/min-members": said}))
        group = groups.group("a/pytorchjob/t")
        assert group is not None and [role.min for role in group.roles] == least


def test_queues_of_others_are_not_taken_over() -> None:
    group = a_job({"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "theirs"})
    assert group.queue == "" and group.suspended and not group.admit


def test_suspended_work_that_is_held_stays_suspended() -> None:
    words = {"optimus.dev/queue": "vision"}
    assert a_job({"suspend": True}, labels=words).admit
    assert not a_job({"suspend": True}, labels=words, annotations={"optimus.dev/hold": "true"}).admit


def test_work_with_two_masters_is_not_started_by_us() -> None:
    both = {"kueue.x-k8s.io/queue-name": "theirs", "optimus.dev/queue": "ours"}
    group = a_job({"suspend": True}, labels=both)
    assert not group.admit and "Kueue starts it" in group.problems[0]


def test_who_says_that_it_may_be_preempted_accepts_that_its_pod_is_deleted() -> None:
    groups = Groups(shipped_kinds())
    groups.pod(a_pod("x", labels={"optimus.dev/preemptible": "true"}))
    group = groups.group("a/pod/x")
    assert group is not None and group.preemptible is Preemptible.YES and group.stop.how is StopHow.PODS


def test_priority_is_that_of_the_class_that_the_pod_names() -> None:
    groups = Groups(shipped_kinds())
    groups.pod(a_pod("x", spec={"priority": 500, "priorityClassName": "high"}))
    groups.pod(a_pod("y", spec={"priority": 0}))
    high, plain = groups.group("a/pod/x"), groups.group("a/pod/y")
    assert high is not None and plain is not None
    assert (high.priority, plain.priority) == (500, None)


def test_a_restart_finds_slots_that_are_written_on_pods() -> None:
    job = a_thing("batch/v1 Job", "j", {"parallelism": 3})
    pods = [a_pod(f"j-{i}", job, annotations={"optimus.dev/slot": f"worker-{2 - i}"}) for i in range(3)]
    groups = Groups.of(shipped_kinds(), owners=[job], pods=[*pods, a_pod("j-new", job)])
    assert [groups.slot_of(f"pod-a-j-{i}") for i in range(3)] == [Slot("worker", 2 - i) for i in range(3)]
    assert groups.slot_of("pod-a-j-new") == Slot("worker", 3)


def test_work_that_runs_is_not_started() -> None:
    assert start_patch(a_job()) is None


def test_a_job_and_a_training_job_of_the_same_name_are_two() -> None:
    groups = Groups(shipped_kinds())
    groups.owner(a_thing("batch/v1 Job", "train"))
    groups.owner(a_thing("kubeflow.org/v1 PyTorchJob", "train"))
    groups.owner(a_thing("batch.volcano.sh/v1alpha1 Job", "train", uid="other"))
    assert sorted(groups.ids()) == ["a/job.batch.volcano.sh/train", "a/job/train", "a/pytorchjob/train"]
