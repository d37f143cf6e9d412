"""Loads: one study for each load, side by side and on one page.

Why: a policy that wins at one load may lose at another, and nobody sees that in several files.
Owns: the table and the pictures over loads, and the page that holds them with the report of every load.
Must not: average over loads.

A bar is the 95 % interval of the difference to the reference, drawn around the value of the other one. The reference
has none, since it does not differ from itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.bootstrap import Difference
from optimus.drivers.sim.measuring.comparing import Comparison
from optimus.drivers.sim.measuring.metrics import Metrics
from optimus.drivers.sim.measuring.study import Study
from optimus.drivers.sim.report import overview
from optimus.drivers.sim.report.cells import Cell, Column, Table, Tone
from optimus.drivers.sim.report.html import figure, html_table, pair, scheduler_mark, section
from optimus.drivers.sim.report.lines import Axes, Series, line_chart
from optimus.drivers.sim.report.numbers import NONE, count, unit_for
from optimus.drivers.sim.report.page import Tab, document, report, titled_report
from optimus.drivers.sim.report.svg import (
    Frame,
    Ticks,
    apart,
    change_ticks,
    line,
    percent_ticks,
    tag,
    time_ticks,
)

OVERVIEW = "overview"


class AtLoad(Struct, frozen=True, eq=False):
    load: float
    study: Study


class Point(Struct, frozen=True, kw_only=True):
    """One scheduler at one load."""

    load: float
    value: float
    low: float
    high: float


class Curve(Struct, frozen=True, kw_only=True):
    name: str
    mark: str
    points: tuple[Point, ...]


def schedulers(told: Sequence[AtLoad]) -> list[str]:
    """All of them, also one that failed at some load."""
    return list(dict.fromkeys(m.scheduler for one in told for m in one.study.mean))


# -- the table ------------------------------------------------------------------------------------------------------


def by_load(told: Sequence[AtLoad]) -> Table:
    """Completion and waiting by load, and their changes against the reference."""
    names = schedulers(told)
    every = [m for one in told for m in one.study.mean]
    jct, wait = unit_for(m.jct_ms.average for m in every), unit_for(m.wait_ms.average for m in every)
    rows = []
    for one in told:
        found = {m.scheduler: m for m in one.study.mean}
        against = {c.other: c for c in one.study.comparisons}
        for i, name in enumerate(names):
            m, change = found.get(name), against.get(name)
            start = (Cell(f"{one.load:g}" if i == 0 else "", Tone.STRONG), Cell(name))
            if m is None:
                rows.append((*start, *[Cell(NONE, Tone.FAINT)] * 6, Cell("failed", Tone.BAD)))
                continue
            rows.append(
                (
                    *start,
                    Cell(jct.show(m.jct_ms.average)),
                    *overview.change_cells(change.jct_ms if change else None),
                    Cell(wait.show(m.wait_ms.average)),
                    *overview.change_cells(change.wait_ms if change else None),
                    overview.left_over(m),
                )
            )
    return Table(
        title="Completion and waiting by load",
        columns=(
            Column("load", about="GPU time the jobs ask for, as part of what the cluster has while they arrive"),
            Column("scheduler", right=False),
            Column("JCT", jct.name, about="average completion time of the jobs that finished"),
            Column("change", about="of the average against the reference, over the jobs that both finished"),
            Column("95 % interval"),
            Column("waiting", wait.name, about="average time without resources, also between runs"),
            Column("change"),
            Column("95 % interval"),
            Column("not finished", about="refused or not finished; they are in no average"),
        ),
        rows=tuple(rows),
        note=overview.how_drawn(told[0].study),
        marks=tuple(range(len(names))) * len(told),
    )


# -- the pictures ---------------------------------------------------------------------------------------------------


def curves(
    told: Sequence[AtLoad],
    value: Callable[[Metrics, Comparison | None], float | None],
    interval: Callable[[Comparison], tuple[float | None, float | None]],
) -> list[Curve]:
    """`interval`: how far below and above the value."""
    found = []
    for i, name in enumerate(schedulers(told)):
        points = []
        for one in sorted(told, key=lambda one: one.load):
            m = next((m for m in one.study.mean if m.scheduler == name), None)
            change = next((c for c in one.study.comparisons if c.other == name), None)
            at = None if m is None else value(m, change)
            if at is None:
                continue
            below, above = interval(change) if change else (None, None)
            points.append(Point(load=one.load, value=at, low=at + (below or 0.0), high=at + (above or 0.0)))
        if points:
            found.append(Curve(name=name, mark=scheduler_mark(i), points=tuple(points)))
    return found


def _around(d: Difference) -> tuple[float | None, float | None]:
    """The interval in milliseconds, seen from its mean."""
    if d.mean is None or d.low is None or d.high is None:
        return None, None
    return d.low - d.mean, d.high - d.mean


def _relatively_around(d: Difference) -> tuple[float | None, float | None]:
    if d.relative is None or d.relative_low is None or d.relative_high is None:
        return None, None
    return d.relative_low - d.relative, d.relative_high - d.relative


def _change(_: Metrics, change: Comparison | None) -> float | None:
    return change.jct_ms.relative if change else None


def _no_interval(_: Comparison) -> tuple[None, None]:
    return None, None


def pictures(told: Sequence[AtLoad]) -> str:
    reference = told[0].study.measured[0].name
    done = curves(told, lambda m, _: m.jct_ms.average, lambda c: _around(c.jct_ms))
    waited = curves(told, lambda m, _: m.wait_ms.average, lambda c: _around(c.wait_ms))
    changed = curves(told, _change, lambda c: _relatively_around(c.jct_ms))
    used = curves(told, lambda m, _: m.use.allocated, _no_interval)
    bars = "Bars: 95 % intervals of the difference to the reference."
    parts = [figure("Completion time", f"Average. {bars}", _over_time("Completion time by load", done))]
    if changed:
        about = f"Of the average, against {reference}. Below the line is better. Bars: 95 % intervals."
        parts.append(figure("Change of completion time", about, _over_changes("Change by load", changed)))
    parts += [
        figure("Waiting", f"Average time without resources. {bars}", _over_time("Waiting by load", waited)),
        figure("GPUs in use", "As part of the whole cluster.", _over_parts("GPUs in use by load", used)),
    ]
    return "".join(pair(*parts[i : i + 2]) for i in range(0, len(parts), 2))


def _over_time(label: str, found: Sequence[Curve]) -> str:
    high = max((point.high for curve in found for point in curve.points), default=1000.0) * 1.06
    return _drawn(label, found, (0.0, max(high, 1000.0)), time_ticks(max(high, 1000.0), 5), "time")


def _over_parts(label: str, found: Sequence[Curve]) -> str:
    return _drawn(label, found, (0.0, 1.0), percent_ticks(), "percent")


def _over_changes(label: str, found: Sequence[Curve]) -> str:
    ends = [0.0, *(end for curve in found for point in curve.points for end in (point.low, point.high))]
    pad = max((max(ends) - min(ends)) * 0.06, 0.005)
    low, high = min(ends) - pad, max(ends) + pad
    return _drawn(label, found, (low, high), change_ticks(low, high), "percent", zero=True)


def _drawn(
    label: str,
    found: Sequence[Curve],
    limits: tuple[float, float],
    ticks: Ticks,
    kind: str,
    *,
    zero: bool = False,
) -> str:
    frame = Frame(left=58)
    loads = sorted({point.load for curve in found for point in curve.points}) or [1.0]
    pad = max((loads[-1] - loads[0]) * 0.06, 0.01)
    x, y = frame.x(loads[0] - pad, loads[-1] + pad), frame.y(*limits)
    axes = Axes(
        frame=frame,
        x=x,
        y=y,
        x_ticks=apart(x, [(load, f"{load:g}") for load in loads], 26),
        y_ticks=ticks,
        x_title="load",
        x_kind="number",
        y_kind=kind,
    )
    series = [
        Series(
            curve.name,
            curve.mark,
            np.array([point.load for point in curve.points]),
            np.array([point.value for point in curve.points]),
        )
        for curve in found
    ]
    level = line(frame.left, y(0), frame.width - frame.right, y(0), "zero") if zero else ""
    marks = "".join(_marks(axes, curve, i - (len(found) - 1) / 2) for i, curve in enumerate(found))
    return line_chart(label, axes, series, under=level + marks)


def _marks(axes: Axes, curve: Curve, step: float) -> str:
    """Bars stand a little beside each other, so that none hides another."""
    parts = []
    for point in curve.points:
        x = axes.x(point.load) + 3.5 * step
        if point.high > point.low:
            parts.append(line(x, axes.y(point.low), x, axes.y(point.high), "range"))
        parts.append(tag("circle", cx=axes.x(point.load), cy=axes.y(point.value), r=3.5, class_="dot"))
    return tag("g", *parts, class_=curve.mark)


# -- the page -------------------------------------------------------------------------------------------------------


def loads_page(told: Sequence[AtLoad]) -> str:
    """The whole HTML file: an overview, and the report of every load behind a tab."""
    first = told[0]
    title = first.study.provenance.trace.removesuffix(f" at load {first.load:g}")
    tabs = [Tab("Overview", OVERVIEW), *(Tab(f"load {one.load:g}", f"load-{one.load:g}") for one in told)]
    jobs = first.study.measured[0].metrics.jobs
    scene = f"{count(jobs)} jobs on {count(first.study.cluster.gpus)} GPUs at {len(told)} loads · a tab for each"
    over = titled_report(
        title,
        scene,
        schedulers(told),
        html_table(by_load(told)),
        section("Over loads", "The same jobs, arriving further apart or closer together.", pictures(told)),
        tabs=tabs,
        at=OVERVIEW,
    )
    each = [report(one.study, tabs=tabs, at=f"load-{one.load:g}") for one in told]
    return document(title, first.study.optimus, over, *each)
