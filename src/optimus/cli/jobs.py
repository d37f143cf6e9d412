"""What can be done with jobs that are there: get, describe, logs, cancel, suspend, resume, scale."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from optimus.cli import following, job_tables
from optimus.cli.showing import Format, FormatOption, Printer, console, dump
from optimus.cli.target import DEFAULT_NAMESPACE, Address, Job, Namespace, connected, job_name

KINDS = {"job": "jobs", "queue": "queues", "pool": "pools", "node": "nodes"}
What = Annotated[str, typer.Argument(metavar="jobs|queues|pools|nodes", help="What to list.")]
Which = Annotated[str, typer.Argument(metavar="NAME", help="Only this one.")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Until it is over.")]
Tail = Annotated[int | None, typer.Option(min=0, metavar="N", help="The last lines of each replica only.")]
Replica = Annotated[str, typer.Option(metavar="NAME", help="Of this replica only, such as worker-0.")]
QueueFilter = Annotated[str, typer.Option("--queue", help="Jobs of this queue only.")]
PhaseFilter = Annotated[str, typer.Option("--phase", help="Jobs in this phase only, such as Pending.")]
Size = Annotated[int, typer.Option("--replicas", min=1, metavar="N", help="At most so many from now on.")]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Of every namespace (jobs are, anyway).")]


def get(
    what: What,
    name: Which = "",
    queue: QueueFilter = "",
    phase: PhaseFilter = "",
    output: FormatOption = Format.TABLE,
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """List jobs, queues, pools or nodes."""
    kind = KINDS.get(what, what)
    if kind not in KINDS.values():
        raise typer.BadParameter(f"{what} cannot be listed: jobs, queues, pools or nodes can")
    with connected(address) as target:
        rows: Any
        if kind == "jobs" and name:
            job = job_name([name], namespace)
            if output is Format.YAML:
                dump(target.get(f"/v1/jobs/{job}/document"), output)
                return
            rows = [target.get(f"/v1/jobs/{job}")]
        else:
            rows = target.get(f"/v1/{kind}", **({"queue": queue, "phase": phase} if kind == "jobs" else {}))
            rows = [row for row in rows if name in ("", row["name"])]
        if name and not rows:
            raise typer.BadParameter(f"there is no {kind[:-1]} {name}")
        if trouble := target.get("/v1/info").get("trouble"):
            console(stderr=True).print(f"trouble: {trouble}", style="red", markup=False)
    if output in (Format.JSON, Format.YAML):
        dump(rows, output)
    else:
        job_tables.TABLES[kind](Printer(), rows, wide=output is Format.WIDE)


def describe(words: Job, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Tell everything about a job: where it is, why, and what has happened to it."""
    job = job_name(words, namespace)
    with connected(address) as target:
        view, events = target.get(f"/v1/jobs/{job}"), target.get(f"/v1/jobs/{job}/events")
    job_tables.described(Printer(), view, events)


def logs(
    words: Job,
    follow: Follow = False,
    tail: Tail = None,
    replica: Replica = "",
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Show what the replicas of a job have written."""
    with connected(address) as target:
        try:
            following.show(target, job_name(words, namespace), follow=follow, tail=tail, replica=replica)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def cancel(words: Job, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """End a job for good; its replicas get their grace."""
    with connected(address) as target:
        typer.echo(target.delete(f"/v1/jobs/{job_name(words, namespace)}"))


def suspend(words: Job, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Stop a job, after it has saved its work, until it is resumed."""
    with connected(address) as target:
        typer.echo(target.post(f"/v1/jobs/{job_name(words, namespace)}/suspend"))


def resume(words: Job, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Let a suspended job wait for room again."""
    with connected(address) as target:
        typer.echo(target.post(f"/v1/jobs/{job_name(words, namespace)}/resume"))


def scale(words: Job, replicas: Size, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Change how many replicas a job has at most."""
    body = b'{"replicas": %d}' % replicas
    with connected(address) as target:
        typer.echo(target.post(f"/v1/jobs/{job_name(words, namespace)}/scale", body))
