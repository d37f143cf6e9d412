"""From a UnifiedJob as it was written to the `Job` that is run.

Why: the long form, the short form and the pod template are three ways to say one thing; after this there is one.
Owns: the checks that compare fields of one job, and the defaults that depend on its type.
Must not: compare one job with another, or look up queues and pools.
"""

from __future__ import annotations

from pydantic import ValidationError

from optimus.api.building.job_templates import (
    POD,
    agrees,
    amount_in,
    first_container,
    mig_in,
    template_of,
    warn_of_unused,
)
from optimus.api.building.report import Report
from optimus.api.building.said import Said
from optimus.api.findings import explain
from optimus.api.marks import Loc
from optimus.api.specs.jobs import JobDocument, JobSpec, ReplicaSpec
from optimus.api.specs.replicas import SOLE_ROLE, Bounds, GpuSpec, RequestFields, SizesSpec
from optimus.api.specs.templates import NVIDIA_GPU
from optimus.model import units
from optimus.model.jobs import Job, JobType, Restart, Saving, Template
from optimus.model.nodes import Toleration
from optimus.model.validation import workload_problems
from optimus.model.workloads import Checkpoint, Group, Request, Role, Workload, WorkloadClass

_LONG: Loc = ("spec", "replicaSpec")
_LAST_MS = 253_402_300_799_999
_DEFAULT_CLASS = {JobType.INTERACTIVE: WorkloadClass.INTERACTIVE, JobType.SERVICE: WorkloadClass.INFERENCE}
_ON_ONE_MACHINE = (JobType.JOB, JobType.PYTORCH_ELASTIC, JobType.INTERACTIVE)


def build_job(document: JobDocument, report: Report, now_ms: int, *, in_cluster: bool = False) -> Job | None:
    """The job, or None if the report says what is wrong with it. Findings that are kept are warnings.

    `in_cluster`: it becomes pods, made from its template as it is written. All types run, and images have programs."""
    said = Said(report)
    spec = document.spec
    if in_cluster:
        template: Template | None = Template(command=_line(spec))
    else:
        _demand_type(spec, report)
        warn_of_unused(document, said)
        template = template_of(spec, said)
    role = _role(spec, said)
    workload = _workload(document, role, said, now_ms)
    _check_type(spec, role, said)
    _check_times(workload, said, now_ms)
    report.problems((), workload_problems(workload), said.locate)
    saving, restart = _saving(spec, report), _restart(spec, said)
    keep_ms = said.duration("ttlAfterFinished", spec.ttl_seconds_after_finished, spec.ttl_after_finished)
    if template is None or any(not finding.keep for finding in report.findings):
        return None
    return Job(
        workload=workload,
        template=template,
        job_type=spec.job_type,
        array=spec.array_size or 0,
        saving=saving,
        restart=restart,
        keep_ms=keep_ms,
    )


def default_class(job_type: JobType) -> WorkloadClass:
    return _DEFAULT_CLASS.get(job_type, WorkloadClass.UNATTENDED)


def _line(spec: JobSpec) -> tuple[str, ...]:
    container = first_container(spec)
    return () if container is None else (*(container.command or ()), *(container.args or ()))


def _demand_type(spec: JobSpec, report: Report) -> None:
    if spec.job_type not in _ON_ONE_MACHINE:
        *some, last = _ON_ONE_MACHINE
        hint = f"it runs {', '.join(some)} and {last}"
        report.add(("spec", "jobType"), f"this version cannot run {spec.job_type} jobs", hint)


