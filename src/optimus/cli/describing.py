"""`optimus describe`: everything about one job, queue, pool or node."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from optimus.cli import completing, job_tables, thing_tables
from optimus.cli.showing import Format, FormatOption, Printer, dump
from optimus.cli.target import DEFAULT_NAMESPACE, JOB_KINDS, Address, Namespace, job_name, reached, refuse
from optimus.client.targets import Target

What = Annotated[
    list[str],
    typer.Argument(
        metavar="[job|queue|pool|node] NAME", help="A job, if no kind is said.", autocompletion=completing.described
    ),
]


def describe(
    words: What,
    output: FormatOption = Format.TABLE,
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Tell everything about a job: where it is, why, and what has happened to it.

    Of a queue: what it is due, and who runs and waits in it. Of a pool: its nodes. Of a node: who is on which GPU.
    """
    kind, rest = kind_and_name(words)
    with reached(address) as target:
        if kind == "jobs":
            job = job_name(rest, namespace, address)
            told: dict[str, Any] = {"job": target.job(job), "events": target.happenings(job)}
        else:
            told = _thing(target, kind, rest)
    if output in (Format.JSON, Format.YAML):
        dump(told, output)
    elif kind == "jobs":
        job_tables.described(Printer(), told["job"], told["events"])
    else:
        thing_tables.DESCRIBED[kind](Printer(), told)


def kind_and_name(words: list[str]) -> tuple[str, list[str]]:
    """`queue vision`, `queue/vision` and, of a job, also just its name."""
    head, slash, tail = words[0].partition("/")
    kinds = {**completing.ONE_OF_KIND, **{kind: kind for kind in completing.KINDS}}
    if head in kinds and kinds[head] != "jobs":
        return kinds[head], ([tail] if slash else []) + words[1:]
    if len(words) == 2 and words[0] not in JOB_KINDS:
        raise typer.BadParameter(
            f"{words[0]} is no kind: write job, queue, pool or node, and its NAME", param_hint="WHAT"
        )
    return "jobs", words


def _thing(target: Target, kind: str, names: list[str]) -> dict[str, Any]:
    """It, and what is shown beside it."""
    if len(names) != 1:
        raise typer.BadParameter(f"which {kind[:-1]}? Write one NAME", param_hint="NAME")
    rows = target.listed(kind)
    found = next((row for row in rows if row["name"] == names[0]), None)
    if found is None:
        known = ", ".join(row["name"] for row in rows) or "none"
        refuse(f"there is no {kind[:-1]} {names[0]}; known are {known}")
    told: dict[str, Any] = {kind[:-1]: found}
    if kind == "queues":
        below = thing_tables.below(found["name"], rows)
        told["queues"] = [row for row in rows if row["name"] in below]
        told["jobs"] = [job for job in target.jobs() if job["queue"] in {found["name"], *below} and not job["final"]]
    elif kind == "nodes":
        told["jobs"] = [job for job in target.jobs() if any(one["node"] == names[0] for one in job["replicas"])]
    else:
        told["nodes"] = thing_tables.in_pool(found["name"], rows, target.listed("nodes"))
        told["queues"] = [
            row for row in target.listed("queues") if any(share["pool"] == names[0] for share in row["gpu"])
        ]
    return told
