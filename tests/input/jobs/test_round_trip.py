"""A job written down and read again is the same job, through YAML and through JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from optimus.api.submitting import load_submission_data, load_submission_text
from optimus.api.writing import to_document, to_yaml
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
from tests.input.jobs.test_good_documents import FULL, NOON_MS

names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
queues = names | st.sampled_from(["1e3", "007", "12", "null", "true", "0x10", "a.b_c"])
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
texts |= st.sampled_from(["true", "null", "~", "007", "1e3", ".5", "a: b", "# no", "- a", "", " ", "\n", "\x85", "'\""])
words = texts.filter(bool)
variables = texts.filter(lambda name: name and "=" not in name)
amounts = st.integers(0, 10**9)
periods = st.integers(1, 10**12) | st.integers(1, 10**7).map(lambda seconds: seconds * 1000)
some = st.none() | periods
sole = st.lists(names, unique=True, max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    share = draw(st.sampled_from(["whole", "fraction", "memory"]))
    milli = draw(st.integers(1, 1000)) if share == "fraction" else 1000
    limit = draw(st.just(0) | st.integers(milli, 1000)) if share == "fraction" else 0
    return Request(
        gpu_count=draw(st.integers(0, 1024)),
        gpu_milli=milli,
        gpu_limit_milli=limit,
        gpu_memory_mib=draw(st.integers(1, 10**6)) if share == "memory" else 0,
        models=tuple(ModelSpeed(name, draw(st.integers(1, 10**5))) for name in draw(sole)),
        activity_milli=draw(st.integers(0, 1000)),
        cpu_milli=draw(amounts),
        memory_mib=draw(amounts),
        accelerators=tuple((name, draw(st.integers(1, 99))) for name in sorted(draw(sole))),
    )


@st.composite
def roles(draw: st.DrawFn, most_needed: int) -> Role:
    sizes = tuple(sorted(draw(st.sets(st.integers(1, 100), max_size=4))))
    least = min(sizes[0] if sizes else draw(st.integers(1, 100)), most_needed)
    sizes = (least, *(size for size in sizes if size > least)) if sizes else ()
    most = sizes[-1] if sizes else draw(st.integers(least, 200))
    return Role(name="worker", min=least, max=most, sizes=sizes, request=draw(requests()))


@st.composite
def tolerations(draw: st.DrawFn) -> Toleration:
    key = draw(st.just("") | names)
    effect = draw(st.sampled_from(["", "NoSchedule", "NoExecute"]))
    return Toleration(key, draw(texts) if key else "", effect)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    interactive = draw(st.booleans())
    saves = draw(st.booleans())
    saving_command = tuple(draw(st.lists(words, max_size=2))) if saves else ()
    signal = draw(st.sampled_from(["SIGTERM", "SIGUSR1"])) if saves and not saving_command else "SIGTERM"
    workload = Workload(
        id=f"{draw(names)}/{draw(names)}",
        queue=draw(queues),
        gang=Group(
            topology=Topology(draw(st.just("") | names), draw(st.just("") | names)),
            roles=(draw(roles(1 if interactive else 100)),),
        ),
        workload_class=WorkloadClass.INTERACTIVE if interactive else draw(st.sampled_from(WorkloadClass)),
        priority=draw(st.none() | st.integers(-(10**9), 10**9)),
        preemptible=draw(st.sampled_from(Preemptible)),
        pools=tuple(draw(st.lists(queues, min_size=1, max_size=3, unique=True))),
        node_selector=tuple(sorted(draw(st.dictionaries(names, texts, max_size=2)).items())),
        tolerations=tuple(draw(st.lists(tolerations(), max_size=2))),
        checkpoint=Checkpoint(grace_ms=draw(periods), interval_ms=draw(some)) if saves else None,
        restart_cost_ms=draw(amounts),
        on_loss=draw(st.sampled_from(OnLoss)),
        loss_grace_ms=draw(amounts),
        submitted_ms=draw(st.integers(0, 4 * 10**12)),
        expected_duration_ms=draw(some),
        deadline_ms=draw(st.none() | st.integers(0, 253_402_300_799_999)),
        max_runtime_ms=draw(some),
        family=draw(texts),
        speedup_percent=tuple(draw(st.lists(st.integers(0, 10**6), max_size=3))),
        suspended=draw(st.booleans()),
    )
    request = workload.gang.roles[0].request
    beyond = st.none() | st.integers(1, 10**6)
    cpu_more, memory_more = draw(beyond), draw(beyond)
    return Job(
        workload=workload,
        template=Template(
            cpu_limit_milli=0 if cpu_more is None else request.cpu_milli + cpu_more,
            memory_limit_mib=0 if memory_more is None else request.memory_mib + memory_more,
            command=(draw(words), *draw(st.lists(texts, max_size=3))),
            env=tuple(sorted(draw(st.dictionaries(variables, texts, max_size=3)).items())),
            workdir=draw(texts),
        ),
        job_type=JobType.INTERACTIVE if interactive else JobType.JOB,
        array=0 if interactive else draw(st.integers(0, 100_000)),
        saving=Saving(signal=signal, command=saving_command, path=draw(texts) if saves else ""),
        restart=Restart(backoff_limit=draw(amounts), backoff_ms=draw(amounts), longest_ms=draw(amounts)),
        keep_ms=draw(st.none() | amounts),
    )


@settings(max_examples=60)
@given(job=jobs())
def test_any_job_comes_back(job: Job) -> None:
    document = to_document(job)
    submitted_ms = job.workload.submitted_ms
    through_yaml = load_submission_text(to_yaml(document), now_ms=submitted_ms)
    assert through_yaml.errors == ()
    assert through_yaml.jobs == (job,)
    through_json = load_submission_data(json.loads(json.dumps(document)), now_ms=submitted_ms)
    assert through_json.errors == ()
    assert through_json.jobs == (job,)


def test_the_normal_form_is_stable_and_keeps_what_is_passed_on() -> None:
    submission = load_submission_text(FULL, now_ms=NOON_MS)
    (job,) = submission.jobs
    document = to_document(job, submission.written[job.id])
    assert document["metadata"]["labels"] == {"team": "vision"}
    assert document["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert document["spec"]["template"]["spec"]["containers"][0]["image"] == "pytorch"
    again = load_submission_text(to_yaml(document), now_ms=NOON_MS)
    assert again.jobs == (job,)
    assert to_document(job, again.written[job.id]) == document


def test_what_is_usual_is_left_out() -> None:
    (job,) = load_submission_text("{kind: UnifiedJob, metadata: {name: a}, spec: {command: x y, gpu: 1}}").jobs
    assert to_document(job) == {
        "apiVersion": "optimus.dev/v1alpha1",
        "kind": "UnifiedJob",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "jobType": "Job",
            "queue": "default",
            "class": "unattended",
            "pools": ["any"],
            "replicaSpec": {"minReplicas": 1, "maxReplicas": 1, "gpu": {"count": 1}},
            "restart": {"backoffLimit": 3},
            "template": {"spec": {"containers": [{"name": "main", "command": ["x", "y"]}]}},
        },
    }


def test_a_gang_of_several_roles_has_no_document() -> None:
    (job,) = load_submission_text("{kind: UnifiedJob, metadata: {name: a}, spec: {command: x}}").jobs
    two = structs.replace(job.workload, gang=Group(roles=(Role(name="worker"), Role(name="driver"))))
    with pytest.raises(ValueError, match="has one role"):
        to_document(structs.replace(job, workload=two))