def _workload(document: JobDocument, role: Role, said: Said, now_ms: int) -> Workload:
    spec, metadata = document.spec, document.metadata
    restart_cost = said.duration("restartCost", spec.restart_cost_seconds, spec.restart_cost)
    loss_grace = said.duration("lossGrace", spec.loss_grace_seconds, spec.loss_grace)
    return Workload(
        id=f"{metadata.namespace}/{metadata.name}",
        queue=spec.queue,
        gang=Group(topology=spec.topology.to_topology(), roles=(role,)),
        workload_class=spec.workload_class or default_class(spec.job_type),
        priority=spec.priority,
        preemptible=spec.preemptible,
        pools=spec.pools,
        node_selector=_node_selector(spec, said),
        tolerations=_tolerations(spec, said),
        checkpoint=_checkpoint(spec, said),
        restart_cost_ms=60_000 if restart_cost is None else restart_cost,
        on_loss=spec.on_loss,
        loss_grace_ms=60_000 if loss_grace is None else loss_grace,
        submitted_ms=now_ms,
        expected_duration_ms=said.duration("expectedDuration", spec.expected_duration_seconds, spec.expected_duration),
        deadline_ms=None if spec.deadline is None else spec.deadline.resolve(now_ms),
        max_runtime_ms=said.duration("maxRuntime", spec.max_runtime_seconds, spec.max_runtime),
        family=spec.family,
        speedup_percent=spec.speedup,
        suspended=spec.suspend,
    )


def _node_selector(spec: JobSpec, said: Said) -> tuple[tuple[str, str], ...]:
    pod = spec.template.spec if spec.template is not None else None
    selector = said.once(
        "nodeSelector",
        (("spec", "nodeSelector"), spec.node_selector),
        ((*POD, "nodeSelector"), pod.node_selector if pod is not None else None),
    )
    return tuple(sorted((selector or {}).items()))


def _tolerations(spec: JobSpec, said: Said) -> tuple[Toleration, ...]:
    pod = spec.template.spec if spec.template is not None else None
    tolerations = said.once(
        "tolerations",
        (("spec", "tolerations"), spec.tolerations),
        ((*POD, "tolerations"), pod.tolerations if pod is not None else None),
    )
    found = tuple(toleration.to_toleration() for toleration in tolerations or ())
    for i, toleration in enumerate(found):
        if toleration.value and not toleration.key:
            said.report.add((*said.places["tolerations"], i), "a value needs a key", "leave value out to tolerate all")
    return found


def _role(spec: JobSpec, said: Said) -> Role:
    least, most, sizes = _bounds(spec, said)
    return Role(name=SOLE_ROLE, min=least, max=most, sizes=sizes, request=_request(spec, said))


def _bounds(spec: JobSpec, said: Said) -> Bounds:
    long = spec.replica_spec
    counted = long if long is not None and _counts(long) else None
    written = said.once("replicas", (("spec", "replicas"), spec.replicas), (_LONG, counted))
    if isinstance(written, SizesSpec):
        return written.bounds()
    if not isinstance(written, ReplicaSpec):
        return 1, 1, ()
    try:
        wrong = written.unreachable_wish()
    except ValidationError as error:
        for finding in explain(error, SizesSpec):
            hint = finding.hint.replace("min: ", "minReplicas: ")
            said.report.add((*_LONG, _home_of(finding.message)), finding.message, hint)
        return 1, 1, ()
    if wrong:
        said.report.add((*_LONG, "desiredReplicas"), wrong)
        return 1, 1, ()
    return written.bounds()


def _counts(long: ReplicaSpec) -> bool:
    return any(name in long.model_fields_set for name in ("min_replicas", "max_replicas", "desired_replicas", "sizes"))


def _home_of(message: str) -> str:
    """The field that an error about the counts is shown at."""
    return "minReplicas" if message.startswith("the minimum") else "sizes"


