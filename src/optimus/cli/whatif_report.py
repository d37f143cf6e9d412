"""A what-if in a terminal: both worlds in columns, queue by queue, and who starts sooner or later."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from rich.text import Text

from optimus.cli.forecast_report import about
from optimus.cli.showing import Printer
from optimus.drivers.sim.whatif.effects import Effect, StartTold, WorldTold
from optimus.drivers.sim.wording import count, short

VERSION = 1
SHOWN = 5
"""Of those that start sooner, and of those that start later."""
GOOD, BAD = "green", "red"


class WhatIfTold(Struct, frozen=True, kw_only=True, rename="camel"):
    """What `optimus what-if` shows or dumps."""

    version: int = VERSION
    world: str
    played: str
    """What was played, in words."""
    changes: tuple[str, ...]
    seed: int
    horizon_ms: int | None = None
    """Null where the past was played."""
    price: float | None = None
    effect: Effect
    notes: tuple[str, ...] = ()
    left_out: int = 0
    """Jobs of the journal or trace that could not be used."""


def report(printer: Printer, told: WhatIfTold, *, wide: bool, quiet: bool) -> None:
    effect = told.effect
    printer.line(told.world, "bold")
    samples = f", {count(effect.samples, 'future')}" if told.horizon_ms else ""
    printer.line(f"{told.played}{samples}")
    for change in told.changes:
        printer.line(f"  + {change}")
    for note in () if quiet else told.notes:
        printer.paragraph(note, "yellow")
    printer.line()
    _worlds(printer, effect)
    printer.line()
    _queues(printer, effect)
    printer.line()
    _starts(printer, told, wide=wide)


# -- both worlds --------------------------------------------------------------------------------------------------


def _worlds(printer: Printer, effect: Effect) -> None:
    one, two = effect.today, effect.changed
    rows: list[tuple[str | Text, ...]] = [
        _row("waiting, average", one.wait_ms.average, two.wait_ms.average, _time, less=True),
        _row("waiting, P90", one.wait_ms.p90, two.wait_ms.p90, _time, less=True),
        _row("waiting, longest", one.longest_wait_ms, two.longest_wait_ms, _time, less=True),
        _row("completion, average", one.jct_ms.average, two.jct_ms.average, _time, less=True),
        _row("finished", one.finished, two.finished, _number, less=False),
        _row("not finished", one.unfinished, two.unfinished, _number, less=True),
        _row("cannot start", one.rejected, two.rejected, _number, less=True),
        _row("GPUs", float(one.gpus), float(two.gpus), _number),
        _row("GPUs in use", one.allocated, two.allocated, _part, less=False),
        _row("GPU-hours used", one.gpu_hours, two.gpu_hours, _number),
        _row("GPU-hours lost", one.lost_gpu_hours, two.lost_gpu_hours, _number, less=True),
        _row("preemptions", one.preemptions, two.preemptions, _number, less=True),
        *_costs(one, two),
    ]
    shown = [
        row for row in rows if not (row[0] in ("not finished", "cannot start", "GPU-hours lost") and _is_nothing(row))
    ]
    policies = (one.policy, two.policy) if one.policy != two.policy else ("", "")
    header = ("", f"today {policies[0]}".strip(), f"changed {policies[1]}".strip(), "difference")
    printer.columns(shown, header=header, right=(1, 2, 3))
    if one.cost is not None:
        printer.paragraph(f"Costs are of {about(effect.compared_ms)}, the longer of both.", "dim")


def _costs(one: WorldTold, two: WorldTold) -> list[tuple[str | Text, ...]]:
    if one.cost is None or two.cost is None:
        return []
    return [
        _row("cost of the cluster", one.cost.cluster, two.cost.cluster, _money, less=True),
        _row("  of it idle", one.cost.idle, two.cost.idle, _money, less=True),
        _row("  per finished job", one.cost.per_finished_job, two.cost.per_finished_job, _money, less=True),
    ]


def _is_nothing(row: tuple[str | Text, ...]) -> bool:
    return str(row[1]) == "0" and str(row[2]) == "0"


def _row(
    name: str,
    today: float | None,
    changed: float | None,
    show: Callable[[float], str],
    less: bool | None = None,
) -> tuple[str | Text, ...]:
    """`less`: whether less is better; None: neither is."""
    cells = [show(value) if value is not None else "–" for value in (today, changed)]
    if today is None or changed is None or cells[0] == cells[1]:
        return name, *cells, ""
    gained = None if less is None else (changed < today) == less
    style = "" if gained is None else GOOD if gained else BAD
    sign = "−" if changed < today else "+"
    percent = f" ({sign}{abs(changed / today - 1):.0%})" if today and show is not _part else ""
    return name, *cells, Text(f"{sign}{show(abs(changed - today))}{percent}", style=style)


def _time(ms: float) -> str:
    return about(round(ms))


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _part(value: float) -> str:
    return f"{value * 100:.1f} %"


def _money(value: float) -> str:
    return f"{value:,.2f}"


# -- queues and starts --------------------------------------------------------------------------------------------


def _queues(printer: Printer, effect: Effect) -> None:
    after = {queue.queue: queue for queue in effect.changed.queues}
    rows = []
    for one in effect.today.queues:
        two = after.get(one.queue, one)
        rows.append(
            (
                one.queue,
                str(one.jobs),
                _pair(one.guarantee_gpus, two.guarantee_gpus, lambda value: f"{value:g}"),
                _pair(one.due_share, two.due_share, _part),
                _pair(one.share, two.share, _part),
                _pair(one.gpu_hours, two.gpu_hours, _number),
                _pair(one.wait_ms.average, two.wait_ms.average, _time),
            )
        )
    header = ("queue", "jobs", "guarantee", "due", "used", "GPU-hours", "waiting, average")
    printer.columns(rows, header=header, right=(1, 2, 3, 4, 5, 6))


def _pair(today: float | None, changed: float | None, show: Callable[[float], str]) -> str:
    one, two = (show(value) if value is not None else "–" for value in (today, changed))
    return one if one == two else f"{one} → {two}"


def _starts(printer: Printer, told: WhatIfTold, *, wide: bool) -> None:
    effect = told.effect
    if not effect.starts:
        printer.line("Everybody starts when they would have started.", "dim")
        return
    printer.line(f"{effect.sooner} start sooner, {effect.later} later, {effect.same} as before", "bold")
    sooner = [one for one in effect.starts if _sooner(one)]
    later = [one for one in effect.starts if not _sooner(one)]
    shown = (*sooner, *later) if wide else (*sooner[:SHOWN], *later[:SHOWN])
    rows = [(short(one.workload), _start(one.today_ms), _start(one.changed_ms), _difference(one)) for one in shown]
    since = "from now" if told.horizon_ms else "from submission"
    printer.columns(rows, header=("workload", f"starts {since}", "changed", "difference"), right=(1, 2, 3), indent=2)
    if len(shown) < len(effect.starts):
        printer.paragraph(f"{len(effect.starts) - len(shown)} more; -o wide shows all", "dim", indent=2)


def _sooner(one: StartTold) -> bool:
    return one.changed_ms is not None if one.difference_ms is None else one.difference_ms < 0


def _start(ms: int | None) -> str:
    return "does not start" if ms is None else "at once" if ms == 0 else about(ms)


def _difference(one: StartTold) -> Text:
    style = GOOD if _sooner(one) else BAD
    if one.difference_ms is None:
        return Text("starts" if _sooner(one) else "does not start", style=style)
    return Text(f"{'−' if one.difference_ms < 0 else '+'}{about(abs(one.difference_ms))}", style=style)
