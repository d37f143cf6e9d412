"""What can be done with jobs that are there: logs, cancel, suspend, resume, scale; and deleting queues and pools."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from optimus.cli import completing, following
from optimus.cli.describing import kind_and_name
from optimus.cli.showing import say
from optimus.cli.target import (
    DEFAULT_NAMESPACE,
    Address,
    Job,
    Jobs,
    Namespace,
    complain,
    demand_namespace,
    job_name,
    job_names,
    reached,
)
from optimus.client import ApiError
from optimus.client.connection import find_name
from optimus.client.targets import Target, is_cluster
from optimus.model.gang_validation import MOST_REPLICAS
from optimus.model.reasons import counted, named

SHOWN = 5
"""Names in a question."""
MOST_LINES, MOST_ATTEMPTS = 1_000_000, 999_999_999
"""That anybody serves (docs/reference/http.md)."""
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Until it is over.")]
Tail = Annotated[
    int | None, typer.Option(min=0, max=MOST_LINES, metavar="N", help="The last lines of each replica only.")
]
Replica = Annotated[
    str, typer.Option(metavar="NAME", help="Of this replica only, such as worker-0; of an array 3-worker-0.")
]
Part = Annotated[
    int | None,
    typer.Option(min=0, max=MOST_ATTEMPTS, metavar="N", help="Of this part of an array only; the first is 0."),
]
Attempt = Annotated[
    int | None, typer.Option(min=1, max=MOST_ATTEMPTS, metavar="N", help="Of this attempt only; the first is 1.")
]
Previous = Annotated[bool, typer.Option("-p", "--previous", help="Of the attempt before the present one.")]
Size = Annotated[
    int, typer.Option("--replicas", min=1, max=MOST_REPLICAS, metavar="N", help="At most so many from now on.")
]
Everything = Annotated[
    bool, typer.Option("--all", help="All that are not over, or with -n those of one namespace; it asks before.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask before.")]
Thing = Annotated[
    list[str], typer.Argument(metavar="queue|pool NAME…", help="Which.", autocompletion=completing.deleted)
]


def logs(
    words: Job,
    follow: Follow = False,
    tail: Tail = None,
    replica: Replica = "",
    part: Part = None,
    attempt: Attempt = None,
    previous: Previous = False,
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Show what the replicas of a job have written, each line with whose it is where there are several."""
    if previous and (follow or attempt is not None):
        raise typer.BadParameter("is of the past and one attempt: without -f and --attempt", param_hint="--previous")
    job = job_name(words, namespace, address)
    with reached(address) as target:
        if previous:
            attempt = int(target.job(job)["attempt"]) - 1
            if attempt < 1:
                raise ApiError(404, "missing", f"{job} has no earlier attempt")
        following.show(target, job, follow=follow, tail=tail, replica=replica, attempt=attempt, part=part)


def cancel(
    words: Jobs = [],  # noqa: B006 - typer wants a list, and nobody changes it
    everything: Everything = False,
    yes: Yes = False,
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """End jobs for good; their replicas get their grace."""
    if everything and words:
        raise typer.BadParameter("is all of them: without names", param_hint="--all")
    if not everything and not words:
        raise typer.BadParameter("which job? Write its NAME, or --all", param_hint="NAME")
    names = _all_that_are_not_over(address, namespace, yes) if everything else job_names(words, namespace, address)
    _each(address, names, lambda target, job: target.cancel(job))


def _all_that_are_not_over(address: str, namespace: str, yes: bool) -> list[str]:
    """Asks before, as one word ends the work of many."""
    demand_namespace(namespace)
    if is_cluster(find_name(address)):
        raise typer.BadParameter("is for one machine; on a cluster, name the jobs", param_hint="--all")
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter("nobody is there to be asked: add --yes", param_hint="--yes")
    with reached(address) as target:
        names = [f"{job['namespace']}/{job['name']}" for job in target.jobs(namespace=namespace) if not job["final"]]
    if not names:
        say("There is no job that is not over.", "dim")
    elif not yes and not typer.confirm(f"Cancel {counted(len(names), 'job')}: {named(names, most=SHOWN)}?", err=True):
        raise typer.Exit(1)
    return names


def suspend(words: Jobs, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Stop jobs until they are resumed. Those with a checkpoint save their work first; others begin anew."""
    _each(address, job_names(words, namespace, address), lambda target, job: target.suspend(job))


def resume(words: Jobs, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Let suspended jobs wait for room again."""
    _each(address, job_names(words, namespace, address), lambda target, job: target.resume(job))


def scale(words: Job, replicas: Size, address: Address = "", namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Change how many replicas a job has at most."""
    with reached(address) as target:
        typer.echo(target.scale(job_name(words, namespace, address), replicas))


def delete(words: Thing, address: Address = "") -> None:
    """Remove queues or pools. To change one, submit it anew.

    One that is still needed is kept (1), and what needs it is told.
    """
    kind, names = kind_and_name(words)
    if kind not in ("queues", "pools"):
        told = "jobs are cancelled: optimus cancel NAME" if kind == "jobs" else "nodes come from `optimus up`"
        raise typer.BadParameter(f"write queue NAME or pool NAME; {told}", param_hint="WHAT")
    if not names:
        raise typer.BadParameter(f"which {kind[:-1]}? Write its NAME", param_hint="NAME")
    _each(address, names, lambda target, name: target.delete(kind, name))


def _each(address: str, names: list[str], do: Callable[[Target, str], str]) -> None:
    """One that is refused does not keep the others from being done."""
    refused = False
    with reached(address) as target:
        for name in names:
            try:
                typer.echo(do(target, name))
            except ApiError as error:
                complain(str(error))
                refused = True
    if refused:
        raise typer.Exit(1)
