"""Gangs of every sort, as people write them: by the owners that make their pods, or as pods of their own.

    Job, suspended Job       the job controller of Kubernetes
    JobSet                   its real controller: a driver without a GPU, and workers in several jobs
    PyTorchJob, MPIJob       the real operators of Kubeflow; a launcher has no GPU either
    labelled pods, PodGroup  nobody makes their pods anew
    claims                   a Job of which each pod has a claim that waits for its first consumer

Whatever it is, its pods are named `NAME-…`, have the label `gang: NAME`, and number exactly as many as were asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


class Ask(Struct, frozen=True, kw_only=True):
    """What is written, and for whom."""

    name: str
    namespace: str
    scheduler: str
    pods: int
    gpus: int = 1
    queue: str = "default"
    priority: int = 0
    suspended: bool = False
    seconds: int = 0
    """After which its pods end well; 0: never."""

    def meta(self) -> Json:
        words = {"gang": self.name, "optimus.dev/queue": self.queue, "optimus.dev/priority": str(self.priority)}
        return {"name": self.name, "namespace": self.namespace, "labels": words}

    def template(self, *, gpus: int | None = None, container: str = "main", volumes: tuple[Json, ...] = ()) -> Json:
        limits = {GPU: str(self.gpus if gpus is None else gpus)} if gpus != 0 else {}
        notes = {"annotations": {"optimus.dev/seconds": str(self.seconds)}} if self.seconds else {}
        spec: Json = {
            "schedulerName": self.scheduler,
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"stand": self.namespace},
            "containers": [{"name": container, "image": "none", "resources": {"limits": limits}}],
        }
        if volumes:
            spec["volumes"] = list(volumes)
        return {"metadata": {"labels": {"gang": self.name}, **notes}, "spec": spec}


class Sort(Struct, frozen=True, kw_only=True):
    name: str
    write: Callable[[Ask], list[Json]]
    collection: str = ""
    """Where its owner is, below its namespace: `apis/batch/v1/{}/jobs`. Empty: nobody makes its pods anew."""
    suspend: tuple[str, ...] = ()
    """The field by which it is stopped."""
    over: tuple[str, str] = ("Complete", "Failed")
    """Conditions: well, and not."""

    def path(self, namespace: str, name: str) -> str:
        return f"/{self.collection.format(f'namespaces/{namespace}')}/{name}"

    def is_suspended(self, owner: Json) -> bool:
        found: Any = owner
        for key in self.suspend:
            found = found.get(key, {})
        return found is True


def _job(ask: Ask) -> list[Json]:
    spec = {**_parallel(ask.pods, ask.template()), "suspend": ask.suspended}
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": ask.meta(), "spec": spec}]


def _parallel(pods: int, template: Json) -> Json:
    """The spec of an indexed Job: all its pods at once, each made anew when it is lost."""
    template["spec"]["restartPolicy"] = "Never"
    return {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "template": template}


def _with_claims(ask: Ask) -> list[Json]:
    """A class of its own, with a volume for each pod, which all nodes can reach."""
    called = f"{ask.namespace}-{ask.name}"
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": called}}
    kind |= {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    volumes = [_volume(f"{called}-{number}", called) for number in range(ask.pods)]
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": called,
    }
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": asked}}}
    spec = {**_parallel(ask.pods, ask.template(volumes=(own,))), "suspend": ask.suspended}
    return [kind, *volumes, {"apiVersion": "batch/v1", "kind": "Job", "metadata": ask.meta(), "spec": spec}]


def _volume(name: str, kind: str) -> Json:
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": kind,
        "csi": {"driver": "disks.example", "volumeHandle": name},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _job_set(ask: Ask) -> list[Json]:
    """One driver; the workers in as many jobs as divide them."""
    workers = ask.pods - 1
    jobs = next(number for number in (3, 2, 1) if workers % number == 0)
    driver = {"name": "driver", "template": {"spec": _parallel(1, ask.template(gpus=0))}}
    rest = {"name": "workers", "replicas": jobs, "template": {"spec": _parallel(workers // jobs, ask.template())}}
    spec = {"suspend": ask.suspended, "failurePolicy": {"maxRestarts": 3}, "replicatedJobs": [driver, rest]}
    return [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": ask.meta(), "spec": spec}]


def _pytorch_job(ask: Ask) -> list[Json]:
    template = ask.template(container="pytorch")
    specs = {
        role: {"replicas": count, "restartPolicy": "OnFailure", "template": template}
        for role, count in (("Master", 1), ("Worker", ask.pods - 1))
    }
    spec = {"runPolicy": {"suspend": ask.suspended}, "pytorchReplicaSpecs": specs}
    return [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": ask.meta(), "spec": spec}]


def _mpi_job(ask: Ask) -> list[Json]:
    specs = {
        role: {"replicas": count, "template": ask.template(container="mpi", gpus=gpus)}
        for role, count, gpus in (("Launcher", 1, 0), ("Worker", ask.pods - 1, None))
    }
    spec = {"runPolicy": {"suspend": ask.suspended}, "mpiReplicaSpecs": specs}
    return [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": ask.meta(), "spec": spec}]


def _labelled_pods(ask: Ask) -> list[Json]:
    meta = ask.meta()
    meta["labels"] |= {"optimus.dev/group": ask.name, "optimus.dev/min-members": str(ask.pods)}
    return [_pod(ask, number, meta) for number in range(ask.pods)]


def _pod_group(ask: Ask) -> list[Json]:
    policy = {"gang": {"minCount": ask.pods}}
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": ask.meta()}
    pods = [_pod(ask, number, ask.meta()) for number in range(ask.pods)]
    for pod in pods:
        pod["spec"]["schedulingGroup"] = {"podGroupName": ask.name}
    return [{**group, "spec": {"schedulingPolicy": policy}}, *pods]


def _pod(ask: Ask, number: int, meta: Json) -> Json:
    template = ask.template()
    notes = {"annotations": template["metadata"].get("annotations", {})}
    named = {**meta, **notes, "name": f"{ask.name}-{number}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": template["spec"]}


_JOBS = "apis/batch/v1/{}/jobs"
_RUN_POLICY = ("spec", "runPolicy", "suspend")
JOB = Sort(name="Job", write=_job, collection=_JOBS, suspend=("spec", "suspend"))
CLAIMS = Sort(name="claims", write=_with_claims, collection=_JOBS, suspend=("spec", "suspend"))
JOB_SET = Sort(
    name="JobSet",
    write=_job_set,
    collection="apis/jobset.x-k8s.io/v1alpha2/{}/jobsets",
    suspend=("spec", "suspend"),
    over=("Completed", "Failed"),
)
PYTORCH_JOB = Sort(
    name="PyTorchJob",
    write=_pytorch_job,
    collection="apis/kubeflow.org/v1/{}/pytorchjobs",
    suspend=_RUN_POLICY,
    over=("Succeeded", "Failed"),
)
MPI_JOB = Sort(
    name="MPIJob",
    write=_mpi_job,
    collection="apis/kubeflow.org/v2beta1/{}/mpijobs",
    suspend=_RUN_POLICY,
    over=("Succeeded", "Failed"),
)
LABELLED_PODS = Sort(name="labelled pods", write=_labelled_pods)
POD_GROUP = Sort(name="PodGroup", write=_pod_group)
