"""`optimus explain`: why a job waits, who is ahead, what would start it now, and when it starts."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from optimus.cli.showing import Format, FormatOption, Printer, console, dump
from optimus.cli.target import DEFAULT_NAMESPACE, Address, Job, Namespace, connected, job_name
from optimus.client import ApiError, Connection
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.engine.copying import EngineCopy
    from optimus.explaining import Ask, Explanation, JobSeen

NICENESS = 10
INTERRUPTED = 130
HERE = ("127.0.0.1", "::1", "localhost")
Samples = Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Futures that are played.")]
WithForecast = Annotated[bool, typer.Option("--forecast/--no-forecast", help="Whether it is said when it starts.")]
Within = Annotated[str, typer.Option(metavar="TIME", help="Stop after this time and use the futures that are done.")]


def explain(
    words: Job,
    samples: Samples = 40,
    forecast: WithForecast = True,
    within: Within = "30s",
    output: FormatOption = Format.TABLE,
    address: Address = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Say why a job waits, who is ahead of it, what would start it now, and when it starts.

    The scheduler hands out a copy of its state and goes on; all the rest is done here, with low priority. Every
    suggestion was tried on the copy, by the engine that decides. Fails (1) if there is no such job.
    """
    one_thread_each()
    from optimus.cli.presents import duration
    from optimus.explaining import Ask

    seconds = duration("--within", within) / 1000
    job = job_name(words, namespace)
    with connected(address) as target:
        seen, copied = _fetch(target, job)
    os.nice(NICENESS)
    try:
        told = _explained(seen, copied, Ask(samples=samples, seconds=seconds) if forecast else None)
    except KeyboardInterrupt:
        console(stderr=True).print("Stopped.", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    if output in (Format.JSON, Format.YAML):
        dump(told, output)
        return
    from optimus.cli import explain_report

    explain_report.report(Printer(), told, wide=output is Format.WIDE)


def _fetch(target: Connection, job: str) -> tuple[JobSeen, EngineCopy | None]:
    """What is shown of it and, where that is not all, a copy of the engine. A policy from a file is run here: only one
    of this machine is."""
    import msgspec

    from optimus.engine.copying import CopyError, read_copy
    from optimus.explaining import JobSeen, needs_copy

    try:
        seen = JobSeen.of(target.get(f"/v1/jobs/{job}"))
        if not needs_copy(seen):
            return seen, None
        copied = read_copy(target.raw("/v1/state"))
    except (msgspec.ValidationError, CopyError) as error:
        raise ApiError(0, "", f"{target.address} tells something else than this version reads: {error}") from error
    if copied.policy_file and urlsplit(target.address).hostname not in HERE:
        path = copied.policy
        raise ApiError(0, "", f"the policy {path} is a file of another machine: ask there, where it can be read")
    return seen, copied


def _explained(seen: JobSeen, copied: EngineCopy | None, ask: Ask | None) -> Explanation:
    """On a terminal with its progress."""
    from optimus.explaining import explain as explain_job

    now_ms = copied.now_ms if copied is not None else time.time_ns() // 1_000_000
    errors = console(stderr=True)
    if copied is None or not errors.is_terminal:
        return explain_job(seen, now_ms, copied, ask)
    with errors.status("trying what would start it") as status:
        return explain_job(
            seen,
            now_ms,
            copied,
            ask,
            tell=lambda done: status.update(f"playing futures: {done} of {ask.samples if ask else 0}"),
        )
