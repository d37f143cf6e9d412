"""Lanes: runs of many jobs, packed under each other, queue by queue.

Why: above a few dozen jobs a row for each is too long to read, and a band of GPUs hides the jobs in it.
Owns: which runs are drawn, and in which lane.
Must not: grow with the number of jobs. The largest runs say who they are when pointed at, so many more are drawn, and
what is left out is told. No run is thinner than can be seen, and no gap between two runs of a job is.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.columns import Floats, Ints
from optimus.drivers.sim.measuring.metrics import Measured
from optimus.drivers.sim.measuring.timelines import window
from optimus.drivers.sim.report.numbers import count, duration
from optimus.drivers.sim.report.svg import Frame, Scale, at, drawing, line, tag, time_ticks, titled, words, x_axis

MOST_RUNS = 10_000
NAMED = 200
LEAST_PX = 1.0
_HEIGHT = 420
_THICKEST = 9.0
_BETWEEN = 6
_LEAST_STRIP = 14
"""So that its name has room."""


class Runs(Struct, frozen=True, kw_only=True, eq=False):
    """What is drawn of one record, by start: pixels, queue and lane."""

    job: Ints
    start: Floats
    end: Floats
    gpus: Floats
    strip: Ints
    lane: Ints
    left_out: int


def jobs_by_queue(
    told: Sequence[Measured], *, end_ms: int, colours: dict[str, str], width: int
) -> list[tuple[str, int]]:
    """For each record its drawing and how many runs are not in it. All have the same axis and the same strips."""
    strips = list(dict.fromkeys(colours.values()))
    names = {mark: [name for name, m in colours.items() if m == mark] for mark in strips}
    begin = min(window(m.columns)[0] for m in told)
    frame = Frame(width=width, left=92, right=10, top=8, bottom=26)
    x = frame.x(0, max(end_ms - begin, 1))
    packed = [_packed(m, x, begin, {name: strips.index(mark) for name, mark in colours.items()}) for m in told]
    lanes = [
        max((int(runs.lane[runs.strip == i].max(initial=-1)) for runs in packed), default=-1) + 1
        for i in range(len(strips))
    ]
    thick = min(_HEIGHT / max(sum(lanes), 1), _THICKEST)
    heights = [max(thick * n, _LEAST_STRIP) for n in lanes]
    tops = frame.top + np.concatenate([[0.0], np.cumsum(np.array(heights) + _BETWEEN)])
    frame = Frame(width=width, height=round(float(tops[-1])) + frame.bottom, left=92, right=10, top=8, bottom=26)
    ticks = time_ticks(end_ms - begin, 14)
    under = [
        *(line(x(value), frame.top, x(value), frame.height - frame.bottom, "grid") for value, _ in ticks),
        *(
            words(frame.left - 8, float(tops[i]) + 10, _fitted(names[mark]), "tick", "end")
            for i, mark in enumerate(strips)
        ),
    ]
    drawn = []
    for m, runs in zip(told, packed, strict=True):
        y = tops[runs.strip] + thick * (runs.lane + 0.5)
        parts = [*under, _drawn(m, runs, y, strips, thick), x_axis(frame, x, ticks)]
        drawn.append((drawing(frame, f"Runs of all jobs under {m.name}", *parts), runs.left_out))
    return drawn


def _fitted(names: Sequence[str], most: int = 13) -> str:
    if len(names) > 1:
        return f"{count(len(names))} others"
    return names[0] if len(names[0]) <= most else names[0][: most - 1] + "…"


def _packed(measured: Measured, x: Scale, begin_ms: int, strip_of: dict[str, int]) -> Runs:
    """A lane for each run: the first in its strip that is free."""
    asked = measured.columns.asked
    per_ms = (x.end - x.start) / (x.high - x.low)
    job, start, end, gpus = _joined(measured, LEAST_PX / per_ms)
    kept = np.sort(np.lexsort((job, -(end - start) * gpus))[:MOST_RUNS])
    left_out = len(job) - len(kept)
    kept = kept[np.lexsort((job[kept], start[kept]))]
    job, gpus = job[kept], gpus[kept]
    left = (x.start + (start[kept] - begin_ms) * per_ms).astype(np.float64)
    right: Floats = np.maximum(x.start + (end[kept] - begin_ms) * per_ms, left + LEAST_PX)
    strips = np.array([strip_of[name] for name in asked.queues], np.int64)
    strip = strips[asked.queue[job]] if len(job) else np.zeros(0, np.int64)
    lane = np.zeros(len(job), np.int64)
    for number in np.unique(strip).tolist():
        mine = np.flatnonzero(strip == number)
        lane[mine] = _lanes(left[mine], right[mine])
    return Runs(job=job, start=left, end=right, gpus=gpus, strip=strip, lane=lane, left_out=left_out)


def _joined(measured: Measured, gap_ms: float) -> tuple[Ints, Ints, Ints, Floats]:
    """Runs of one job that are closer than can be seen, at whatever size, are one; its GPUs are those of the first."""
    pieces = measured.columns.pieces
    if not len(pieces.job):
        return pieces.job, pieces.start_ms, pieces.end_ms, pieces.gpus
    apart = (pieces.job[1:] != pieces.job[:-1]) | (pieces.start_ms[1:] - pieces.end_ms[:-1] >= gap_ms)
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    ends = np.maximum.reduceat(pieces.end_ms, first)
    return pieces.job[first], pieces.start_ms[first], ends, pieces.gpus[first]


def _lanes(starts: Floats, ends: Floats) -> Ints:
    """In order of their starts."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    found = np.zeros(len(starts), np.int64)
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        found[i] = lane
        heapq.heappush(busy, (end, lane))
    return found


def _drawn(measured: Measured, runs: Runs, y: Floats, strips: Sequence[str], thick: float) -> str:
    """The largest say who they are when pointed at; all others of a strip are one path."""
    named = np.zeros(len(runs.job), np.bool_)
    named[np.argsort(-(runs.end - runs.start) * runs.gpus, kind="stable")[:NAMED]] = True
    high, gap = thick * 0.84, 0.3
    parts = []
    for number, mark in enumerate(strips):
        mine = runs.strip == number
        if (mine & ~named).any():
            rows = zip(runs.start[mine & ~named], y[mine & ~named], runs.end[mine & ~named], strict=True)
            strokes = "".join(f"M{at(start)},{at(level)}H{at(end - gap)}" for start, level, end in rows)
            parts.append(tag("path", d=strokes, class_=f"lane {mark}", stroke_width=high))
        parts += [
            titled(
                "rect",
                _tip(measured, int(runs.job[i])),
                x=float(runs.start[i]),
                y=float(y[i]) - high / 2,
                width=float(runs.end[i] - runs.start[i]) - gap,
                height=high,
                class_=f"run {mark}",
            )
            for i in np.flatnonzero(mine & named)
        ]
    return "".join(parts)


def _tip(measured: Measured, job: int) -> str:
    table, asked = measured.columns, measured.columns.asked
    state = duration(float(table.jct_ms[job])) if table.finished[job] else "not finished"
    waited = duration(float(table.wait_ms[job])) if not np.isnan(table.wait_ms[job]) else ""
    told = f"{asked.names[job]} · {asked.gpus[job]:g} GPU · {asked.queues[asked.queue[job]]} · {state}"
    return f"{told} · waited {waited}" if waited else told
