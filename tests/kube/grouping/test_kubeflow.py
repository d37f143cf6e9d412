"""Jobs of Kubeflow under the real operators: training-operator 1.8, mpi-operator 0.6, trainer 2.0."""

from __future__ import annotations

from typing import Any
from urllib.error import HTTPError

import pytest
import yaml

from hack.controlplane import ControlPlane
from optimus.drivers.kube.grouping import start_patch, stop_patch
from optimus.drivers.kube.grouping.kinds import StopHow
from tests.kube.body.clusters import until
from tests.kube.grouping.cluster import Cluster
from tests.kube.grouping.conftest import NewCluster

KINDS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch", {"Master": 1, "Worker": 2}),
    "TFJob": ("tfReplicaSpecs", "tensorflow", {"Chief": 1, "PS": 1, "Worker": 2}),
    "MPIJob": ("mpiReplicaSpecs", "mpi", {"Launcher": 1, "Worker": 2}),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 2}),
    "PaddleJob": ("paddleReplicaSpecs", "paddle", {"Master": 1, "Worker": 2}),
}


def a_job(kind: str, *, suspend: bool = False, version: str = "v1", **more: Any) -> dict[str, Any]:
    """As people write it; `schedulerName` is what an opted-in namespace sets."""
    field, container, replicas = KINDS[kind]
    main = {"name": container, "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"spec": {"schedulerName": "optimus", "containers": [main]}}
    specs = {
        role: {"replicas": count, "restartPolicy": "OnFailure", "template": template}
        for role, count in replicas.items()
    }
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": "train", "labels": {"optimus.dev/queue": "vision"}},
        "spec": {"runPolicy": {"suspend": suspend}, field: specs, **more},
    }


def expected_slots(kind: str) -> list[str]:
    return sorted(f"{role.lower()}-{i}" for role, count in KINDS[kind][2].items() for i in range(count))


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_job_is_a_gang_with_its_replica_types_as_roles(training: Cluster, kind: str) -> None:
    what = f"{kind.lower()}/train"
    training.apply(yaml.safe_dump(a_job(kind)))
    training.until(lambda: sorted(training.slots(what).values()) == expected_slots(kind), bind=True)
    group = training.group(what)
    assert training.roles(what) == {role.lower(): (count, count) for role, count in KINDS[kind][2].items()}
    assert (group.kind, group.queue, group.stop.how) == (f"kubeflow.org/{kind}", "vision", StopHow.SUSPEND)
    by_name = training.slots(what)
    assert by_name["train-worker-1"] == "worker-1", by_name

    if kind != "PyTorchJob":
        return  # one operator makes all of them: that a pod comes back is shown once, as it may take minutes
    before = training.pod("train-worker-1").metadata.uid
    training.delete_pod("train-worker-1")
    training.until(
        lambda: "train-worker-1" in training.slots(what) and training.pod("train-worker-1").metadata.uid != before,
        bind=True,
    )
    assert training.slots(what)["train-worker-1"] == "worker-1", "the next one takes its place"


@pytest.mark.parametrize("kind", KINDS)
def test_a_suspended_training_job_is_queued_and_started_by_its_own_field(training: Cluster, kind: str) -> None:
    what = f"{kind.lower()}/train"
    training.apply(yaml.safe_dump(a_job(kind, suspend=True)))
    training.look()
    group = training.group(what)
    assert group.suspended and group.admit and not training.pods
    assert {role.name: role.count for role in group.roles} == {n.lower(): c for n, c in KINDS[kind][2].items()}
    for role in group.roles:
        assert role.template is not None and role.template.containers[0].resources is not None
        assert role.template.containers[0].resources.limits == {"nvidia.com/gpu": 1}
    patch = start_patch(group)
    assert patch is not None
    training.patch(patch)
    training.until(lambda: sorted(training.slots(what).values()) == expected_slots(kind), bind=True)

    stop = stop_patch(training.group(what))
    assert stop is not None
    training.patch(stop)
    training.until(lambda: not training.pods)
    group = training.group(what)
    assert group.suspended and group.admit and not group.over, "stopped by us, it waits for us"


