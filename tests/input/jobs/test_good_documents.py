"""Good UnifiedJobs: the long form, the short form and the pod template mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from optimus.api.submitting import Submission, load_submission, load_submission_data, load_submission_text
from optimus.model.jobs import Job, JobType, Restart, Saving, Template
from optimus.model.nodes import Toleration
from optimus.model.workloads import (
    Checkpoint,
    Group,
    ModelSpeed,
    OnLoss,
    Preemptible,
    Request,
    Role,
    Topology,
    Workload,
    WorkloadClass,
)

NOON_MS = 1_767_614_400_000

FULL = """
apiVersion: optimus.dev/v1alpha1
kind: UnifiedJob
metadata: {name: train, namespace: ml, labels: {team: vision}}
spec:
  jobType: Job
  queue: vision
  class: unattended
  priority: 10
  preemptible: surplus
  pools: [a100, any]
  replicaSpec:
    minReplicas: 1
    maxReplicas: 4
    sizes: powersOfTwo
    gpu: {count: 2, models: [A100, {H100: 1.5x}]}
    cpu: 4
    memory: 16Gi
    accelerators: {fpga: 1}
  arraySize: 100
  topology: {required: rack, preferred: nvlink}
  checkpoint: {signal: SIGUSR1, graceSeconds: 45, intervalSeconds: 600, path: /data/ckpt}
  restart: {backoffLimit: 5, backoffSeconds: 1}
  onLoss: restart
  maxRuntimeSeconds: 7200
  expectedDuration: 1h
  deadline: 2026-01-06T12:00:00Z
  family: resnet
  suspend: true
  speedup: [1, 1.9]
  ttlSecondsAfterFinished: 60
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {disk: fast}
      tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]
      containers:
        - name: main
          image: pytorch
          command: [python]
          args: [train.py, --lr, 0.1]
          env: [{name: B, value: 007}, {name: A, value: b}]
          workingDir: /src
          resources: {limits: {nvidia.com/gpu: 2}, requests: {cpu: 4}}
