"""Job sets under the real controller, with its webhooks."""

from __future__ import annotations

from optimus.drivers.kube.grouping import start_patch, stop_patch
from tests.kube.grouping.cluster import Cluster

JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, labels: {optimus.dev/queue: vision}}
spec:
  suspend: %s
  failurePolicy: {maxRestarts: 3}
  replicatedJobs:
    - name: driver
      template:
        spec:
          template: {spec: {schedulerName: optimus, restartPolicy: Never, containers: [{name: main, image: none}]}}
    - name: workers
      replicas: 2
      template:
        spec:
          backoffLimit: 0
          parallelism: 2
          completions: 2
          template:
            spec:
              schedulerName: optimus
              restartPolicy: Never
              containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
"""
SLOTS = ["driver-0", "workers-0", "workers-1", "workers-2", "workers-3"]


def test_a_job_set_is_one_gang_and_ordinals_count_through_its_jobs(job_sets: Cluster) -> None:
    job_sets.apply(JOB_SET % "false")
    job_sets.until(lambda: sorted(job_sets.slots("jobset/train").values()) == SLOTS, bind=True)
    assert job_sets.roles("jobset/train") == {"driver": (1, 1), "workers": (4, 4)}
    assert [role.per_copy for role in job_sets.group("jobset/train").roles] == [1, 2]
    by_job = {name.rpartition("-")[0]: slot for name, slot in job_sets.slots("jobset/train").items()}
    assert by_job["train-workers-1-0"] == "workers-2" and by_job["train-workers-0-1"] == "workers-1"
    assert len(job_sets.groups.ids()) == 1, "its jobs are no gangs of their own"


def test_a_suspended_job_set_is_queued_started_and_stopped_by_its_own_field(job_sets: Cluster) -> None:
    job_sets.apply(JOB_SET % "true")
    job_sets.look()
    group = job_sets.group("jobset/train")
    assert group.suspended and group.admit and not job_sets.pods
    template = group.roles[1].template
    assert template is not None and template.containers[0].resources is not None
    assert template.containers[0].resources.limits == {"nvidia.com/gpu": "4"}
    patch = start_patch(group)
    assert patch is not None
    job_sets.patch(patch)
    job_sets.until(lambda: sorted(job_sets.slots("jobset/train").values()) == SLOTS, bind=True)
    stop = stop_patch(job_sets.group("jobset/train"))
    assert stop is not None
    job_sets.patch(stop)
    job_sets.until(lambda: not job_sets.pods)
    group = job_sets.group("jobset/train")
    assert group.suspended and group.admit and not group.over


def test_a_job_set_that_starts_again_after_a_failure_finds_its_slots(job_sets: Cluster) -> None:
    job_sets.apply(JOB_SET % "false")
    running = lambda: len(job_sets.pods) == 5 and all(p.status.phase == "Running" for p in job_sets.pods.values())  # noqa: E731
    job_sets.until(running, bind=True)
    before = set(job_sets.pods)
    victim = next(pod.metadata.name for pod in job_sets.pods.values() if "workers-0-0" in pod.metadata.name)
    job_sets.end_pod(victim, "Failed")
    job_sets.until(
        lambda: not before & set(job_sets.pods) and sorted(job_sets.slots("jobset/train").values()) == SLOTS, bind=True
    )


def test_a_job_set_that_has_ended_says_so(job_sets: Cluster) -> None:
    job_sets.apply(JOB_SET % "false")
    running = lambda: len(job_sets.pods) == 5 and all(p.status.phase == "Running" for p in job_sets.pods.values())  # noqa: E731
    job_sets.until(running, bind=True)
    for pod in list(job_sets.pods.values()):
        job_sets.end_pod(pod.metadata.name)
    job_sets.until(lambda: job_sets.group("jobset/train").over)
