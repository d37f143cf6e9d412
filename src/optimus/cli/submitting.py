"""`optimus submit` and `optimus run`: work comes in."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from optimus.cli import completing, following
from optimus.cli.showing import console
from optimus.cli.target import (
    DEFAULT_NAMESPACE,
    REFUSED,
    WRONG_USAGE,
    Address,
    Namespace,
    complain,
    reached,
    refuse,
)
from optimus.client import ApiError
from optimus.client.connection import find_name
from optimus.client.documents import job_document
from optimus.client.targets import is_cluster

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help="UnifiedJob, Queue, NodePool; - reads from a pipe.")]
Command = Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="What every replica runs.")]
Gpus = Annotated[str, typer.Option(metavar="N", help="GPUs of each replica; 0.5 is half of one.")]
Queue = Annotated[
    str,
    typer.Option(envvar="OPTIMUS_QUEUE", metavar="NAME", help="That it belongs to.", autocompletion=completing.queues),
]
Replicas = Annotated[str, typer.Option(metavar="N|MIN-MAX", help="How many; a range is elastic.")]
Name = Annotated[str, typer.Option(metavar="NAME", help="Of the job. Else made from the command.")]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Only submit; do not follow its output.")]
Cpu = Annotated[str, typer.Option(metavar="N", help="Cores of each replica.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Of each replica, such as 16Gi.")]
Class = Annotated[
    str,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="interactive, unattended or inference.",
        autocompletion=completing.classes,
    ),
]
Priority = Annotated[int | None, typer.Option(metavar="N", help="Higher goes first.")]
Array = Annotated[int | None, typer.Option(min=1, metavar="N", help="So many parts, each with its OPTIMUS_PART.")]
Env = Annotated[
    list[str], typer.Option("-e", "--env", metavar="NAME=VALUE", help="For the command. May be given several times.")
]
Retries = Annotated[int, typer.Option(min=0, metavar="N", help="How often it starts again after a failure.")]
Checkpoint = Annotated[
    str, typer.Option(metavar="SECONDS", help="It saves its work when asked (SIGTERM), and needs at most so long.")
]
Pools = Annotated[
    list[str],
    typer.Option(
        "--pool",
        metavar="NAME",
        help="To run in. May be given several times, in order of preference.",
        autocompletion=completing.pools,
    ),
]
Workdir = Annotated[
    str, typer.Option(metavar="FOLDER", help="Where the command runs. Else where it is submitted from.")
]
Image = Annotated[str, typer.Option(metavar="NAME", help="On a cluster: the image of its containers.")]
SOURCE = "optimus run"
FIELDS = {
    "metadata.namespace": "--namespace",
    "metadata.name": "--name",
    "spec.gpu": "--gpus",
    "spec.replicas": "--replicas",
    "spec.class": "--class",
    "spec.arraySize": "--array",
    "spec.cpu": "--cpu",
    "spec.memory": "--memory",
    "spec.priority": "--priority",
    "spec.env": "--env",
    "spec.restart.backoffLimit": "--retries",
    "spec.checkpoint.graceSeconds": "--checkpoint",
    "spec.queue": "--queue",
    "spec.pools": "--pool",
    "spec.workdir": "--workdir",
    "spec.image": "--image",
    "spec.command": "COMMAND",
}
"""Of the document, and what somebody has typed."""
TYPED = tuple(f"{option}{end}" for option in FIELDS.values() for end in ":.[")
"""So begins what is wrong with an option itself, whoever is asked: wrong usage, and no refusal."""
UNREADABLE = "unreadable"


def submit(files: Files, address: Address = "") -> None:
    """Submit jobs, queues and pools; all errors of a file are told at once, and then nothing of it is done."""
    failed = 0
    with reached(address) as target:
        for file in files:
            try:
                told = target.submit(_read(file), source=file, where=str(Path.cwd()))
            except ApiError as error:
                failed = max(failed, WRONG_USAGE if error.code == UNREADABLE else REFUSED)
                text = str(error)
                complain(text if text.startswith(file) else f"{file}: {text}")
                continue
            for warning in told["warnings"]:
                console(stderr=True).print(f"Warning: {warning}", style="yellow", markup=False)
            for kind, names in (("queue", told["queues"]), ("pool", told["pools"]), ("job", told["jobs"])):
                for name in names:
                    typer.echo(f"{kind} {name} submitted")
            _say_replaced(told)
    if failed:
        raise typer.Exit(failed)


def run(
    command: Command,
    gpus: Gpus = "1",
    queue: Queue = "default",
    replicas: Replicas = "1",
    name: Name = "",
    detach: Detach = False,
    cpu: Cpu = "",
    memory: Memory = "",
    workload_class: Class = "",
    priority: Priority = None,
    array: Array = None,
    env: Env = [],  # noqa: B006 - typer wants a list, and nobody changes it
    checkpoint: Checkpoint = "",
    retries: Retries = 0,
    pool: Pools = [],  # noqa: B006
    workdir: Workdir = "",
    image: Image = "",
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Submit the command after -- as a job, and follow its output.

    Ends with 0 if the job succeeds and with 1 if it fails. Ctrl-C cancels it.
    """
    document = job_document(
        command,
        name=name,
        namespace=namespace or ("" if is_cluster(find_name(address)) else "default"),
        queue=queue,
        gpu=_number(gpus, "--gpus"),
        replicas=_replicas(replicas),
        retries=retries,
        spec={
            "image": image,
            "cpu": cpu,
            "memory": memory,
            "class": workload_class,
            "priority": priority,
            "pools": _pools(pool) or None,
            "workdir": str(Path(workdir).absolute()) if workdir else None,
            "arraySize": array,
            "env": _environment(env) or None,
            "checkpoint": {"graceSeconds": _number(checkpoint, "--checkpoint")} if checkpoint else None,
        },
    )
    with reached(address) as target:
        try:
            told = target.run(document, source=SOURCE, where=str(Path.cwd()), fresh=not name)
        except ApiError as error:
            text = _as_typed(str(error))
            if all(line.startswith(TYPED) for line in text.splitlines()):
                raise typer.BadParameter(text) from None
            refuse(text)
        _say_replaced(told)
        job = told["jobs"][0]
        if detach:
            typer.echo(f"job {job} submitted")
            following.warn_of_waiting(target.job(job))
            return
        phase = following.to_the_end(target, job)
    raise typer.Exit(0 if phase == "Succeeded" else 1)


