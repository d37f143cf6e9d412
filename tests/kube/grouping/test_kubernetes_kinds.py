"""Jobs, Deployments and StatefulSets of the real controllers, applied as anybody writes them."""

from __future__ import annotations

import msgspec
import pytest

from optimus.drivers.kube.grouping import Slot, start_patch, stop_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.model.workloads import Preemptible, WorkloadClass
from tests.kube.grouping.cluster import Cluster

POD = """
      schedulerName: optimus
      restartPolicy: Never
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 2}}}]
"""
JOB = (
    """
apiVersion: batch/v1
kind: Job
metadata: {name: train, labels: {optimus.dev/queue: vision}}
spec:
  parallelism: 3
  completions: 3
  completionMode: %s
  suspend: %s
  backoffLimit: 0
  template:
    spec:"""
    + POD
)


BARE = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: %s}
spec: {schedulerName: optimus, containers: [{name: m, image: none}]}
"""


def test_an_indexed_job_is_a_gang_and_its_indices_are_its_slots(cluster: Cluster) -> None:
    cluster.apply(JOB % ("Indexed", "false"))
    cluster.until(lambda: len(cluster.pods) == 3)
    group = cluster.group("job/train")
    assert (group.kind, group.queue, group.workload_class) == ("batch/Job", "vision", WorkloadClass.UNATTENDED)
    assert cluster.roles("job/train") == {"worker": (3, 3)}
    assert group.stop.how is StopHow.SUSPEND and group.scheduler_name == "optimus"
    names = {name.rpartition("-")[0]: slot for name, slot in cluster.slots("job/train").items()}
    assert names == {"train-0": "worker-0", "train-1": "worker-1", "train-2": "worker-2"}


def test_what_has_ended_well_holds_no_slot_and_is_not_waited_for(cluster: Cluster) -> None:
    cluster.apply(JOB % ("Indexed", "false"))
    cluster.until(lambda: len(cluster.pods) == 3 and all(p.spec.node_name for p in cluster.pods.values()), bind=True)
    first = min(pod.metadata.name for pod in cluster.pods.values())
    cluster.end_pod(first)
    cluster.until(lambda: cluster.group("job/train").roles[0].ended == 1)
    role = cluster.group("job/train").roles[0]
    assert (role.min, role.needed, role.pods) == (3, 2, 2)
    assert sorted(cluster.slots("job/train").values()) == ["worker-1", "worker-2"]
    for pod in list(cluster.pods.values()):
        if not pod.over:
            cluster.end_pod(pod.metadata.name)
    cluster.until(lambda: cluster.group("job/train").over)


def test_a_job_without_indices_takes_its_pods_one_by_one(cluster: Cluster) -> None:
    cluster.apply((JOB % ("NonIndexed", "false")).replace("completions: 3", "completions: 5"))
    cluster.until(lambda: len(cluster.slots("job/train")) == 3, bind=True)
    assert cluster.roles("job/train") == {"worker": (1, 3)}
    assert cluster.group("job/train").roles[0].total == 5
    gone = next(name for name, slot in cluster.slots("job/train").items() if slot == "worker-1")
    cluster.end_pod(gone)
    cluster.until(lambda: len(cluster.slots("job/train")) == 3 and gone not in cluster.slots("job/train"), bind=True)
    assert sorted(cluster.slots("job/train").values()) == ["worker-0", "worker-1", "worker-2"], "the free one is taken"


def test_a_lost_pod_of_an_indexed_job_comes_back_to_its_slot(cluster: Cluster) -> None:
    cluster.apply((JOB % ("Indexed", "false")).replace("backoffLimit: 0", "backoffLimit: 3"))
    cluster.until(lambda: len(cluster.slots("job/train")) == 3)
    lost = next(name for name, slot in cluster.slots("job/train").items() if slot == "worker-1")
    cluster.delete_pod(lost)
    cluster.until(lambda: len(cluster.slots("job/train")) == 3 and lost not in cluster.slots("job/train"))
    assert sorted(cluster.slots("job/train").values()) == ["worker-0", "worker-1", "worker-2"]


def test_a_suspended_job_is_queued_before_it_has_pods_and_starts_as_it_is_written(cluster: Cluster) -> None:
    cluster.apply(JOB % ("Indexed", "true"))
    cluster.look()
    group = cluster.group("job/train")
    assert not cluster.pods and group.suspended and group.admit
    assert cluster.roles("job/train") == {"worker": (3, 3)}
    template = group.roles[0].template
    assert template is not None and template.containers[0].resources is not None
    assert template.containers[0].resources.limits == {"nvidia.com/gpu": "2"}
    patch = start_patch(group)
    assert patch is not None
    cluster.patch(patch)
    cluster.until(lambda: len(cluster.slots("job/train")) == 3)
    assert not cluster.group("job/train").suspended
    assert {bool(pod.spec.node_selector) for pod in cluster.pods.values()} == {False}, "nothing is added"
    resources = next(iter(cluster.pods.values())).spec.containers[0].resources
    assert resources is not None and resources.limits == {"nvidia.com/gpu": "2"}


def test_suspending_stops_a_job_that_no_lost_pod_would_survive(cluster: Cluster) -> None:
    cluster.apply(JOB % ("Indexed", "false"))
    cluster.until(
        lambda: all(pod.status.phase == "Running" for pod in cluster.pods.values()) and len(cluster.pods) == 3,
        bind=True,
    )
    group = cluster.group("job/train")
    assert "backoffLimit is 0" in group.fragile_why and group.preemptible is Preemptible.DEFAULT
    patch = stop_patch(group)
    assert patch is not None and start_patch(group) is None
    cluster.patch(patch)
    cluster.until(lambda: not cluster.pods)
    group = cluster.group("job/train")
    assert group.suspended and group.admit and not group.over, "stopped by us, it waits for us"
    again = start_patch(group)
    assert again is not None
    cluster.patch(again)
    cluster.until(lambda: len(cluster.slots("job/train")) == 3)
    group = cluster.group("job/train")
    assert not group.over and not group.suspended


def test_a_job_that_its_user_suspends_is_left_alone(cluster: Cluster) -> None:
    cluster.apply((JOB % ("Indexed", "true")).replace(", labels: {optimus.dev/queue: vision}", ""))
    cluster.look()
    group = cluster.group("job/train")
    assert group.suspended and not group.admit


def test_a_patch_does_not_touch_another_object_of_the_same_name(cluster: Cluster) -> None:
    cluster.apply(JOB % ("Indexed", "true"))
    cluster.look()
    patch = start_patch(cluster.group("job/train"))
    assert patch is not None
    body = {**patch.body, "metadata": {**patch.body["metadata"], "uid": "of-an-older-one"}}
    with pytest.raises(Exception, match=r"409|422"):
        cluster.patch(msgspec.structs.replace(patch, body=body))


def test_pods_of_a_deployment_are_by_themselves(cluster: Cluster) -> None:
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {optimus.dev/queue: serving}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: optimus, containers: [{name: main, image: none}]}
"""
    [made] = cluster.apply(text)
    cluster.until(lambda: len(cluster.groups.ids()) == 2)
    for name in [pod.metadata.name for pod in cluster.pods.values()]:
        group = cluster.group(f"pod/{name}")
        assert (group.kind, group.queue, group.workload_class) == (
            "apps/Deployment",
            "serving",
            WorkloadClass.INFERENCE,
        )
        assert group.object is not None and group.object.uid == made["metadata"]["uid"]
        assert group.stop.how is StopHow.PODS and group.min_members == 1
    path = cluster.path("apps/v1", "Deployment", cluster.namespace) + "/web"
    cluster.change(path, {"spec": {"replicas": 3}})
    cluster.until(lambda: len(cluster.groups.ids()) == 3)
    cluster.change(path, {"spec": {"replicas": 0}})
    cluster.until(lambda: not cluster.groups.ids())