"""


def only_job(submission: Submission) -> Job:
    assert [str(error) for error in (*submission.errors, *submission.warnings)] == []
    (job,) = submission.jobs
    return job


def job_of(spec: str) -> Job:
    return only_job(load_submission_text(f"kind: UnifiedJob\nmetadata: {{name: train}}\nspec: {spec}\n"))


def role_of(spec: str) -> Role:
    return job_of(spec).workload.gang.roles[0]


def test_every_field() -> None:
    submission = load_submission_text(FULL, now_ms=NOON_MS)
    assert only_job(submission) == Job(
        workload=Workload(
            id="ml/train",
            queue="vision",
            gang=Group(
                topology=Topology("rack", "nvlink"),
                roles=(
                    Role(
                        name="worker",
                        min=1,
                        max=4,
                        sizes=(1, 2, 4),
                        request=Request(
                            gpu_count=2,
                            models=(ModelSpeed("A100"), ModelSpeed("H100", 150)),
                            cpu_milli=4000,
                            memory_mib=16_384,
                            accelerators=(("fpga", 1),),
                        ),
                    ),
                ),
            ),
            workload_class=WorkloadClass.UNATTENDED,
            priority=10,
            preemptible=Preemptible.SURPLUS,
            pools=("a100", "any"),
            node_selector=(("disk", "fast"),),
            tolerations=(Toleration("spot", "", "NoSchedule"),),
            checkpoint=Checkpoint(grace_ms=45_000, interval_ms=600_000),
            on_loss=OnLoss.RESTART,
            submitted_ms=NOON_MS,
            expected_duration_ms=3_600_000,
            deadline_ms=NOON_MS + 86_400_000,
            max_runtime_ms=7_200_000,
            family="resnet",
            speedup_percent=(100, 190),
            suspended=True,
        ),
        template=Template(
            command=("python", "train.py", "--lr", "0.1"), env=(("A", "b"), ("B", "007")), workdir="/src"
        ),
        array=100,
        saving=Saving(signal="SIGUSR1", path="/data/ckpt"),
        restart=Restart(backoff_limit=5, backoff_ms=1000),
        keep_ms=60_000,
    )
    assert submission.written["ml/train"]["metadata"]["labels"] == {"team": "vision"}


def test_the_shortest_job() -> None:
    job = job_of("{command: python train.py}")
    assert job == Job(
        workload=Workload(id="default/train", queue="default", gang=Group(roles=(Role(name="worker"),))),
        template=Template(command=("python", "train.py")),
    )


def test_short_and_long_are_the_same_job() -> None:
    short = job_of(
        "{command: python 'my train.py', env: {A: 1}, workdir: src, gpu: 2, cpu: 500m, replicas: {min: 1, max: 4},"
        " checkpoint: {grace: 1m}, maxRuntime: 1h}"
    )
    long = job_of("""
  replicaSpec: {minReplicas: 1, maxReplicas: 4, gpu: {count: 2}, cpu: 0.5}
  checkpoint: {signal: TERM, graceSeconds: 60}
  maxRuntimeSeconds: 3600
  template:
    spec: {containers: [{command: [python, my train.py], env: [{name: A, value: "1"}], workingDir: src}]}""")
    assert short == long


def test_limits_of_the_container_are_beside_what_is_asked_for() -> None:
    """A limit that stands alone is the request, too, unless the job asks for less elsewhere."""
    limits = "template: {spec: {containers: [{command: [x], resources: {limits: {cpu: 2, memory: 1Gi}}}]}}"
    for asks, request in (("", (2000, 1024)), ("cpu: 500m, memory: 1Gi, ", (500, 1024)), ("cpu: 0, ", (0, 1024))):
        job = job_of(f"{{{asks}{limits}}}")
        asked = job.workload.gang.roles[0].request
        assert (asked.cpu_milli, asked.memory_mib) == request
        assert (job.template.cpu_limit_milli, job.template.memory_limit_mib) == (2000, 1024)
    assert job_of("{command: x, cpu: 2, memory: 1Gi}").template == Template(command=("x",))


def test_a_container_alone_says_what_it_needs() -> None:
    role = role_of("""
  template:
    spec:
      containers:
        - command: [x]
          resources: {requests: {cpu: 2, memory: 1Gi}, limits: {nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 2}}""")
    assert role.request == Request(gpu_count=1, cpu_milli=2000, memory_mib=1024, accelerators=(("mig-1g.5gb", 2),))


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [
        ("", (1, 1, ())),
        ("minReplicas: 3", (3, 3, ())),
        ("maxReplicas: 3", (1, 3, ())),
        ("desiredReplicas: 3", (3, 3, ())),
        ("minReplicas: 1, desiredReplicas: 3", (1, 3, ())),
        ("minReplicas: 1, maxReplicas: 8, desiredReplicas: 3", (1, 3, ())),
        ("maxReplicas: 8, sizes: powersOfTwo", (1, 8, (1, 2, 4, 8))),
        ("maxReplicas: 8, sizes: powersOfTwo, desiredReplicas: 5", (1, 4, (1, 2, 4))),
        ("desiredReplicas: 5, sizes: powersOfTwo", (1, 4, (1, 2, 4))),
        ("sizes: [2, 3, 8], desiredReplicas: 7", (2, 3, (2, 3))),
        ("minReplicas: 1, maxReplicas: 4, desiredReplicas: 1, targetReplicas: 2", (1, 1, ())),
    ],
)
def test_the_wish_is_the_upper_end(counts: str, bounds: tuple[int, int, tuple[int, ...]]) -> None:
    role = role_of(f"{{command: x, replicaSpec: {{{counts}}}}}")
    assert (role.min, role.max, role.sizes) == bounds


def test_an_interactive_job_is_of_its_class() -> None:
    job = job_of("{command: bash, jobType: Interactive, gpu: 0.5}")
    assert job.job_type is JobType.INTERACTIVE
    assert job.workload.workload_class is WorkloadClass.INTERACTIVE
    assert job_of("{command: bash, class: interactive}").workload.workload_class is WorkloadClass.INTERACTIVE


@pytest.mark.parametrize(
    ("written", "text"),
    [("1", "1"), ("007", "007"), ("0x10", "0x10"), ("1.50", "1.50"), (".5", ".5"), ("1e3", "1e3"), ("no", "no")],
)
def test_numbers_are_text_as_they_were_written(written: str, text: str) -> None:
    job = job_of(f"{{command: [x, {written}], env: {{A: {written}}}}}")
    assert job.template == Template(command=("x", text), env=(("A", text),))


def test_a_command_saves_instead_of_a_signal() -> None:
    assert job_of("{command: x, checkpoint: {command: save now}}").saving == Saving(command=("save", "now"))
    assert job_of("{command: x}").workload.checkpoint is None
    assert job_of("{command: x, checkpoint: {}}").workload.checkpoint == Checkpoint()


def test_a_sidecar_may_use_what_the_first_container_may_not() -> None:
    submission = load_submission_text("""