def _say_replaced(told: Mapping[str, Any]) -> None:
    for job, phase in told.get("replaced", {}).items():
        text = f"{job} begins anew: the earlier job of this name ({phase}) is forgotten, with its checkpoints"
        console(stderr=True).print(text, style="yellow", markup=False)


def _as_typed(text: str) -> str:
    """Nobody has seen the document: what is wrong in it is wrong with an option."""
    text = re.sub(rf"(?m)^{SOURCE}:\d+:\d+: job \S+?(?: \S+)*?: (?=spec|metadata)", "", text)
    text = re.sub(rf"(?m)^{SOURCE}: ", "", text)
    text = re.sub(r"(?m)^spec\.queue: ", "", text)  # it says itself that it is about a queue
    for field, option in FIELDS.items():
        text = re.sub(rf"(?m)^{re.escape(field)}(?=[:.\[])", option, text)
    return text


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text (UTF-8)"
        why = "it is a folder; name files" if isinstance(error, IsADirectoryError) else why
        code = UNREADABLE if isinstance(error, OSError) else "invalid"
        raise ApiError(0, code, f"{file} cannot be read: {why}") from None


def _replicas(text: str) -> Any:
    found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    if found is None:
        raise typer.BadParameter(f"{text} is no number and no range: write 4, or 2-8", param_hint="--replicas")
    least, most = found.groups()
    return {"min": int(least), "max": int(most)} if most else int(least)


def _number(text: str, option: str) -> Any:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise typer.BadParameter(f"{text} is no number", param_hint=option)
    return int(found) if found.is_integer() else found


def _pools(names: list[str]) -> list[str]:
    for name in names:
        if "," in name:
            several = " ".join(f"--pool {one.strip()}" for one in name.split(",") if one.strip())
            raise typer.BadParameter(
                f"{name!r} is no name of a pool; of several write {several or '--pool NAME'}", param_hint="--pool"
            )
    return names


def _environment(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not name or (not sign and name not in os.environ):
            raise typer.BadParameter(
                f"{pair!r} has no {'value' if name else 'name'}: write NAME=VALUE", param_hint="--env"
            )
        found[name] = value if sign else os.environ[name]
    return found
