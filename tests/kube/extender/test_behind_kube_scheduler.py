"""The stock kube-scheduler binds, the brain decides: with the example configuration, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.processes import free_ports
from optimus.drivers.kube.extender.offers import OFFERED
from tests.kube.body.clusters import Stand, until

EXAMPLE = Path(__file__).parents[3] / "examples" / "15-kubernetes-extender" / "kube-scheduler.yaml"


@pytest.fixture
def stand(plane: ControlPlane, namespace_name: str) -> Iterator[Stand]:
    """With kube-scheduler beside a controller that it asks."""
    made = Stand(plane, namespace_name[:40].strip("-"))
    [port] = free_ports(1)
    made.start(f"--extender=127.0.0.1:{port}", "--lease-seconds=3")
    scheduler = plane.start_scheduler(_configured(made, port))
    yield made
    scheduler.stop()
    made.stop()


def _configured(stand: Stand, port: int, **more: Any) -> str:
    """The example, for the scheduler of this story alone: others of the same plane are left alone."""
    config: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    [profile] = config["profiles"]
    assert profile["schedulerName"] == "optimus"
    config["profiles"] = [{**profile, "schedulerName": stand.scheduler, **more}]
    config["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}"
    return yaml.safe_dump({name: config[name] for name in ("profiles", "extenders")})


def _told(stand: Stand, gang: str) -> list[str]:
    """What the condition of its pods says, whoever wrote it last."""
    return [
        condition.get("message", "")
        for pod in stand.pods()
        if pod["metadata"]["name"].startswith(f"{gang}-")
        for condition in pod["status"].get("conditions") or []
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]


def test_a_gang_goes_where_it_is_held_and_one_that_does_not_fit_is_told_why_and_starts_when_it_does(
    stand: Stand,
) -> None:
    stand.nodes(2, gpus=4)
    stand.gang("fits", 4)
    until(lambda: len(stand.bound("fits")) == 4, "the gang is bound")
    assert len({pod["spec"]["nodeName"] for pod in stand.bound("fits")}) == 1  # as the brain packs, not as it spreads
    assert all(pod["metadata"]["annotations"][OFFERED] == pod["spec"]["nodeName"] for pod in stand.bound("fits"))
    stand.gang("large", 6)
    until(
        lambda: sum("NoRoom" in text for text in _told(stand, "large")) == 6, "all of its pods are told why they wait"
    )
    assert not stand.bound("large")
    stand.delete_gang("fits")
    until(lambda: len(stand.bound("large")) == 6, "the gang is bound once there is room")
    assert not stand.over_committed()


def test_two_gangs_that_fit_only_one_at_a_time_never_share_what_there_is(stand: Stand) -> None:
    stand.nodes(2, gpus=4)
    stand.gang("a", 5)
    stand.gang("b", 5)
    until(lambda: len(stand.bound()) >= 5, "one of them is bound")
    counts = sorted(len(stand.bound(name)) for name in ("a", "b"))
    assert counts == [0, 5]
    assert not stand.over_committed()


def test_a_node_that_kube_scheduler_does_not_want_is_not_offered_again_beside_another(
    plane: ControlPlane, namespace_name: str
) -> None:
    """A rule of its own configuration: nobody but it knows of it."""
    made = Stand(plane, namespace_name[:40].strip("-"))
    first, second = made.nodes(2, gpus=4)
    [port] = free_ports(1)
    made.start(f"--extender=127.0.0.1:{port}", "--lease-seconds=3")
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [first]}]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    wants = {"name": "NodeAffinity", "args": {"addedAffinity": added}}
    scheduler = plane.start_scheduler(_configured(made, port, pluginConfig=[wants]))
    try:
        made.gang("train", 2)
        until(lambda: len(made.bound("train")) == 2, "the gang is bound")
        assert {pod["spec"]["nodeName"] for pod in made.bound("train")} == {second}
    finally:
        scheduler.stop()
        made.stop()


def test_a_member_without_a_gpu_waits_with_its_gang(stand: Stand) -> None:
    """The launcher of an MPIJob, the head of a RayCluster: bound alone it would hold on to nothing but a promise."""
    stand.nodes(1, gpus=4)
    stand.gang("fills", 2)
    until(lambda: len(stand.bound("fills")) == 2, "half of the node is taken")
    launcher = {"annotations": {"optimus.dev/min-members": "5"}, "name": "mpi-launcher"}
    stand.gang("mpi", 4, least=5)
    stand.apply(_without_gpu(stand, "mpi", launcher))
    until(lambda: sum("NoRoom" in text for text in _told(stand, "mpi")) == 5, "all five are told why they wait")
    assert stand.bound("mpi") == [], "the launcher, too, though there is room for it"
    stand.delete_gang("fills")
    until(lambda: len(stand.bound("mpi")) == 5, "all five are bound once there is room")


def _without_gpu(stand: Stand, gang: str, meta: dict[str, Any]) -> str:
    labels = {"optimus.dev/group": gang, "optimus.dev/role": "launcher"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    made = {"metadata": {**meta, "namespace": stand.namespace, "labels": labels}}
    spec = {"schedulerName": stand.scheduler, "nodeName": None, "containers": [container]}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **made, "spec": spec})


def test_pods_of_the_clusters_own_scheduler_go_on_when_optimus_is_dead(stand: Stand) -> None:
    [node] = stand.nodes(1, gpus=4)
    theirs = f"other-{stand.namespace}"
    own = stand.plane.start_scheduler(yaml.safe_dump({"profiles": [{"schedulerName": theirs}]}), "own-scheduler")
    try:
        [controller] = stand.controllers
        controller.kill()
        controller.wait()
        stand.gang("ours", 1)
        ours, stand.scheduler = stand.scheduler, theirs
        stand.gang("plain", 2)
        until(lambda: len(stand.bound("plain")) == 2, "pods with GPUs of the cluster's own scheduler are bound")
        assert {pod["spec"]["nodeName"] for pod in stand.bound("plain")} == {node}
        assert all(OFFERED not in (pod["metadata"].get("annotations") or {}) for pod in stand.bound("plain"))
        until(lambda: any("127.0.0.1" in text for text in _told(stand, "ours")), "ours wait, and say for whom")
        assert stand.bound("ours") == []
        stand.scheduler = ours
        stand.start(f"--extender=127.0.0.1:{_port(stand)}", "--lease-seconds=3")
        until(lambda: len(stand.bound("ours")) == 1, "and start when it is back")
    finally:
        own.stop()


def _port(stand: Stand) -> int:
    """Where kube-scheduler asks."""
    config = yaml.safe_load((stand.plane.folder / "scheduler.yaml").read_text())
    return int(config["extenders"][0]["urlPrefix"].rpartition(":")[2])
