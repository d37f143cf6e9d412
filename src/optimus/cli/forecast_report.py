"""A forecast in a terminal: who starts when, behind whom, and why it waits."""

from __future__ import annotations

from rich.text import Text

from optimus.cli.forecasting import FORECAST, NEVER, NOW, ForecastTold, When, WorkloadForecast
from optimus.cli.moments import describe_moment
from optimus.cli.showing import Printer
from optimus.drivers.sim.forecasting.grounds import DOUBTS, GUESS
from optimus.drivers.sim.forecasting.judging import Coverage, Kept
from optimus.drivers.sim.wording import count, moment, short, shorten
from optimus.model.reasons import named
from optimus.model.units import format_about_ms as about


def report(printer: Printer, told: ForecastTold, *, wide: bool) -> None:
    printer.line(told.world, "bold")
    printer.line(f"{describe_moment(told.at_ms)}, policy {told.policy}, {_futures(told)}")
    for note in told.notes:
        printer.paragraph(note, "yellow")
    if told.claim == GUESS and told.workloads:
        printer.paragraph(f"P50 and P90 are guesses: {DOUBTS[GUESS]}.", "yellow")
    if told.stopped:
        printer.paragraph(f"{told.samples} of {told.asked} samples: {told.stopped}", "yellow")
    printer.line()
    if not told.workloads:
        printer.line("Nothing waits: every workload has its room.", "green")
        return
    header: tuple[str, ...] = ("workload", "queue", "GPUs", "waited", "P50", "P90", "in line behind", "why it waits")
    rows = [_row(row, told) for row in told.workloads]
    if told.claim == GUESS:
        header = (*header[:4], "hardly before", *header[4:])
        rows = [(*row[:4], _earliest(one, told), *row[4:]) for one, row in zip(told.workloads, rows, strict=True)]
    if wide:
        header = (*header[:-1], "run time from", header[-1])
        rows = [(*row[:-1], Text(one.run_time_from), row[-1]) for one, row in zip(told.workloads, rows, strict=True)]
    printer.columns(rows, header=header, right=(2, 3))
    if told.checked is not None:
        _print_check(printer, told, told.checked)


def _futures(told: ForecastTold) -> str:
    come = f"{told.arrivals_per_hour:g} newcomers per hour" if told.arrivals_per_hour else "nobody else comes"
    return f"{count(told.samples, 'future')} of {about(told.horizon_ms)}, {come}"


def _row(row: WorkloadForecast, told: ForecastTold) -> tuple[Text, ...]:
    beyond = f"beyond {about(told.horizon_ms)}"
    if row.state == NEVER:
        p50, p90 = Text("never", style="red"), Text("as it is", style="red")
    elif row.state == NOW:
        p50, p90 = Text("now", style="green"), Text("now", style="green")
    else:
        p50, p90 = Text(_when(row.p50, told.at_ms) or beyond), Text(_when(row.p90, told.at_ms) or beyond)
    behind = named([short(name) for name in row.behind], most=2) if row.behind else "–"
    why = shorten(f"{row.reason.code}: {row.reason.text}") if row.reason else "starts with the next decision"
    cells = (short(row.name), row.queue, f"{row.gpus:g}", about(row.waited_ms))
    return (*map(Text, cells), p50, p90, Text(behind), Text(why, style="dim"))


def _earliest(row: WorkloadForecast, told: ForecastTold) -> Text:
    if row.state != FORECAST:
        return Text("–")
    return Text(_when(row.earliest, told.at_ms) or f"beyond {about(told.horizon_ms)}")


def _when(when: When | None, now_ms: int) -> str:
    if when is None:
        return ""
    return moment(when.at_ms, when.in_ms, now_ms)


def _print_check(printer: Printer, told: ForecastTold, checked: Coverage) -> None:
    printer.line()
    if not checked.p50.forecasts:
        printer.paragraph("Nothing can be counted: in no earlier moment of this journal did something wait.", "yellow")
        return
    printer.line(f"Checked at {count(checked.moments, 'earlier moment')} of this journal", "bold")
    rows = [
        ("P50", "50 %", _part(checked.p50), count(checked.p50.forecasts, "forecast")),
        ("P90", "90 %", _part(checked.p90), count(checked.p90.forecasts, "forecast")),
    ]
    printer.columns(rows, header=("", "claims", "kept", "of"), indent=2)
    wider = told.widening
    if wider is None:
        text = "Too few outcomes to learn from: the quantiles above are as they were drawn."
    else:
        learned = f"as {count(wider.outcomes, 'outcome')} ask for"
        text = f"The times above are {wider.p50:.2f} × (P50) and {wider.p90:.2f} × (P90) what was drawn, {learned}."
    printer.paragraph(text, "dim", indent=2)


def _part(kept: Kept) -> str:
    if kept.part is None or kept.low is None or kept.high is None:
        return "–"
    return f"{kept.part:.0%} ({kept.low:.0%} to {kept.high:.0%})"
