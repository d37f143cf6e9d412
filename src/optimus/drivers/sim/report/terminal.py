"""The terminal: tables as text in columns, coloured only where the console is."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from optimus.drivers.sim.measuring.study import Study
from optimus.drivers.sim.report import overview
from optimus.drivers.sim.report.cells import Table, Tone
from optimus.drivers.sim.report.numbers import count, duration

STYLES = {Tone.PLAIN: "", Tone.STRONG: "bold", Tone.FAINT: "dim", Tone.GOOD: "green", Tone.BAD: "red"}

_UNLIMITED = 10_000


def print_study(console: Console, study: Study, *, wide: bool = False) -> None:
    """The headline, the use of the cluster and, against the reference, who won and lost; `wide` shows every table."""
    cluster, told = study.cluster, study.mean[0]
    say(console, Text.assemble((study.provenance.trace, "bold"), (f"  {_scene(study)}", "dim")))
    if study.provenance.assumptions:
        costs = "; ".join(f"{what}: {cost}" for what, cost in study.provenance.assumptions)
        say(console, Text(f"Assumed: {costs}.", style="dim"))
    shown = (
        overview.tables(study)
        if wide
        else (overview.completion(study), overview.utilisation(study), overview.disturbance(study))
    )
    for table in shown:
        say(console)
        print_table(console, table)
    for comparison in study.comparisons:
        say(console)
        print_table(console, overview.balances(comparison))
        for met, text in overview.standard(comparison):
            say(console, Text.assemble(("  ✓ ", "green") if met else ("  ✗ ", "red"), text))
    if told.finished == 0:
        say(console, Text(f"No job finished on {count(cluster.gpus)} GPUs.", style="red"))


def _scene(study: Study) -> str:
    cluster, told = study.cluster, study.mean[0]
    shapes = ", ".join(cluster.shapes)
    return f"{count(told.jobs)} jobs on {count(cluster.gpus)} GPUs ({shapes}), {duration(told.makespan_ms)}"


def print_table(console: Console, table: Table) -> None:
    if table.title:
        say(console, Text(table.title, style="bold"))
    grid = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for column in table.columns:
        title = f"{column.title} [{column.unit}]" if column.unit else column.title
        grid.add_column(Text(title), justify="right" if column.right else "left", no_wrap=not console.is_terminal)
    for row in table.rows:
        grid.add_row(*(Text(cell.text, style=STYLES[cell.tone]) for cell in row))
    if console.is_terminal:
        console.print(grid)
    else:  # into a pipe or a file one line stays one line, and a console never prints beyond its own width
        width = Measurement.get(console, console.options.update(max_width=_UNLIMITED), grid).maximum
        Console(file=console.file, width=width, color_system=None, highlight=False, emoji=False).print(grid)
    if table.note:
        say(console, Text(table.note, style="dim"))


def say(console: Console, text: Text | str = "") -> None:
    console.print(text, soft_wrap=not console.is_terminal)
