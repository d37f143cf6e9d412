"""`optimus simulate`: jobs of a trace under several schedulers, compared job by job."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.text import Text

from optimus.cli import simulate_options as options
from optimus.cli.showing import Format, FormatOption, Printer, console
from optimus.cli.target import complain
from optimus.drivers.sim.threads import one_thread_each

if TYPE_CHECKING:
    from optimus.cli.simulate_files import Files
    from optimus.drivers.sim.sweeping import Failed, Finished, Run, Scene, Shelf, Source, SweepError, Told, Wishes

INTERRUPTED = 130


def simulate(
    trace: options.Traces = None,
    policy: options.Policies = None,
    form: options.FormatOfTrace = "",
    option: options.Options = None,
    cluster: options.ClusterFile = None,
    nodes: options.Nodes = None,
    load: options.Loads = None,
    seed: options.Seeds = None,
    interval: options.Interval = "",
    tick: options.Tick = "",
    decision_ms: options.DecisionMs = 0,
    jobs: options.FirstJobs = None,
    predict: options.Predict = None,
    start: options.Start = "",
    restart: options.Restart = "",
    checkpoint: options.CheckpointEvery = "",
    checkpoint_cost: options.CheckpointCost = "",
    job_failures: options.JobFailures = 0.0,
    node_failures: options.NodeFailures = "",
    racks: options.Racks = 0,
    spreading: options.Spreading = "",
    neighbours: options.NeighboursCost = "",
    reference: options.Reference = "",
    html: options.Html = None,
    json: options.Json = None,
    csv: options.Csv = None,
    jobs_csv: options.JobsCsv = None,
    journal: options.JournalFolder = None,
    keep: options.Keep = None,
    processes: options.Processes = 0,
    timed: options.Timed = False,
    quiet: options.Quiet = False,
    listing: options.Listing = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Try policies on a trace: who finishes when, who waits, who pays.

    Every trace is played at every load, with every seed, under every policy; results are compared job by job.
    Policies of Optimus decide with the real engine, peers are what others have published. Fails (1) if a run fails.
    """
    one_thread_each()  # before anything imports numpy
    from msgspec import structs

    from optimus.cli import simulate_asking, simulate_assuming, simulate_files, simulate_showing
    from optimus.drivers.sim.sweeping import Shelf, SweepError, contenders, runs_of, studies

    if listing:
        simulate_showing.show_list(Printer())
        return
    loads = tuple(dict.fromkeys(load or ()))
    files = simulate_files.Files(html=html, json=json, csv=csv, jobs_csv=jobs_csv)
    _demand_places(files, len(loads), output, journal, keep)
    names = policy or ["default"]
    try:
        sources = simulate_asking.sources_of(trace or [], form, option or [])
        people = contenders(names, predict)
        chosen = simulate_asking.reference_of(reference, people)
        wishes = simulate_asking.wishes_of(cluster, nodes, loads, seed, interval, tick, decision_ms, jobs, predict)
        assumed = simulate_assuming.assumptions_of(
            *(start, restart, checkpoint, checkpoint_cost, job_failures, node_failures, racks, spreading, neighbours)
        )
        wishes = structs.replace(wishes, assumed=assumed)
        scenes = _scenes(sources, wishes, quiet)
        shelf = Shelf(keep) if keep else None
        runs = runs_of(scenes, people, timed=timed, journal=journal)
        results = _run(scenes, runs, processes or (os.cpu_count() or 1), shelf, quiet)
        notes = wishes.cluster.notes if wishes.cluster else ()
        told = studies(scenes, runs, results, reference=chosen, command=_command(), notes=notes)
    except SweepError as error:
        _refuse(error)
    unwritten = _write(files, told, quiet)  # first: who reads the tables may hang up, and that ends the command
    _show(told, output, quiet)
    if unwritten is not None:  # a full disk does not take the tables with it
        _refuse(unwritten)
    if any(one.failures for one in told):
        raise typer.Exit(1)