def test_a_pod_of_a_stateful_set_comes_back_as_the_same_workload(cluster: Cluster) -> None:
    text = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {schedulerName: optimus, containers: [{name: main, image: none}]}
"""
    cluster.apply(text)
    cluster.until(lambda: len(cluster.groups.ids()) == 2, bind=True)
    assert sorted(cluster.groups.ids()) == [f"{cluster.namespace}/pod/db-0", f"{cluster.namespace}/pod/db-1"]
    old = cluster.pod("db-0").metadata.uid
    cluster.delete_pod("db-0")
    cluster.until(lambda: cluster.has("pod/db-0") and cluster.pod("db-0").metadata.uid != old, bind=True)
    assert cluster.slot("db-0") == Slot("pod", 0)


def test_bare_pods_are_by_themselves_or_together_by_label(cluster: Cluster) -> None:
    together = '{optimus.dev/group: sweep, optimus.dev/min-members: "3"}'
    cluster.apply("\n---\n".join([BARE % ("one", "{}"), BARE % ("a", together), BARE % ("b", together)]))
    cluster.look()
    alone = cluster.group("pod/one")
    assert alone.stop.how is StopHow.NEVER and alone.preemptible is Preemptible.NO
    assert alone.not_preemptible_why == "nobody would create the pod again"
    assert cluster.group("group/sweep").incomplete == "2 of 3 pods are there"
    cluster.apply(BARE % ("c", together))
    cluster.look()
    assert cluster.group("group/sweep").incomplete == ""
    assert cluster.roles("group/sweep") == {"pod": (3, 3)}
    assert sorted(cluster.slots("group/sweep").values()) == ["pod-0", "pod-1", "pod-2"]
