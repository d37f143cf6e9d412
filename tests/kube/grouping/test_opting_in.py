"""Namespaces that opt in: manifests stay as they are, and the server itself names the scheduler."""

from __future__ import annotations

import time
from importlib.resources import files

import pytest
import yaml

from hack.controlplane import ControlPlane
from tests.kube.grouping.cluster import PATIENCE_S, Cluster
from tests.kube.grouping.conftest import NewCluster

POLICY = files("optimus.drivers.kube").joinpath("opting_in.yaml").read_text()
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: %s, ownerReferences: %s}
spec: {%scontainers: [{name: m, image: none}]}
"""
DAEMON = "[{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: none}]}
"""


@pytest.fixture
def opted_in(cluster: Cluster) -> Cluster:
    cluster.change(
        f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": {"optimus.dev/scheduler": "enabled"}}}
    )
    wait_for_policy(cluster)
    return cluster


@pytest.fixture(scope="session", autouse=True)
def policy(plane: ControlPlane) -> None:
    Cluster(plane, "").apply(POLICY)


def scheduler(cluster: Cluster, name: str, labels: str = "{}", owners: str = "[]", spec: str = "") -> str:
    [made] = cluster.apply(POD % (name, labels, owners, spec))
    return str(made["spec"]["schedulerName"])


def wait_for_policy(cluster: Cluster) -> None:
    """The server takes some seconds until a new policy and a new label of a namespace are in force."""
    end = time.monotonic() + PATIENCE_S
    for number in range(1000):
        if scheduler(cluster, f"try-{number}") == "optimus":
            return
        assert time.monotonic() < end, "the policy does not come into force"
        time.sleep(0.2)


def test_pods_of_an_opted_in_namespace_are_ours(opted_in: Cluster) -> None:
    opted_in.apply(DEPLOYMENT)
    opted_in.until(lambda: any(name.startswith("web") for name in names(opted_in)))
    [web] = [pod for pod in opted_in.pods.values() if pod.metadata.name.startswith("web")]
    assert web.spec.scheduler_name == "optimus"


def names(cluster: Cluster) -> list[str]:
    return [pod.metadata.name for pod in cluster.pods.values()]


def test_some_pods_are_left_alone(opted_in: Cluster) -> None:
    assert scheduler(opted_in, "other", spec="schedulerName: theirs, ") == "theirs"
    assert scheduler(opted_in, "daemon", owners=DAEMON) == "default-scheduler"
    assert scheduler(opted_in, "out", labels="{optimus.dev/scheduler: disabled}") == "default-scheduler"
    assert scheduler(opted_in, "bound", spec="nodeName: grouping-node, ") == "default-scheduler"
    assert scheduler(opted_in, "labelled", labels="{a: b}") == "optimus"


def test_other_namespaces_are_left_alone(opted_in: Cluster, new_cluster: NewCluster, plane: ControlPlane) -> None:
    elsewhere = Cluster(plane, f"{opted_in.namespace}-x")
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere.namespace}}
    elsewhere.apply(yaml.safe_dump(named))
    assert scheduler(elsewhere, "pod") == "default-scheduler"
