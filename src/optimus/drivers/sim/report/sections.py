"""Sections about jobs and time: completion, load, queues, fairness, sizes, fragments.

Each takes a study and gives the HTML of one section, or nothing when there is nothing to show. Curves are reduced to a
few hundred points: by quantiles where they are distributions, by exact means over bins where they are timelines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import structs

from optimus.drivers.sim.measuring.columns import SIZES, Floats, Ints
from optimus.drivers.sim.measuring.metrics import Measured
from optimus.drivers.sim.measuring.spreads import Spread
from optimus.drivers.sim.measuring.study import Study
from optimus.drivers.sim.measuring.timelines import bins, gpus, means, waiting, window
from optimus.drivers.sim.report import overview
from optimus.drivers.sim.report.gantt import MOST_JOBS, gantt
from optimus.drivers.sim.report.html import figure, html_table, key, pair, scheduler_mark, section
from optimus.drivers.sim.report.lanes import NAMED, jobs_by_queue
from optimus.drivers.sim.report.lines import Axes, Series, bands, line_chart, rule, shade
from optimus.drivers.sim.report.look import QUEUES
from optimus.drivers.sim.report.numbers import count, duration, grouped, percent
from optimus.drivers.sim.report.rows import Dot, dots
from optimus.drivers.sim.report.svg import (
    SECOND,
    Frame,
    log_ticks,
    log_time_ticks,
    percent_ticks,
    round_ticks,
    time_ticks,
)

POINTS = 240
BINS = 360
WIDE = 1120
MOST_QUEUES = 10


def completion(study: Study) -> str:
    told = study.measured
    done = _distribution(told, [m.columns.jct_ms for m in told], "completion time", "Completion time by scheduler")
    waited = _distribution(
        told,
        [np.where(m.columns.finished, m.columns.wait_ms, np.nan) for m in told],
        "time without resources",
        "Waiting by scheduler",
    )
    about = "Part of all submitted jobs that were done within a time. Further left is better."
    return section(
        "Distributions",
        "",
        pair(
            figure("Completion time", about, done),
            figure(
                "Waiting",
                "The same for the time spent without resources. The axis begins at a second.",
                waited,
            ),
        ),
    )


def _distribution(told: Sequence[Measured], values: Sequence[Floats], title: str, label: str) -> str:
    known = [v[~np.isnan(v)] for v in values]
    longest = max((float(v.max()) for v in known if len(v)), default=10.0 * SECOND)
    shortest = min((float(np.percentile(v, 1)) for v in known if len(v)), default=float(SECOND))
    low = max(min(shortest, longest / 20), float(SECOND))
    frame = Frame()
    x = frame.x(low, max(longest, 10 * low), log=True)
    axes = Axes(
        frame=frame,
        x=x,
        y=frame.y(0, 1),
        x_ticks=log_time_ticks(x),
        y_ticks=percent_ticks(),
        x_title=title,
        y_kind="percent",
    )
    series = [
        _cumulative(m.name, scheduler_mark(i), v, m.metrics.jobs, low)
        for i, (m, v) in enumerate(zip(told, known, strict=True))
    ]
    return line_chart(label, axes, series)


def _cumulative(name: str, mark: str, values: Floats, total: int, low: float) -> Series:
    ordered = np.maximum(np.sort(values), low)
    if len(ordered) <= POINTS:  # few enough to show every step
        parts = np.arange(len(ordered) + 1) / max(total, 1)
        return Series(name, mark, np.repeat(ordered, 2), np.repeat(parts, 2)[1:-1])
    picked = np.unique(np.linspace(0, len(ordered) - 1, POINTS).round().astype(np.int64))
    return Series(name, mark, ordered[picked], (picked + 1) / total)


# -- over time ------------------------------------------------------------------------------------------------------


def _edges(study: Study, most: int = BINS) -> Ints:
    spans = [window(m.columns) for m in study.measured]
    return bins(min(begin for begin, _ in spans), max(end for _, end in spans), most)


def _time_axes(edges: Ints, high: float, frame: Frame, *, kind: str = "number") -> Axes:
    length = float(edges[-1] - edges[0])
    y_ticks = percent_ticks() if kind == "percent" else round_ticks(high, 4)
    return Axes(
        frame=frame,
        x=frame.x(0, length),
        y=frame.y(0, high),
        x_ticks=time_ticks(length, 14 if frame.width > 800 else 7),
        y_ticks=y_ticks,
        y_kind=kind,
    )


def _held(values: Floats) -> Floats:
    """Until the end of the last bin."""
    return np.append(values, values[-1:])


def over_time(study: Study) -> str:
    edges = _edges(study)
    xs = (edges - edges[0]).astype(np.float64)
    lengths, used = [], []
    for i, m in enumerate(study.measured):
        lengths.append(Series(m.name, scheduler_mark(i), xs, _held(means(waiting(m.columns), edges))))
        part = means(gpus(m.columns), edges) / max(study.cluster.gpus, 1)
        used.append(Series(m.name, scheduler_mark(i), xs, _held(part)))
    most = max((float(s.ys.max()) for s in lengths), default=1.0)
    frame = Frame(width=WIDE, height=220, bottom=26)
    waits = line_chart(
        "Jobs waiting over time",
        _time_axes(edges, max(most * 1.08, 1.0), frame),
        lengths,
    )
    busy = line_chart("GPUs held over time", _time_axes(edges, 1.0, frame, kind="percent"), used, named=False)
    step = duration(float(edges[1] - edges[0]))
    return section(
        "Over time",
        "",
        figure(
            "Jobs waiting",
            f"Submitted, not over, and without resources. Each point is the mean over {step}.",
            waits,
        ),
        figure("GPUs held", "As part of the whole cluster.", busy),
    )


def by_queue(study: Study) -> str:
    marks = queue_marks(study)
    edges = _edges(study, POINTS)
    whole = float(max(study.cluster.gpus, 1))
    stacks = [_stack(m, marks, edges) for m in study.measured]
    peak = max((float(np.sum([s.ys for s in stack], axis=0).max()) for stack in stacks if stack), default=whole)
    full = peak > whole / 2
    axes = _time_axes(edges, whole * 1.02 if full else peak * 1.1, Frame(width=WIDE, height=170, bottom=26))
    figures = []
    for i, (m, stack) in enumerate(zip(study.measured, stacks, strict=True)):
        drawn = bands(f"GPUs held by queue under {m.name}", axes, stack, over=rule(axes, whole) if full else "")
        figures.append(figure(m.name, "", drawn, scheduler_mark(i) + " panel"))
    jobs = _every_job(study, marks, int(edges[-1]))
    names = [(name, mark) for name, mark in marks.items() if mark != f"q{QUEUES - 1}"]
    others = [("all other queues", f"q{QUEUES - 1}")] if len(names) < len(marks) else []
    about = "The dotted line is the whole cluster." if full else f"The whole cluster has {count(int(whole))}."
    legend = key([*names, *others])
    return section("Queues over time", "GPUs held, one band per queue. " + about, legend, *figures, jobs)


def _every_job(study: Study, marks: dict[str, str], end_ms: int) -> str:
    """A row for each while they are few, then packed into lanes."""
    told = study.measured
    panels = [f"{scheduler_mark(i)} panel" for i in range(len(told))]
    if told[0].metrics.jobs <= MOST_JOBS:
        drawn = [gantt(m, end_ms=end_ms, colours=marks) for m in told]
        figures = [figure(m.name, "", one, panel) for m, one, panel in zip(told, drawn, panels, strict=True)]
        return "<h3>Every job</h3>" + pair(*figures)
    packed = jobs_by_queue(told, end_ms=end_ms, colours=marks, width=WIDE)
    few = all(len(m.columns.pieces.job) <= NAMED for m in told)
    which = "Point at one to see whose it is." if few else f"The {NAMED} largest say whose they are when pointed at."
    about = f"One bar for each run of a job, under each other where they overlap. {which}"
    figures = []
    for m, (one, left_out), panel in zip(told, packed, panels, strict=True):
        more = f"The {count(left_out)} smallest runs are not drawn." if left_out else ""
        figures.append(figure(m.name, more, one, panel))
    return f'<h3>Jobs by queue</h3><p class="note">{about}</p>' + "".join(figures)


def queue_marks(study: Study) -> dict[str, str]:
    """A colour for each of the largest queues, by GPU-hours under the reference; the rest share the last one."""
    ordered = sorted(study.measured[0].metrics.queues, key=lambda q: (-q.gpu_hours, q.queue))
    return {q.queue: f"q{min(i, QUEUES - 1)}" for i, q in enumerate(ordered)}


def _stack(measured: Measured, marks: dict[str, str], edges: Ints) -> list[Series]:
    xs = (edges - edges[0]).astype(np.float64)
    number = {name: i for i, name in enumerate(measured.columns.asked.queues)}
    series, rest = [], np.zeros(len(xs))
    for name, mark in marks.items():
        held = _held(means(gpus(measured.columns, number[name]), edges))
        if mark == f"q{QUEUES - 1}":
            rest += held
        else:
            series.append(Series(name, mark, xs, held))
    return [*series, Series("all other queues", f"q{QUEUES - 1}", xs, rest)] if rest.any() else series


# -- fairness, sizes, fragments ---------------------------------------------------------------------------------------


def fairness(study: Study) -> str:
    told = study.measured
    known = [m.rho[~np.isnan(m.rho)] for m in told]
    high = max((float(v.max()) for v in known if len(v)), default=2.0)
    low = min((float(np.percentile(v, 1)) for v in known if len(v)), default=0.1)
    low = max(min(low, 0.5), 0.01)
    frame = Frame()
    x = frame.x(low, max(high, 2.0), log=True)
    axes = Axes(
        frame=frame,
        x=x,
        y=frame.y(0, 1),
        x_ticks=log_ticks(x),
        y_ticks=percent_ticks(),
        x_title="ρ = completion time / time on an equal share",
        x_kind="ratio",
        y_kind="percent",
    )
    series = [
        _cumulative(m.name, scheduler_mark(i), v, len(v), low) for i, (m, v) in enumerate(zip(told, known, strict=True))
    ]
    drawn = line_chart("Finish-time fairness", axes, series, under=shade(axes, 1.05, max(high, 2.0)))
    figures = [
        figure(
            "Finish-time fairness",
            "Part of the finished jobs up to a ρ. Shaded: later than an equal share would have been.",
            drawn,
        )
    ]
    if len(told[0].metrics.queues) > 1:
        figures.append(_shares(study))
        return section("Fairness", "", pair(*figures), html_table(overview.by_queue(study)))
    return section("Fairness", "", pair(*figures))


def _shares(study: Study) -> str:
    marks = queue_marks(study)
    rows = []
    for name in list(marks)[:MOST_QUEUES]:
        for i, m in enumerate(study.mean):
            q = next(q for q in m.queues if q.queue == name)
            tip = f"{name} under {m.scheduler}: held {percent(q.share)}, due {percent(q.due_share)}"
            rows.append(
                Dot(
                    group=name,
                    name="",
                    mark=scheduler_mark(i),
                    value=q.share,
                    other=q.due_share,
                    text=f"{percent(q.share)} of {percent(q.due_share)}",
                    tip=tip,
                )
            )
    most = max([row.value or 0.0 for row in rows] + [row.other or 0.0 for row in rows] + [0.01])
    drawn = dots(
        "Share of each queue and its due",
        rows,
        (0, most * 1.05),
        round_ticks(most, 4, lambda v: percent(v, 0)),
        right=118,
        title="average part of the cluster",
    )
    left_out = len(marks) - MOST_QUEUES
    more = f" The {MOST_QUEUES} largest of {len(marks)} queues." if left_out > 0 else ""
    about = "Filled: what a queue held. Hollow: what a fair division by need would have given it." + more
    return figure("Share of queues and their due", about, drawn)


def sizes(study: Study) -> str:
    """Slowdown and completion, each from the median to the 90th percentile."""
    told = study.mean
    slow = _by_size([m.slowdown_by_size for m in told], grouped)
    done = _by_size([m.jct_ms_by_size for m in told], duration)
    scale = (1.0, 1.05 * max([row.high or 1.0 for row in slow] + [2.0]))
    ends = [x for row in done for x in (row.low, row.high) if x]
    times = (min(ends, default=1000.0) / 1.3, max(ends, default=1000.0) * 1.3)
    room = Frame(left=90, right=130)
    slowed = dots(
        "Slowdown by size",
        slow,
        scale,
        log_ticks(room.x(*scale, log=True), 26, "×"),
        log=True,
        left=90,
        right=130,
        title="completion time / ideal time",
    )
    completed = dots(
        "Completion time by size",
        done,
        times,
        log_time_ticks(room.x(*times, log=True)),
        log=True,
        left=90,
        right=130,
        title="completion time",
    )
    about = "Dot: the median job. Line: up to the 90th percentile."
    return section(
        "By size of the job",
        "",
        pair(figure("Slowdown", about, slowed), figure("Completion time", about, completed)),
        html_table(overview.by_size(study)),
    )


def _by_size(told: Sequence[dict[str, Spread]], show: Callable[[float | None], str]) -> list[Dot]:
    return [
        Dot(
            group=overview.sized(size),
            name="",
            mark=scheduler_mark(i),
            value=spreads[size].median,
            low=spreads[size].median,
            high=spreads[size].p90,
            text=f"{show(spreads[size].median)} – {show(spreads[size].p90)}",
        )
        for size in SIZES
        if size in told[0]
        for i, spreads in enumerate(told)
    ]


def fragmentation(study: Study) -> str:
    told = [(i, m, m.fragments) for i, m in enumerate(study.measured) if m.fragments is not None]
    if not told:
        return ""
    edges = _edges(study)
    xs = (edges - edges[0]).astype(np.float64)
    series = []
    for i, m, seen in told:
        held = np.searchsorted(seen.time_ms, edges, side="right") - 1
        part = np.where(held >= 0, seen.fragment_gpus[np.maximum(held, 0)], 0.0) / max(study.cluster.gpus, 1)
        part = np.where(edges > window(m.columns)[1], 0.0, part)
        series.append(Series(m.name, scheduler_mark(i), xs, part))
    most = max(float(s.ys.max()) for s in series)
    frame = Frame(width=WIDE, height=190, bottom=26)
    axes = Axes(
        frame=frame,
        x=frame.x(0, float(xs[-1])),
        y=frame.y(0, max(most * 1.08, 0.01)),
        x_ticks=time_ticks(float(xs[-1]), 14),
        y_ticks=round_ticks(max(most, 0.01), 4, lambda v: percent(v, 0 if most > 0.05 else 1)),
        y_kind="percent",
    )
    table = overview.fragmentation(study)
    return section(
        "Fragmentation",
        "Free GPUs that the typical job cannot use because they are scattered, as part of the cluster.",
        figure("Fragments", "Sampled at decisions.", line_chart("Fragments over time", axes, series)) if most else "",
        html_table(structs.replace(table, title="")) if table else "",
    )
