"""`optimus get`: lists of jobs, queues, pools and nodes, once or as they change."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from optimus.cli import completing, job_tables
from optimus.cli.showing import Format, FormatOption, Printer, console, dump
from optimus.cli.target import DEFAULT_NAMESPACE, Address, complain, demand_namespace, job_names, reached, refuse
from optimus.client import ApiError
from optimus.client.targets import Target, View

What = Annotated[
    str,
    typer.Argument(metavar="jobs|queues|pools|nodes", help="What to list.", autocompletion=completing.kinds),
]
Which = Annotated[
    list[str] | None, typer.Argument(metavar="NAME…", help="Only these.", autocompletion=completing.names)
]
Queue = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="Jobs of this queue only.", autocompletion=completing.queues)
]
Phase = Annotated[
    str,
    typer.Option(
        "--phase",
        metavar="PHASE",
        help="Jobs in this phase only, such as Pending.",
        autocompletion=completing.phases,
    ),
]
Class = Annotated[
    str,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="Jobs of this class only: interactive, unattended or inference.",
        autocompletion=completing.classes,
    ),
]
Space = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        envvar="OPTIMUS_NAMESPACE",
        metavar="NAME",
        help="Jobs of this namespace only. Else of all.",
        show_envvar=False,
    ),
]
AllSpaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Of all, also where -n is set elsewhere.")]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Then a line for every change, until Ctrl-C. Jobs only.")]


def get(
    what: What,
    names: Which = None,
    queue: Queue = "",
    phase: Phase = "",
    workload_class: Class = "",
    watch: Watch = False,
    all_namespaces: AllSpaces = False,
    output: FormatOption = Format.TABLE,
    address: Address = "",
    namespace: Space = "",
) -> None:
    """List jobs, queues, pools or nodes. Fails (1) if one that is named is not there."""
    kind = completing.ONE_OF_KIND.get(what, what)
    if kind not in completing.KINDS:
        raise typer.BadParameter(f"{what} cannot be listed; jobs, queues, pools and nodes can", param_hint="WHAT")
    space = "" if all_namespaces else namespace
    demand_namespace(space)
    filters = {
        "queue": queue,
        "phase": _one_of(phase.capitalize(), completing.phases(""), "--phase"),
        "jobClass": _one_of(workload_class.lower(), completing.classes(""), "--class"),
    }
    if kind != "jobs" and (watch or any(filters.values())):
        raise typer.BadParameter(f"--queue, --phase, --class and --watch are for jobs, not for {kind}")
    missing: list[str] = []
    with reached(address) as target:
        if kind == "jobs" and not names:
            rows = target.jobs(namespace=space, **filters)
            _demand_queue(target, queue, rows)
        elif kind == "jobs":
            rows, missing = _named_jobs(target, job_names(names or [], space or DEFAULT_NAMESPACE, address))
            rows = [row for row in rows if _is_wanted(row, "", filters)]
        else:
            rows, missing = _named(target.listed(kind), kind, names or [])
        if trouble := target.trouble():
            console(stderr=True).print(f"trouble: {trouble}", style="red", markup=False)
        if watch:
            _watch(
                target,
                rows,
                [f"{row['namespace']}/{row['name']}" for row in rows] if names else [],
                space,
                filters,
                output,
            )
        elif kind == "jobs" and names and output is Format.YAML:
            _show_documents(target, rows)
        else:
            _show(kind, rows, output, narrowed=bool(space or any(filters.values())), missing=bool(missing))
    for text in missing:
        complain(text)
    if missing:
        raise typer.Exit(1)


def _one_of(value: str, known: list[str], option: str) -> str:
    if value and value not in known:
        raise typer.BadParameter(f"there is no {value}; known are {', '.join(known)}", param_hint=option)
    return value


def _named_jobs(target: Target, jobs: list[str]) -> tuple[list[View], list[str]]:
    rows, missing = [], []
    for job in jobs:
        try:
            rows.append(target.job(job))
        except ApiError as error:
            if error.code != "missing":
                raise
            missing.append(str(error))
    return rows, missing


def _named(rows: list[View], kind: str, names: list[str]) -> tuple[list[View], list[str]]:
    known = {row["name"]: row for row in rows}
    told = ", ".join(known) or "none"
    missing = [f"there is no {kind[:-1]} {name}; known are {told}" for name in names if name not in known]
    return ([known[name] for name in dict.fromkeys(names) if name in known] if names else rows), missing


def _demand_queue(target: Target, queue: str, rows: list[View]) -> None:
    """An empty list because of a wrong letter would be a wrong answer."""
    if queue and not rows:
        known = [row["name"] for row in target.listed("queues")]
        if queue not in known:
            refuse(f"there is no queue {queue}; known are {', '.join(known) or 'none'}")


def _is_wanted(row: View, space: str, filters: dict[str, str]) -> bool:
    wanted = {"namespace": space, **filters}
    return all(row[name] == value for name, value in wanted.items() if value)


def _show(kind: str, rows: list[View], output: Format, *, narrowed: bool, missing: bool) -> None:
    if output in (Format.JSON, Format.YAML):
        dump(rows, output)
    elif rows or not (narrowed or missing):
        job_tables.TABLES[kind](Printer(), rows, wide=output is Format.WIDE)
    elif not missing:
        console(stderr=True).print(f"No such {kind}.", style="dim")


def _show_documents(target: Target, rows: list[View]) -> None:
    """What can be submitted again."""
    for number, row in enumerate(rows):
        if number:
            typer.echo("---")
        dump(target.document(f"{row['namespace']}/{row['name']}"), Format.YAML)


# -- as they change -----------------------------------------------------------------------------------------------


def _watch(
    target: Target, rows: list[View], only: list[str], space: str, filters: dict[str, str], output: Format
) -> None:
    if output is Format.YAML:
        raise typer.BadParameter("changes are told as a table or as a line of json each", param_hint="-o")
    printer, wide = Printer(), output is Format.WIDE
    seen = {f"{row['namespace']}/{row['name']}": _looks(row) for row in rows}
    if output is Format.JSON:
        for row in rows:
            _line(row)
    else:
        job_tables.jobs(printer, rows, wide=wide, least=job_tables.WATCHED)
    for told in target.changes():
        for job, row in (told.get("jobs") or {}).items():
            if row is None or (only and job not in only) or not (job in seen or _is_wanted(row, space, filters)):
                continue
            if seen.get(job) == _looks(row):
                continue
            seen[job] = _looks(row)
            if output is Format.JSON:
                _line(row)
            else:
                job_tables.jobs(printer, [row], wide=wide, least=job_tables.WATCHED, header=False)


def _line(row: View) -> None:
    typer.echo(json.dumps(row, ensure_ascii=False))


def _looks(row: View) -> tuple[Any, ...]:
    """What of a job somebody would see change."""
    reason = (row["reason"] or {}).get("text")
    return row["phase"], row["runningReplicas"], row["gpuMilli"], row["attempt"], row["counts"], reason