def _scenes(sources: Sequence[Source], wishes: Wishes, quiet: bool) -> tuple[Scene, ...]:
    from optimus.drivers.sim.sweeping import scenes

    errors = console(stderr=True)
    if quiet or not errors.is_terminal:
        return scenes(sources, wishes)
    with errors.status("reading jobs"):
        return scenes(sources, wishes)


def _run(
    scenes: Sequence[Scene], runs: Sequence[Run], processes: int, shelf: Shelf | None, quiet: bool
) -> dict[int, Finished | Failed]:
    from optimus.cli.simulate_showing import watching
    from optimus.drivers.sim.sweeping import sweep

    results: dict[int, Finished | Failed] = {}
    try:
        with watching(scenes, runs, quiet=quiet) as watcher:
            sweep(scenes, runs, processes=processes, watcher=watcher, shelf=shelf, results=results)
    except KeyboardInterrupt:
        done = f"Stopped: {len(results)} of {len(runs)} runs are done"
        kept = " and not kept; with --keep DIR the same command would go on from there."
        if shelf is not None:
            kept = f" and kept in {shelf.folder}; the same command goes on from there."
        console(stderr=True).print(Text(done + kept, style="yellow"))
        raise typer.Exit(INTERRUPTED) from None
    return results


def _write(files: Files, told: Sequence[Told], quiet: bool) -> SweepError | None:
    """What could not be written."""
    from optimus.drivers.sim.sweeping import SweepError

    errors = console(stderr=True)
    try:
        for path in files.write(told):
            if not quiet:
                errors.print(Text(f"wrote {path}", style="dim"))
    except SweepError as error:
        return error
    return None


def _show(told: Sequence[Told], output: Format, quiet: bool) -> None:
    from optimus.cli import simulate_showing as showing

    if output in (Format.JSON, Format.YAML):
        showing.dump_study(told[0], output)
    else:
        showing.show(Printer(), told, wide=output is Format.WIDE, quiet=quiet)
    errors = Printer(console(stderr=True))
    for failure in dict.fromkeys(failure for one in told for failure in one.failures):
        errors.line(failure, "red")


def _demand_places(files: Files, loads: int, output: Format, journal: Path | None, keep: Path | None) -> None:
    """Before hours of work, and not after them."""
    for name, path in files.asked():
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder; name a file" if path.is_dir() else f"there is no folder {path.parent}"
            raise typer.BadParameter(f"{path}: {what}", param_hint=name)
    if output in (Format.JSON, Format.YAML) and loads > 1:
        raise typer.BadParameter("several loads are several studies; write them with --json FILE", param_hint="-o")
    if keep is not None and keep.exists() and not keep.is_dir():
        raise typer.BadParameter(f"{keep}: is a file; name a folder", param_hint="--keep")
    if journal is not None and journal.exists() and (not journal.is_dir() or any(journal.iterdir())):
        raise typer.BadParameter(f"{journal}: is there already; name a new folder", param_hint="--journal")


def _command() -> str:
    """Without what changes no number: where results go, and how many processes worked."""
    import sys

    from optimus.cli.simulate_files import WITHOUT_EFFECT

    kept, skip = [], False
    for word in sys.argv[1:]:
        name = word.partition("=")[0]
        if not skip and name not in WITHOUT_EFFECT:
            kept.append(word)
        skip = not skip and WITHOUT_EFFECT.get(name, False) and "=" not in word
    return shlex.join(["optimus", *kept])


def _refuse(error: SweepError) -> NoReturn:
    """Wrong usage is 2, a file that cannot be used is 1; everything that is wrong is told."""
    typed = [complaint for complaint in error.complaints if complaint.option]
    if typed:
        hints = list(dict.fromkeys(complaint.option for complaint in typed))
        text = "\n".join(complaint.message for complaint in error.complaints)
        raise typer.BadParameter(text, param_hint=", ".join(hints)) from None
    complain("\n".join(complaint.message for complaint in error.complaints))
    raise typer.Exit(1) from None
