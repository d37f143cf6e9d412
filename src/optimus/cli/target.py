"""The target: which scheduler a command talks to, and how its refusals are said.

Why: the same verbs on this machine and on a cluster; a command does not know which.
Owns: the options that name a target, names of jobs as people write them, and the exit codes of refusals.
Must not: know what a command wants.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from optimus.cli import completing
from optimus.cli.showing import hang_up, say
from optimus.client import Connection, JobError
from optimus.client.connection import find_name
from optimus.client.targets import FORMS, Target, is_cluster, target_of
from optimus.model.labels import is_label

if TYPE_CHECKING:
    from optimus.drivers.kube.grouping import Kinds

DEFAULT_NAMESPACE = ""
"""That of the target: `default` on one machine, that of the context on a cluster."""
REFUSED, WRONG_USAGE = 1, 2
"""Exit codes: understood, and refused or failed; what was typed cannot be used, whoever is asked."""
VARIABLE = "OPTIMUS_TARGET"
JOB_KINDS = ("job", "jobs", "unifiedjob", "unifiedjobs")
Address = Annotated[
    str,
    typer.Option(
        "--target",
        "--address",
        envvar=[VARIABLE, "OPTIMUS_ADDRESS"],
        metavar="TARGET",
        help=f"Which scheduler: {FORMS}. Else that of `optimus up` of this user.",
        show_envvar=False,
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        envvar="OPTIMUS_NAMESPACE",
        metavar="NAME",
        help="Of the job, where its name has none. Else default; on a cluster, that of the context.",
        show_envvar=False,
    ),
]
Job = Annotated[
    list[str],
    typer.Argument(metavar="[job] NAME", help="NAME or NAMESPACE/NAME.", autocompletion=completing.jobs),
]
Jobs = Annotated[
    list[str],
    typer.Argument(metavar="[job] NAME…", help="NAME or NAMESPACE/NAME, also several.", autocompletion=completing.jobs),
]


def choose(target: str) -> None:
    """Before the command: as if the variable said so, since the option after the command comes before both."""
    if target:
        os.environ[VARIABLE] = target


def job_name(words: list[str], namespace: str, address: str = "") -> str:
    """`train`, `job train`, `job/train` and `team/train` as namespace/name; on a cluster also with a kind."""
    names = job_names(words, namespace, address)
    if len(names) > 1:
        raise typer.BadParameter(
            f"{' '.join(words)!r} is not one job: write [job] NAME, or NAMESPACE/NAME", param_hint="NAME"
        )
    return names[0]


def job_names(words: list[str], namespace: str, address: str = "") -> list[str]:
    demand_namespace(namespace)
    if len(words) > 1 and words[0] in JOB_KINDS:
        words = words[1:]
    elif words and words[0] in JOB_KINDS:
        raise typer.BadParameter("which job? Write its NAME after the word job", param_hint="NAME")
    whole = _name_on_cluster if is_cluster(find_name(address)) else _whole_name
    return list(dict.fromkeys(whole(word, namespace) for word in words))


def demand_namespace(name: str) -> None:
    """Refused as those are who submit to it: an empty list because of a wrong letter would be a wrong answer."""
    if not name or is_label(name):
        return
    from optimus.api.specs.job_fields import wrong_label

    raise typer.BadParameter(wrong_label(name), param_hint="--namespace")


def _whole_name(word: str, namespace: str) -> str:
    head, slash, tail = word.partition("/")
    if slash and head in JOB_KINDS:
        head, slash, tail = tail.partition("/")
    if not head or (slash and (not tail or "/" in tail)):
        raise typer.BadParameter(f"{word!r} is no name of a job: write NAME, or NAMESPACE/NAME", param_hint="NAME")
    return f"{head}/{tail}" if slash else f"{namespace or 'default'}/{head}"


def demand_kinds(path: str) -> Kinds:
    """The table of kinds with those of users over it; all that is wrong with them ends the command."""
    from optimus.drivers.kube.grouping import load_kinds

    kinds, errors = load_kinds(*([path] if path else ()))
    if errors:
        complain("\n       ".join(map(str, errors)))
        raise typer.Exit(WRONG_USAGE)
    return kinds


def _name_on_cluster(word: str, namespace: str) -> str:
    """Where no namespace is said, the target adds its own."""
    from optimus.drivers.kube.desk.naming import known_kinds, read_name

    try:
        name = read_name(word, namespace or "default", known_kinds())
    except JobError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    return str(name) if namespace else word


def connection_to(address: str) -> Connection:
    """A target that can be none is wrong usage; whether somebody answers there turns out later."""
    connection = Connection(address)
    try:
        connection.check_address(FORMS)
    except JobError as error:
        raise typer.BadParameter(str(error), param_hint="--target") from None
    return connection


@contextmanager
def connected(address: str) -> Iterator[Connection]:
    """Refusals end the command with a word and not with a traceback."""
    connection = connection_to(address)
    try:
        yield connection
    except JobError as error:
        refuse(str(error))
    except BrokenPipeError:
        hang_up()
        raise typer.Exit(0) from None


@contextmanager
def reached(address: str) -> Iterator[Target]:
    """The same, for commands that need no more than a `Target`."""
    named = find_name(address)
    if not is_cluster(named):
        with connected(address) as connection:
            yield target_of(connection)
        return
    from optimus.drivers.kube.desk.target import open_cluster

    try:
        yield open_cluster(named, lambda text: say(f"Warning: {text}", "yellow"))
    except JobError as error:
        refuse(str(error))
    except BrokenPipeError:
        hang_up()
        raise typer.Exit(0) from None


def complain(text: str) -> None:
    say(f"Error: {text}", "red")


def refuse(text: str) -> NoReturn:
    complain(text)
    raise typer.Exit(REFUSED) from None