kind: UnifiedJob
metadata: {name: train}
spec:
  template:
    spec:
      containers: [{command: [x]}, {name: side, envFrom: [{secretRef: {name: s}}]}]
""")
    assert submission.errors == ()
    assert len(submission.warnings) == 1


def test_what_a_cluster_wrote_may_be_submitted_again() -> None:
    job = only_job(
        load_submission_text("""
apiVersion: optimus.dev/v1alpha1
kind: UnifiedJob
metadata: {name: train, uid: a-b, resourceVersion: "7", creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {command: x}
status: {phase: Running}
""")
    )
    assert job.workload.submitted_ms == 0


def test_files_jobs_queues_and_pools_together(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_text(
        "kind: Queue\nmetadata: {name: vision}\nspec: {parent: research, gpu: {guarantee: 2}}\n---\n"
        "kind: NodePool\nmetadata: {name: a100}\nspec: {placement: spread}\n",
        encoding="utf-8",
    )
    (tmp_path / "jobs.yaml").write_text(
        "kind: List\nitems:\n"
        "  - {kind: UnifiedJob, metadata: {name: good}, spec: {command: x}}\n"
        "  - {kind: UnifiedJob, metadata: {name: bad}, spec: {command: x, gpu: -1}}\n",
        encoding="utf-8",
    )
    paths = [tmp_path / "tenants.yaml", tmp_path / "jobs.yaml", tmp_path / "missing.yaml"]
    submission = load_submission(*paths, now_ms=5, levels=("rack",))
    assert [job.id for job in submission.jobs] == ["default/good"]
    assert [(queue.name, queue.parent, queue.created_ms) for queue in submission.queues] == [("vision", "research", 5)]
    assert [(pool.name, pool.levels) for pool in submission.pools] == [("a100", ("rack",))]
    assert [(Path(error.path).name, error.line) for error in submission.errors] == [
        ("jobs.yaml", 4),
        ("missing.yaml", 1),
    ]


def test_data_and_text_are_the_same_job() -> None:
    data: dict[str, Any] = {
        "kind": "UnifiedJob",
        "metadata": {"name": "train"},
        "spec": {"command": ["x", 1.5], "gpu": 0.5, "replicaSpec": {"minReplicas": 2}},
    }
    text = job_of("{command: [x, 1.5], gpu: 0.5, replicaSpec: {minReplicas: 2}}")
    assert only_job(load_submission_data(data)) == text
    later = only_job(load_submission_data([data], now_ms=7))
    assert later == structs.replace(text, workload=structs.replace(text.workload, submitted_ms=7))


def test_nothing_at_all_is_an_empty_submission() -> None:
    for text in ("", "---\n", "# only a comment\n"):
        assert load_submission_text(text) == Submission()
    assert load_submission() == Submission()
    assert load_submission_data([]) == Submission()
