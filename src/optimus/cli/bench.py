"""`optimus bench`: how fast the scheduler is on this machine, beside what was measured for this version."""

from __future__ import annotations

import json
import subprocess
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.text import Text

from optimus.cli.showing import Format, FormatOption, Printer, console, dump, example, tracked
from optimus.drivers.sim.threads import one_thread_each

app = typer.Typer(
    help="Measure how fast the scheduler is on this machine.",
    epilog=example("optimus bench decide"),
    no_args_is_help=True,
    rich_markup_mode=None,
)
Only = Annotated[
    list[str] | None,
    typer.Argument(metavar="ROW…", help="Only these: empty, shapes, steady, reclaim, consolidate."),
]


class Row(Struct, frozen=True, rename="camel"):
    row: str
    title: str
    seconds: float
    measured_seconds: float
    """When this version was made, on the machine of `measuredOn`."""
    target_seconds: float
    peak_mib: int


class Bench(Struct, frozen=True, rename="camel"):
    machine: dict[str, str]
    measured_on: dict[str, str]
    rows: tuple[Row, ...]


@app.command(epilog=example("optimus bench decide", "optimus bench decide empty reclaim -o json"))
def decide(row: Only = None, output: FormatOption = Format.TABLE) -> None:
    """Let the brain decide five large worlds, and say how long each takes. About a minute.

    Times are CPU seconds of one core, the best of three.
    """
    one_thread_each()
    from optimus.measuring.decide import MEASURED, ROWS, in_own_process
    from optimus.measuring.timing import machine

    for name in row or ():
        if name not in ROWS:
            raise typer.BadParameter(f"there is no row {name}; known are {', '.join(ROWS)}", param_hint="ROW")
    chosen = [name for name in ROWS if not row or name in row]
    before: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    here = machine()
    found = []
    for name in tracked(chosen, len(chosen), "measuring", lambda name: f"measuring {name}", at_once=True):
        title, target = ROWS[name]
        try:
            told = in_own_process(name)
        except subprocess.CalledProcessError as error:
            why = (error.stderr or "").strip().splitlines() or [f"it ended with {error.returncode}"]
            console(stderr=True).print(f"Error: {name} could not be measured: {why[-1]}", style="red", markup=False)
            raise typer.Exit(1) from None
        measured = before["rows"][name]["seconds"]
        found.append(Row(name, title, round(told["seconds"], 3), measured, target, told["peak_mib"]))
    bench = Bench(here, before["machine"], tuple(found))
    if output in (Format.JSON, Format.YAML):
        dump(bench, output)
    else:
        _show(Printer(), bench)


def _show(printer: Printer, bench: Bench) -> None:
    rows = [
        (
            Text(f"{one.seconds:.2f} s", style="green" if one.seconds <= one.target_seconds else "yellow"),
            f"{one.measured_seconds:.2f} s",
            f"{one.target_seconds:.1f} s",
            f"{one.peak_mib} MiB",
            one.title,
        )
        for one in bench.rows
    ]
    printer.columns(rows, header=["here", "measured", "target", "memory", "one cycle of"], right=(0, 1, 2, 3))
    printer.line()
    for what, machine in (("here", bench.machine), ("measured", bench.measured_on)):
        told = f"{machine['cpu']}, Python {machine['python']}, load {machine['load_when_started']} when it started"
        printer.paragraph(f"{what}: {told}", "dim")