def _request(spec: JobSpec, said: Said) -> Request:
    long = spec.replica_spec or ReplicaSpec()
    container = first_container(spec)
    gpu = said.once("gpu", (("spec", "gpu"), spec.gpu), ((*_LONG, "gpu"), long.gpu))
    devices = amount_in(container, "gpu", NVIDIA_GPU)
    if devices is not None:
        whole = gpu is not None and gpu.count == devices[1] and gpu.fraction is None and gpu.memory is None
        gpu = said.repeated("gpu", gpu, (devices[0], GpuSpec(count=devices[1])), agree=whole)
    cpu = said.once("cpu", (("spec", "cpu"), spec.cpu), ((*_LONG, "cpu"), long.cpu))
    cores = amount_in(container, "cpu")
    cpu = said.repeated("cpu", cpu, cores, agree=agrees(cores, cpu))
    memory = said.once("memory", (("spec", "memory"), spec.memory), ((*_LONG, "memory"), long.memory))
    bytes_ = amount_in(container, "memory")
    memory = said.repeated("memory", memory, bytes_, agree=agrees(bytes_, memory))
    named = said.once(
        "accelerators", (("spec", "accelerators"), spec.accelerators), ((*_LONG, "accelerators"), long.accelerators)
    )
    mig = mig_in(container, said)
    named = said.repeated("accelerators", named, mig, agree=mig is not None and mig[1].items() <= (named or {}).items())
    return RequestFields.model_construct(gpu=gpu, cpu=cpu, memory=memory, accelerators=named).request()


def _checkpoint(spec: JobSpec, said: Said) -> Checkpoint | None:
    written = spec.checkpoint
    if written is None:
        return None
    under: Loc = ("checkpoint",)
    grace = said.duration("grace", written.grace_seconds, written.grace, under=under, least=1)
    interval = said.duration("interval", written.interval_seconds, written.interval, under=under)
    return Checkpoint(grace_ms=Checkpoint().grace_ms if grace is None else grace, interval_ms=interval)


def _saving(spec: JobSpec, report: Report) -> Saving:
    written = spec.checkpoint
    if written is None:
        return Saving()
    if written.signal is not None and written.command is not None:
        message = "stands beside signal: a job is told to save its work in one way"
        report.add(("spec", "checkpoint", "command"), message, "keep signal or command")
    return Saving(signal=written.signal or Saving().signal, command=written.command or (), path=written.path)


def _restart(spec: JobSpec, said: Said) -> Restart:
    written, usual = spec.restart, Restart()
    first = said.duration("backoff", written.backoff_seconds, written.backoff, under=("restart",))
    longest = said.duration("maxBackoff", written.max_backoff_seconds, written.max_backoff, under=("restart",))
    return Restart(
        backoff_limit=usual.backoff_limit if written.backoff_limit is None else written.backoff_limit,
        backoff_ms=usual.backoff_ms if first is None else first,
        longest_ms=usual.longest_ms if longest is None else longest,
    )


def _check_type(spec: JobSpec, role: Role, said: Said) -> None:
    if spec.array_size is not None and spec.job_type is not JobType.JOB:
        hint = "leave arraySize out, or write jobType: Job"
        article = "an" if spec.job_type in (JobType.INTERACTIVE, JobType.MPI) else "a"
        said.report.add(("spec", "arraySize"), f"{article} {spec.job_type} job cannot be an array", hint)
    if spec.job_type is not JobType.INTERACTIVE:
        return
    if role.min > 1:
        place = said.places["replicas"]
        message = f"an Interactive job runs as one replica and cannot need {role.min}"
        said.report.add((*place, "minReplicas") if place == _LONG else place, message, "write jobType: Job")
    if spec.workload_class not in (None, WorkloadClass.INTERACTIVE):
        message = f"is {spec.workload_class}, but jobType is Interactive"
        said.report.add(("spec", "class"), message, "leave class out, or write jobType: Job")


def _check_times(workload: Workload, said: Said, now_ms: int) -> None:
    deadline, longest, expected = workload.deadline_ms, workload.max_runtime_ms, workload.expected_duration_ms
    if deadline is not None and 0 <= deadline < now_ms:
        message = f"lies in the past: {units.format_time_ms(deadline)}"
        said.report.add(("spec", "deadline"), message, keep=True)
    if deadline is not None and deadline > _LAST_MS:
        said.report.add(("spec", "deadline"), "lies beyond the year 9999")
    if longest and expected and expected > longest:
        message = f"is longer than {said.places['maxRuntime'][-1]}: it would be stopped before it is done"
        said.report.add(said.places["expectedDuration"], message, keep=True)