def test_an_elastic_training_job_starts_with_its_least(training: Cluster) -> None:
    elastic: dict[str, Any] = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 6, "rdzvBackend": "c10d"}}
    job = a_job("PyTorchJob", **elastic)
    del job["spec"]["pytorchReplicaSpecs"]["Master"]
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 4
    training.apply(yaml.safe_dump(job))
    training.until(lambda: len(training.slots("pytorchjob/train")) == 4)
    [role] = training.group("pytorchjob/train").roles
    assert (role.name, role.min, role.count, role.max) == ("worker", 1, 4, 6)
    path = training.path("kubeflow.org/v1", "PyTorchJob", training.namespace) + "/train"
    training.change(path, {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}})
    training.until(lambda: sorted(training.slots("pytorchjob/train").values()) == ["worker-0", "worker-1"])
    assert training.group("pytorchjob/train").roles[0].count == 2


def test_a_training_job_that_has_ended_says_so(training: Cluster) -> None:
    training.apply(yaml.safe_dump(a_job("PyTorchJob")))
    running = lambda: [pod.status.phase for pod in training.pods.values()] == ["Running"] * 3  # noqa: E731
    training.until(running, bind=True)
    training.end_pod("train-worker-0")
    training.until(lambda: [one.ended for one in training.group("pytorchjob/train").roles] == [0, 1])
    training.end_pod("train-master-0")
    training.until(lambda: training.group("pytorchjob/train").over)


def test_a_training_job_that_no_lost_worker_would_survive_says_so(training: Cluster) -> None:
    job = a_job("PyTorchJob")
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "Never"
    training.apply(yaml.safe_dump(job))
    running = lambda: [pod.status.phase for pod in training.pods.values()] == ["Running"] * 3  # noqa: E731
    training.until(running, bind=True)
    group = training.group("pytorchjob/train")
    assert "restartPolicy is Never" in group.fragile_why and not group.over
    training.end_pod("train-worker-0", "Failed")
    training.until(lambda: training.group("pytorchjob/train").over)


def test_the_mpi_job_of_the_mpi_operator_has_its_launcher_behind_a_job(
    mpi_plane: ControlPlane, mpi_node: None, new_cluster: NewCluster
) -> None:
    mpi = new_cluster(mpi_plane)
    mpi.apply(yaml.safe_dump(a_job("MPIJob", version="v2beta1")))
    mpi.until(lambda: len(mpi.slots("mpijob/train")) == 3, bind=True)
    assert mpi.roles("mpijob/train") == {"launcher": (1, 1), "worker": (2, 2)}
    assert sorted(mpi.slots("mpijob/train").values()) == ["launcher-0", "worker-0", "worker-1"]
    assert len(mpi.groups.ids()) == 1, "the job of the launcher is no gang of its own"


def test_a_train_job_has_the_roles_of_the_job_set_that_it_creates(trainer: Cluster) -> None:
    until(lambda: _taken(trainer, TRAIN_JOB), "the trainer has heard of its own runtimes")
    trainer.until(lambda: len(trainer.slots("trainjob/train")) == 2, bind=True)
    group = trainer.group("trainjob/train")
    assert (group.kind, group.queue) == ("trainer.kubeflow.org/TrainJob", "vision")
    assert trainer.roles("trainjob/train") == {"node": (2, 2)}
    assert sorted(trainer.slots("trainjob/train").values()) == ["node-0", "node-1"]
    assert len(trainer.groups.ids()) == 1


def test_a_suspended_train_job_is_queued_and_started_by_its_own_field(trainer: Cluster) -> None:
    trainer.apply(TRAIN_JOB + "  suspend: true\n")
    trainer.until(lambda: trainer.show_all("jobset.x-k8s.io/v1alpha2", "JobSet") == 1)
    group = trainer.group("trainjob/train")
    assert group.suspended and group.admit and not trainer.pods
    assert trainer.roles("trainjob/train") == {"node": (2, 2)}
    patch = start_patch(group)
    assert patch is not None
    trainer.patch(patch)
    trainer.until(lambda: len(trainer.slots("trainjob/train")) == 2, bind=True)


def _taken(trainer: Cluster, text: str) -> bool:
    """Its webhook refuses runtimes that were installed just now."""
    try:
        trainer.apply(text)
    except HTTPError as error:
        if error.code != 403 or "not found" not in str(error.msg):
            raise
        return False
    return True


TRAIN_JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train, labels: {optimus.dev/queue: vision}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, image: none, command: [python, train.py], resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
"""
