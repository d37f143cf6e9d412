"""Clusters of one story each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
import yaml

from hack.controlplane import ControlPlane
from tests.kube.grouping.cluster import NODE, Cluster

A_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NODE, "annotations": {"kwok.x-k8s.io/node": "fake"}},
    "spec": {"unschedulable": True},  # pods are bound to it by the stories themselves; other stories do without it
    "status": {"allocatable": {"cpu": "999", "memory": "999Gi", "pods": "999", "nvidia.com/gpu": "999"}},
}
NewCluster = Callable[[ControlPlane], Cluster]


@pytest.fixture
def namespace_name(request: pytest.FixtureRequest, namespace_name: str) -> str:
    """Also of this case alone, where a name had to be cut."""
    return f"{namespace_name[:50].strip('-')}-{hashlib.sha256(request.node.name.encode()).hexdigest()[:8]}"


@pytest.fixture
def new_cluster(namespace_name: str) -> NewCluster:
    def make(plane: ControlPlane) -> Cluster:
        cluster = Cluster(plane, namespace_name)
        named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_name}}
        cluster.apply(yaml.safe_dump(named))
        return cluster

    return make


@pytest.fixture
def cluster(plane: ControlPlane, new_cluster: NewCluster, fake_node: None) -> Cluster:
    """With the controllers of Kubernetes."""
    return new_cluster(plane)


@pytest.fixture(scope="session")
def fake_node(plane: ControlPlane) -> None:
    Cluster(plane, "").apply(yaml.safe_dump(A_NODE))


@pytest.fixture
def training(training_operator: None, cluster: Cluster) -> Cluster:
    """With Kubeflow's training-operator."""
    return cluster


@pytest.fixture
def job_sets(jobset_controller: None, cluster: Cluster) -> Cluster:
    """With the controller of JobSet."""
    return cluster


@pytest.fixture
def trainer(trainer_controller: None, cluster: Cluster) -> Cluster:
    """With Kubeflow's trainer (v2) and JobSet."""
    return cluster


@pytest.fixture(scope="session")
def mpi_node(mpi_plane: ControlPlane) -> None:
    Cluster(mpi_plane, "").apply(yaml.safe_dump(A_NODE))
