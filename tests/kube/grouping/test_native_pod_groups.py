"""The native PodGroup of 1.36, an alpha, on a server that has it switched on: its pods are a gang of our brain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.controlplane import ControlPlane, missing_toolchain
from optimus.model.workloads import Topology
from tests.kube.body.clusters import Stand, until
from tests.kube.grouping.conftest import NewCluster

MORE_GATES = "--feature-gates=TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"
POD_GROUP = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: %s, labels: {optimus.dev/queue: vision}}
spec: {schedulingPolicy: %s}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {schedulerName: optimus, schedulingGroup: {podGroupName: train}, containers: [{name: m, image: none}]}
"""
GANG_OF_2, BASIC = "{gang: {minCount: 2}}", "{basic: {}}"
HERE = "/apis/scheduling.k8s.io/v1alpha2/namespaces"


@pytest.fixture(scope="module")
def alpha_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if why := missing_toolchain():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("alpha")
    flags = (MORE_GATES,)
    with ControlPlane(folder, controllers=True, kwok=True, gang_api=True, api_server_flags=flags) as started:
        yield started


@pytest.fixture
def stand(alpha_plane: ControlPlane, namespace_name: str) -> Iterator[Stand]:
    made = Stand(alpha_plane, namespace_name[-40:].strip("-"))
    yield made
    made.stop()


# -- who belongs together ----------------------------------------------------------------------------------------------


def test_pods_of_a_native_pod_group_are_a_gang_of_its_least_number(
    alpha_plane: ControlPlane, new_cluster: NewCluster
) -> None:
    cluster = new_cluster(alpha_plane)
    cluster.apply(POD_GROUP % ("train", GANG_OF_2))
    cluster.apply(POD % "a")
    cluster.look()
    group = cluster.group("podgroup/train")
    assert (group.kind, group.queue) == ("scheduling.k8s.io/PodGroup", "vision")
    assert group.incomplete == "1 of 2 pods are there"
    cluster.apply(POD % "b")
    cluster.apply(POD % "c")
    cluster.look()
    assert cluster.group("podgroup/train").incomplete == ""
    assert cluster.roles("podgroup/train") == {"pod": (2, 3)}
    assert cluster.slots("podgroup/train") == {"a": "pod-0", "b": "pod-1", "c": "pod-2"}


def test_the_basic_policy_is_no_gang(alpha_plane: ControlPlane, new_cluster: NewCluster) -> None:
    cluster = new_cluster(alpha_plane)
    cluster.apply(POD_GROUP % ("train", BASIC))
    cluster.apply(POD % "a")
    cluster.apply(POD % "b")
    cluster.look()
    assert not cluster.has("podgroup/train")
    for name in "ab":
        group = cluster.group(f"pod/{name}")
        assert (group.queue, group.incomplete, group.unsupported) == ("vision", "", "")


def test_it_may_name_a_priority_a_level_and_that_it_is_stopped_as_a_whole(
    alpha_plane: ControlPlane, new_cluster: NewCluster
) -> None:
    cluster = new_cluster(alpha_plane)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    cluster.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    more = "priorityClassName: high, disruptionMode: PodGroup, schedulingConstraints: {topology: [{key: rack}]}"
    cluster.apply((POD_GROUP % ("train", GANG_OF_2)).replace("spec: {", f"spec: {{{more}, "))
    cluster.apply(POD % "a")
    cluster.look()
    group = cluster.group("podgroup/train")
    assert (group.priority, group.topology) == (7, Topology(required="rack"))
    assert group.fragile_why == "its PodGroup is stopped as a whole"


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  parallelism: 3
  template:
    spec:
      schedulerName: optimus
      restartPolicy: Never
      schedulingGroup: {podGroupName: train}
      containers: [{name: m, image: none}]
