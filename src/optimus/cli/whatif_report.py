"""A what-if in a terminal: both worlds in columns, queue by queue, and who pays and who gains."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from rich.text import Text

from optimus.cli.showing import Printer
from optimus.drivers.sim.whatif.effects import Effect, numbers_of
from optimus.drivers.sim.whatif.moves import MoveTold, Range
from optimus.drivers.sim.wording import count, short
from optimus.model.units import format_about_ms as about

VERSION = 3
SHOWN = 5
"""Of those who pay, and of those who gain."""
OF_FUTURES = "10 to 90 % of futures"
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
    at_ms: int | None = None
    """The moment from which the future was played."""
    claim: str = ""
    """What its times are worth (`forecasting.grounds`): atLeast (nobody else comes) or guess. Empty: the past."""
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
    if effect.samples > 1 and not quiet:
        printer.paragraph(
            "Medians over the futures; a difference is the median of the differences future by future, and need not be "
            "that of the two columns.",
            "dim",
        )
    printer.line()
    _queues(printer, effect)
    printer.line()
    _moves(printer, told, wide=wide)


# -- both worlds --------------------------------------------------------------------------------------------------


def _worlds(printer: Printer, effect: Effect) -> None:
    one, two = effect.today, effect.changed
    rows = [
        _row(effect, "waiting, average", "waitMs.average", _time, less=True),
        _row(effect, "waiting, P90", "waitMs.p90", _time, less=True),
        _row(effect, "waiting, longest", "longestWaitMs", _time, less=True),
        _row(effect, "completion, average", "jctMs.average", _time, less=True),
        _row(effect, "finished", "finished", _number, less=False),
        _row(effect, "not finished", "unfinished", _number, less=True),
        _row(effect, "cannot start", "rejected", _number, less=True),
        _row(effect, "GPUs", "gpus", _number),
        _row(effect, "GPUs in use", "allocated", _part, less=False),
        _row(effect, "GPU-hours used", "gpuHours", _number),
        _row(effect, "GPU-hours lost", "lostGpuHours", _number, less=True),
        _row(effect, "preemptions", "preemptions", _number, less=True),
        *_costs(effect),
    ]
    shown = [
        row for row in rows if not (row[0] in ("not finished", "cannot start", "GPU-hours lost") and _is_nothing(row))
    ]
    policies = (one.policy, two.policy) if one.policy != two.policy else ("", "")
    header = ["", f"today {policies[0]}".strip(), f"changed {policies[1]}".strip(), "difference", OF_FUTURES]
    width = 5 if effect.samples > 1 else 4
    printer.columns([row[:width] for row in shown], header=header[:width], right=(1, 2, 3, 4))
    for names, words in ((effect.starts_now, "only if changed"), (effect.starts_no_more, "only as it is today")):
        if names:
            listed = ", ".join(map(short, names[:SHOWN])) + (f" and {len(names) - SHOWN} more" * (len(names) > SHOWN))
            printer.paragraph(f"{count(len(names), 'job')} start{'s' * (len(names) == 1)} {words}: {listed}.")
    if effect.starts_now or effect.starts_no_more:
        printer.paragraph(
            "Waiting is compared over work that starts in both, completion over what finishes in both.", "dim"
        )
    if one.cost is not None:
        printer.paragraph(f"Costs are of {about(effect.compared_ms)}, the longer of both.", "dim")


def _costs(effect: Effect) -> list[tuple[str | Text, ...]]:
    if effect.today.cost is None or effect.changed.cost is None:
        return []
    return [
        _row(effect, "cost of the cluster", "cost.cluster", _money, less=True),
        _row(effect, "  of it idle", "cost.idle", _money, less=True),
        _row(effect, "  per finished job", "cost.perFinishedJob", _money, less=True),
    ]


def _is_nothing(row: tuple[str | Text, ...]) -> bool:
    return str(row[1]) == "0" and str(row[2]) == "0"


def _row(
    effect: Effect, name: str, path: str, show: Callable[[float], str], *, less: bool | None = None
) -> tuple[str | Text, ...]:
    """`less`: whether less is better; None: neither is."""
    today, changed = (numbers_of(world).get(path) for world in (effect.today, effect.changed))
    cells = [show(value) if value is not None else "–" for value in (today, changed)]
    found = effect.differences.get(path)
    spread = _spread(found, show)
    if today is None or changed is None or found is None or show(abs(found.median)) == show(0):
        return name, *cells, "", spread
    gained = None if less is None else (found.median < 0) == less
    style = "" if gained is None else GOOD if gained else BAD
    agrees = _signed(changed - today, show) == _signed(found.median, show)
    percent = f" ({changed / today - 1:+.0%})".replace("-", "−") if today and agrees and show is not _part else ""
    return name, *cells, Text(_signed(found.median, show) + percent, style=style), spread


def _spread(found: Range | None, show: Callable[[float], str]) -> Text:
    """Nothing where the futures agree."""
    low, high = (_signed(found.low, show), _signed(found.high, show)) if found else ("", "")
    return Text() if low == high else Text(f"{low} to {high}", style="dim")


def _signed(value: float, show: Callable[[float], str]) -> str:
    shown = show(abs(value))
    return shown if shown == show(0) else f"{'−' if value < 0 else '+'}{shown}"


def _time(ms: float) -> str:
    return about(round(ms))


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _part(value: float) -> str:
    return f"{value * 100:.1f} %"


def _money(value: float) -> str:
    return f"{value:,.2f}"


# -- queues and workloads -----------------------------------------------------------------------------------------


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


def _pair(today: float | None, changed: float | None, show: Callable[[float], str], never: str = "–") -> str:
    one, two = (show(value) if value is not None else never for value in (today, changed))
    return one if one == two else f"{one} → {two}"


def _moves(printer: Printer, told: WhatIfTold, *, wide: bool) -> None:
    """Who pays comes first: averages do not show them."""
    effect = told.effect
    pays, gains = f"{effect.pay} pay{'s' * (effect.pay == 1)}", f"{effect.gain} gain{'s' * (effect.gain == 1)}"
    printer.line(f"{pays}, {gains}, {effect.neither} as before", "bold")
    groups = (
        ("Pays: starts or ends later, or is stopped more often", BAD, [one for one in effect.moved if one.pays]),
        ("Gains: starts or ends sooner, or is stopped less often", GOOD, [one for one in effect.moved if one.gains]),
    )
    since = "from now" if told.horizon_ms else "from submission"
    stopped = "stopped, mean" if effect.samples > 1 else "stopped"
    header = ("workload", "queue", f"starts {since}", f"ends {since}", "difference", OF_FUTURES, stopped)
    for title, style, found in groups:
        if not found:
            continue
        printer.line()
        printer.line(title, style)
        shown = found if wide else found[:SHOWN]
        rows = [_move(one, style) for one in shown]
        keep = [i for i in range(len(header)) if header[i] != OF_FUTURES or effect.samples > 1]
        printer.columns(
            [[row[i] for i in keep] for row in rows], header=[header[i] for i in keep], right=range(2, 7), indent=2
        )
        if len(shown) < len(found):
            printer.paragraph(f"{len(found) - len(shown)} more; -o wide shows all", "dim", indent=2)


def _move(one: MoveTold, style: str) -> tuple[str | Text, ...]:
    moved = one.end.difference_ms
    later = Text()
    if moved and _time(abs(moved.median)) != _time(0):
        later = Text(_signed(moved.median, _time), style=style)
    elif moved and _time(abs(moved.mean)) != _time(0):
        later = Text("mostly none", style="dim")
    return (
        short(one.workload),
        one.queue,
        _pair(one.start.today_ms, one.start.changed_ms, _moment, "does not start"),
        _pair(one.end.today_ms, one.end.changed_ms, _time, "does not end"),
        later,
        _spread(moved, _time),
        _pair(one.preemptions_today, one.preemptions_changed, _number),
    )


def _moment(ms: float) -> str:
    return "at once" if ms == 0 else _time(ms)
