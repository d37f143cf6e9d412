"""What a job runs: the short words or the first container of its template.

Why: a pod template says more than one machine can do; whoever wrote it must learn which parts count here.
Owns: command, environment and folder of a job, and the amounts that its container asks for.
Must not: refuse what Kubernetes allows, unless running without it would be wrong.
"""

from __future__ import annotations

from typing import Any

from optimus.api.building.said import Said
from optimus.api.marks import Loc, look_up
from optimus.api.specs.fields import nearest
from optimus.api.specs.job_fields import shell_word
from optimus.api.specs.jobs import JobDocument, JobSpec
from optimus.api.specs.templates import (
    KNOWN_CONTAINER_FIELDS,
    KNOWN_METADATA_FIELDS,
    KNOWN_POD_FIELDS,
    KNOWN_TEMPLATE_FIELDS,
    MIG_PREFIX,
    ContainerSpec,
    EnvVarSpec,
    OpenSpec,
    PodSpec,
)
from optimus.model import units
from optimus.model.jobs import Template

POD: Loc = ("spec", "template", "spec")
FIRST: Loc = (*POD, "containers", 0)
RESOURCES: Loc = (*FIRST, "resources")
_NO_CLUSTER = "is not usable on one machine: there is no Secret, ConfigMap or pod to read it from"
_NOT_DONE = {
    "initContainers": "are not run on one machine",
    "volumes": "are not mounted on one machine: the program sees the folders of the machine",
}


def template_of(spec: JobSpec, said: Said) -> Template | None:
    container = first_container(spec)
    written = container or ContainerSpec()
    command = said.once("command", (("spec", "command"), spec.command), _command(written))
    env = said.once(
        "env",
        (("spec", "env"), None if spec.env is None else tuple(sorted(spec.env.items()))),
        ((*FIRST, "env"), _environment(written, said)),
    )
    workdir = said.once("workdir", (("spec", "workdir"), spec.workdir), ((*FIRST, "workingDir"), written.working_dir))
    if command is None:
        _say_what_is_missing(container, said)
        return None
    if spec.command is None and not written.command:
        message = "stands without command: the program of the image is not known on one machine"
        said.report.add((*FIRST, "args"), message, "write the whole line under command")
    stranger = shell_word(look_up(said.report.root, ("spec", "command")))
    if stranger:
        message = f"is split into words and not given to a shell: {stranger} is an ordinary word"
        said.report.add(("spec", "command"), message, "write [sh, -c, '…'] if a shell shall read it", keep=True)
    most = written.resources.limits
    return Template(
        command=command,
        env=env or (),
        workdir=workdir or "",
        cpu_limit_milli=most.cpu or 0,
        memory_limit_mib=most.memory or 0,
    )


def first_container(spec: JobSpec) -> ContainerSpec | None:
    return spec.template.spec.containers[0] if spec.template is not None else None


def amount_in(container: ContainerSpec | None, name: str, key: str = "") -> tuple[Loc, int] | None:
    """What the container asks for of a resource, with its place."""
    said = container.resources.said(name) if container is not None else None
    return None if said is None else ((*RESOURCES, said[0], key or name), said[1])


def agrees(amount: tuple[Loc, int] | None, asked: int | None) -> bool:
    """A limit that stands alone may be above what is asked for elsewhere."""
    if amount is None or asked is None:
        return False
    loc, number = amount
    return number == asked or (loc[-2] == "limits" and number > asked)


def mig_in(container: ContainerSpec | None, said: Said) -> tuple[Loc, dict[str, int]] | None:
    """MIG instances that the container asks for, as accelerators."""
    for home in ("requests", "limits") if container is not None else ():
        amounts: dict[str, Any] = getattr(container.resources, home).mig() if container is not None else {}
        found = {}
        for name, amount in amounts.items():
            try:
                found[name] = units.parse_count(amount)
            except units.UnitError as error:
                said.report.add((*RESOURCES, home, f"nvidia.com/{name}"), error.message, error.hint)
        if found:
            return (*RESOURCES, home), found
    return None


def warn_of_unused(document: JobDocument, said: Said) -> None:
    """What is accepted and has no effect here, and what not even Kubernetes knows."""
    _warn_of_strangers(document.metadata, ("metadata",), KNOWN_METADATA_FIELDS, said)
    template = document.spec.template
    if template is None:
        return
    pod = template.spec
    _warn_of_strangers(template, ("spec", "template"), KNOWN_TEMPLATE_FIELDS, said)
    _warn_of_strangers(pod, POD, KNOWN_POD_FIELDS, said)
    for i, container in enumerate(pod.containers):
        _warn_of_strangers(container, (*POD, "containers", i), KNOWN_CONTAINER_FIELDS, said)
    _warn_of_pod(pod, said)
    resources = pod.containers[0].resources
    for home, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        for key in amounts.passed_on():
            if not key.startswith(MIG_PREFIX):
                hint = "what shall be counted goes into replicaSpec.accelerators"
                said.report.add((*RESOURCES, home, key), "is not counted on one machine", hint, keep=True)


def _warn_of_pod(pod: PodSpec, said: Said) -> None:
    for key in pod.passed_on():
        if key in _NOT_DONE:
            said.report.add((*POD, key), _NOT_DONE[key], keep=True)
    if len(pod.containers) > 1:
        message = f"only the first of {len(pod.containers)} containers is run on one machine"
        said.report.add((*POD, "containers", 1), message, keep=True)


def _warn_of_strangers(spec: OpenSpec, loc: Loc, known: list[str], said: Said) -> None:
    own = [str(field.alias) for field in type(spec).model_fields.values()]
    for key in spec.passed_on():
        if key not in known:
            close = nearest(key, [*own, *known])
            hint = close if close.startswith("did you mean") else ""
            said.report.add((*loc, key), f"Kubernetes knows no field {key} here; it has no effect", hint, keep=True)


def _command(container: ContainerSpec) -> tuple[Loc, tuple[str, ...] | None]:
    if container.command:
        return (*FIRST, "command"), (*container.command, *(container.args or ()))
    return (*FIRST, "args"), container.args or None


def _environment(container: ContainerSpec, said: Said) -> tuple[tuple[str, str], ...] | None:
    advice = "write the value itself, or let the program read a file"
    if container.env_from:
        said.report.add((*FIRST, "envFrom"), _NO_CLUSTER, advice)
    found: dict[str, str] = {}
    for i, entry in enumerate(container.env or ()):
        _check_variable(entry, (*FIRST, "env", i), found, said, advice)
        found[entry.name] = entry.value
    return tuple(sorted(found.items())) or None


def _check_variable(entry: EnvVarSpec, loc: Loc, found: dict[str, str], said: Said, advice: str) -> None:
    if entry.value_from:
        said.report.add((*loc, "valueFrom"), _NO_CLUSTER, advice)
    if entry.name in found:
        said.report.add((*loc, "name"), f"variable {entry.name} is there twice")


def _say_what_is_missing(container: ContainerSpec | None, said: Said) -> None:
    if container is None:
        message = "is missing: there is neither command nor template, so nothing would run"
        said.report.add(("spec", "command"), message, "write command: python train.py")
    else:
        message = "has no command, and the program of the image is not known on one machine"
        said.report.add(FIRST, message, "write command: [python, train.py]")