"""


def test_pods_of_a_job_wait_for_the_pod_group_that_they_name(
    alpha_plane: ControlPlane, new_cluster: NewCluster
) -> None:
    """Without it, workers that come one by one; with it, two at least. Of two jobs nobody could keep it."""
    cluster = new_cluster(alpha_plane)
    cluster.apply(JOB % "one")
    cluster.until(lambda: len(cluster.slots("job/one")) == 3)
    assert cluster.group("job/one").incomplete == "PodGroup train does not exist"
    cluster.apply(POD_GROUP % ("train", GANG_OF_2))
    cluster.look()
    assert cluster.group("job/one").incomplete == ""
    assert cluster.roles("job/one") == {"worker": (2, 3)}
    assert cluster.group("job/one").queue == "vision"
    cluster.apply(JOB % "two")
    cluster.until(lambda: len(cluster.slots("job/two")) == 3)
    assert cluster.group("job/one").unsupported == "PodGroup train together with job/two"
    assert cluster.group("job/two").unsupported == "PodGroup train together with job/one"


# -- a controller of ours on such a server -----------------------------------------------------------------------------


def pods(stand: Stand, group: str, *names: str, gpus: int = 1) -> None:
    for name in names:
        made = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": stand.namespace},
            "spec": {
                "schedulerName": stand.scheduler,
                "schedulingGroup": {"podGroupName": group},
                "containers": [
                    {"name": "m", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}},
                ],
            },
        }
        stand.apply(json.dumps(made))


def pod_group(stand: Stand, name: str, policy: dict[str, Any]) -> None:
    meta = {"name": name, "namespace": stand.namespace}
    spec = {"schedulingPolicy": policy}
    stand.apply(
        json.dumps({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec})
    )


def scheduled(stand: Stand, name: str) -> tuple[str, str, str]:
    found = json.loads(stand.plane.get(f"{HERE}/{stand.namespace}/podgroups/{name}"))
    told = [one for one in found.get("status", {}).get("conditions", ()) if one["type"] == "PodGroupScheduled"]
    return (told[0]["status"], told[0]["reason"], told[0]["message"]) if told else ("", "", "")


def test_a_gang_is_bound_together_and_its_pod_group_says_so(stand: Stand) -> None:
    stand.nodes(1, gpus=4)
    stand.start()
    pod_group(stand, "train", {"gang": {"minCount": 3}})
    pods(stand, "train", "train-0", "train-1")
    until(lambda: "2 of 3 pods are there" in stand.condition("train-0"), "two of three wait for the third")
    until(lambda: scheduled(stand, "train")[:2] == ("False", "Unschedulable"), "the group says so, too")
    assert "NotReady" in scheduled(stand, "train")[2]
    assert stand.bound() == []
    pods(stand, "train", "train-2")
    until(lambda: len(stand.bound("train")) == 3, "all three are bound")
    until(lambda: scheduled(stand, "train")[:2] == ("True", "Scheduled"), "the group is scheduled")
    pod_group(stand, "large", {"gang": {"minCount": 2}})
    pods(stand, "large", "large-0", "large-1")
    until(lambda: stand.condition("large-0") != "", "one GPU is left: a gang of two waits")
    assert stand.bound("large") == []
    pod_group(stand, "loose", {"basic": {}})
    pods(stand, "loose", "loose-0", "loose-1")
    until(lambda: len(stand.bound("loose")) == 1, "where nobody asks for a gang, one starts alone")
    assert stand.bound("large") == [] and stand.over_committed() == {}
    assert scheduled(stand, "train")[0] == "True", "what was scheduled stays so"


def test_a_pod_whose_pod_group_is_not_there_waits_for_it(stand: Stand) -> None:
    stand.nodes(1, gpus=4)
    stand.start()
    pods(stand, "late", "late-0")
    until(lambda: "PodGroup late does not exist" in stand.condition("late-0"), "it is told")
    pod_group(stand, "late", {"gang": {"minCount": 1}})
    until(lambda: len(stand.bound("late")) == 1, "then it starts")


def test_jobs_get_pod_groups_by_themselves_and_run_as_one_gang(stand: Stand) -> None:
    """Kubernetes creates a PodGroup for an indexed Job whose pods all run at once."""
    stand.nodes(1, gpus=4)
    stand.start()
    template = {
        "schedulerName": stand.scheduler,
        "restartPolicy": "Never",
        "containers": [{"name": "m", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    }
    spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": {"spec": template}}
    meta = {"name": "indexed", "namespace": stand.namespace}
    stand.apply(json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}))
    until(lambda: len(stand.bound("indexed")) == 3, "all three are bound")
    made = json.loads(stand.plane.get(f"{HERE}/{stand.namespace}/podgroups"))["items"]
    (group,) = [one["metadata"]["name"] for one in made]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in stand.bound()} == {group}
    until(lambda: scheduled(stand, group)[0] == "True", "its PodGroup is scheduled")
    assert ("indexed", "Scheduled") in {(name, why) for name, why, _ in stand.events()}
