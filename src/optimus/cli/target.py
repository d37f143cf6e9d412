"""The target: which scheduler a command talks to, and how its refusals are said.

Why: the same verbs on this machine now and on a cluster later; a command does not know which.
Owns: the options that name a target, names of jobs as people write them, and the exit codes of refusals.
Must not: know what a command wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from optimus.cli.showing import console
from optimus.client import Connection, JobError

DEFAULT_NAMESPACE = "default"
Address = Annotated[
    str,
    typer.Option(
        "--address", envvar="OPTIMUS_ADDRESS", metavar="URL", help="Of the scheduler. Else that of `optimus up` here."
    ),
]
Namespace = Annotated[
    str, typer.Option("-n", "--namespace", envvar="OPTIMUS_NAMESPACE", help="Of the job, where its name has none.")
]
Job = Annotated[list[str], typer.Argument(metavar="[job] NAME", help="NAME or NAMESPACE/NAME.")]


def job_name(words: list[str], namespace: str) -> str:
    """`train`, `job train`, `job/train` and `team/train` as namespace/name."""
    kinds = ("job", "jobs", "unifiedjob", "unifiedjobs")
    if len(words) == 2 and words[0] in kinds:
        words = words[1:]
    if len(words) != 1 or not words[0]:
        raise typer.BadParameter("name one job: NAME, or NAMESPACE/NAME")
    head, slash, tail = words[0].partition("/")
    if slash and head in kinds:
        head, slash, tail = tail.partition("/")
    if slash and (not head or not tail or "/" in tail):
        raise typer.BadParameter(f"{words[0]} is no name of a job: write NAME, or NAMESPACE/NAME")
    return f"{head}/{tail}" if slash else f"{namespace}/{head}"


@contextmanager
def connected(address: str) -> Iterator[Connection]:
    """Refusals end the command with a word and not with a traceback."""
    try:
        yield Connection(address)
    except JobError as error:
        console(stderr=True).print(f"Error: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
    except BrokenPipeError:
        raise typer.Exit(0) from None
