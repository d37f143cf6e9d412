"""Namespaces that opt in: manifests stay as they are, and the server itself names the scheduler."""

from __future__ import annotations

import time

import pytest
import yaml

from hack.controlplane import ControlPlane
from optimus.drivers.kube.grouping.overrides import SCHEDULER
from optimus.drivers.kube.opting_in import opting_in
from tests.kube.grouping.cluster import PATIENCE_S, Cluster
from tests.kube.grouping.conftest import NewCluster

HOME = "opting-in-home"
POLICY = yaml.safe_dump_all(opting_in(name="optimus-scheduler", scheduler="optimus", home=HOME))
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


def test_what_must_come_up_without_us_is_left_alone_whatever_its_labels(cluster: Cluster, plane: ControlPlane) -> None:
    """The cluster itself, and the scheduler: one that is dead could not come back."""
    vital = [Cluster(plane, name) for name in ("kube-system", "kube-flannel", HOME)]
    labelled = {SCHEDULER: "enabled"}
    for one in vital[1:]:
        one.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one.namespace}}))
    for one in vital:
        one.change(f"/api/v1/namespaces/{one.namespace}", {"metadata": {"labels": labelled}})
    cluster.change(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": labelled}})
    wait_for_policy(cluster)  # it was labelled last: the server knows the others
    assert [scheduler(one, f"vital-{cluster.namespace}"[:60]) for one in vital] == ["default-scheduler"] * 3
    for one in vital:
        one.change(f"/api/v1/namespaces/{one.namespace}", {"metadata": {"labels": {SCHEDULER: None}}})


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
