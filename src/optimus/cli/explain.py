"""`optimus explain`: why a job waits, who is ahead, what would start it now, and when it starts."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from optimus.cli import live
from optimus.cli.showing import Format, FormatOption, Printer, console, dump
from optimus.cli.target import DEFAULT_NAMESPACE, Address, Job, Namespace, job_name, reached
from optimus.client import ApiError
from optimus.client.targets import Target
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.engine.copying import EngineCopy
    from optimus.engine.journal_past import Past
    from optimus.explaining import Ask, Explanation, JobSeen

INTERRUPTED = 130
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
    from msgspec import structs

    from optimus.cli.presents import duration
    from optimus.explaining import Ask

    seconds = duration("--within", within) / 1000
    job = job_name(words, namespace, address)
    with reached(address) as target:
        seen, copied, past, note = _fetch(target, job, forecast)
    os.nice(live.NICENESS)
    try:
        told = _explained(seen, copied, Ask(samples=samples, seconds=seconds, past=past) if forecast else None)
        told = structs.replace(told, notes=(*told.notes, note)) if note else told
    except KeyboardInterrupt:
        console(stderr=True).print("Stopped.", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    if output in (Format.JSON, Format.YAML):
        dump(told, output)
        return
    from optimus.cli import explain_report

    explain_report.report(Printer(), told, wide=output is Format.WIDE)


def _fetch(target: Target, job: str, forecast: bool) -> tuple[JobSeen, EngineCopy | None, Past, str]:
    """What is shown of it and, where that is not all, a copy of the engine and what its journal knows; or why not."""
    import msgspec

    from optimus.engine.journal_past import Past
    from optimus.explaining import JobSeen, needs_copy

    try:
        seen = JobSeen.of(target.job(job))
    except msgspec.ValidationError as error:
        raise live.other_version(target, error) from error
    if not needs_copy(seen):
        return seen, None, Past(), ""
    try:
        copied = live.fetch_copy(target)
    except ApiError as error:
        if error.code != "forbidden":
            raise
        return seen, None, Past(), f"neither suggestions nor a forecast: {error}"
    return seen, copied, live.fetch_past(target).usable() if forecast else Past(), ""


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
