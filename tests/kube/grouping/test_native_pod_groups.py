"""The native PodGroup of 1.36, an alpha, on a server that has it switched on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane, missing_toolchain
from tests.kube.grouping.conftest import NewCluster

POD_GROUP = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: train, labels: {optimus.dev/queue: vision}}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {schedulerName: optimus, schedulingGroup: {podGroupName: train}, containers: [{name: m, image: none}]}
"""


@pytest.fixture(scope="module")
def alpha_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if why := missing_toolchain():
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("alpha"), gang_api=True) as started:
        yield started


def test_pods_of_a_native_pod_group_are_a_gang_of_its_least_number(
    alpha_plane: ControlPlane, new_cluster: NewCluster
) -> None:
    cluster = new_cluster(alpha_plane)
    cluster.apply(POD_GROUP)
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
