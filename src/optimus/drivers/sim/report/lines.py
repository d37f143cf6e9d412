"""Lines: several schedulers over one axis, and bands stacked on each other.

Every chart carries its numbers, rounded, for the little script that reads them out under the pointer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.columns import Floats
from optimus.drivers.sim.report.naming import LETTER, places
from optimus.drivers.sim.report.svg import Frame, Scale, Ticks, drawing, line, path, tag, words, x_axis, y_axis


class Series(Struct, frozen=True, eq=False):
    name: str
    mark: str
    """Its class: `s0` is the colour of the first scheduler, `q0` that of the first queue."""
    xs: Floats
    ys: Floats


class Axes(Struct, frozen=True, kw_only=True):
    frame: Frame
    x: Scale
    y: Scale
    x_ticks: Ticks
    y_ticks: Ticks
    x_title: str = ""
    x_kind: str = "time"
    """How the script reads it out: time, ratio or number."""
    y_kind: str = "number"
    """percent or number."""


def line_chart(label: str, axes: Axes, series: Sequence[Series], *, named: bool = True, under: str = "") -> str:
    drawn = [
        np.array([(axes.x(x), axes.y(y)) for x, y in zip(s.xs.tolist(), s.ys.tolist(), strict=True)]).reshape(-1, 2)
        for s in series
    ]
    lines = [tag("path", d=path(d.tolist()), class_=f"line {s.mark}") for s, d in zip(series, drawn, strict=True)]
    return drawing(
        axes.frame,
        label,
        y_axis(axes.frame, axes.y, axes.y_ticks),
        x_axis(axes.frame, axes.x, axes.x_ticks, axes.x_title),
        under,
        *lines,
        _names(axes.frame, series, drawn) if named else "",
        data=_data(axes, series),
    )


def _names(frame: Frame, series: Sequence[Series], drawn: Sequence[Floats]) -> str:
    inside = (frame.left + 4.0, frame.top - 6.0, float(frame.width - frame.right), frame.height - frame.bottom - 2.0)
    boxes = places([s.name for s in series], drawn, inside)
    return "".join(
        words(box[0], box[3] - 2, s.name, f"name {s.mark}") for s, box in zip(series, boxes, strict=True) if box
    )


def bands(label: str, axes: Axes, series: Sequence[Series], *, over: str = "") -> str:
    """Stacked, the first at the bottom. All have the same xs: left edges of bins, and the end of the last."""
    below = np.zeros(len(series[0].ys)) if series else np.zeros(0)
    areas, names = [], []
    for s in series:
        above = below + s.ys
        xs = [axes.x(x) for x in s.xs.tolist()]
        top = list(zip(xs, (axes.y(y) for y in above.tolist()), strict=True))
        bottom = list(zip(xs, (axes.y(y) for y in below.tolist()), strict=True))
        areas.append(tag("path", d=path(top + bottom[::-1]) + "Z", class_=f"band {s.mark}"))
        names.append(_band_name(axes, s, below))
        below = above
    return drawing(
        axes.frame,
        label,
        y_axis(axes.frame, axes.y, axes.y_ticks),
        *areas,
        x_axis(axes.frame, axes.x, axes.x_ticks, axes.x_title),
        over,
        *names,
        data=_data(axes, series),
    )


def _band_name(axes: Axes, series: Series, below: Floats) -> str:
    """In the middle of the stretch where the band is thick enough for as long as the name is wide."""
    per_point = abs(axes.x(float(series.xs[-1])) - axes.x(float(series.xs[0]))) / max(len(series.xs) - 1, 1)
    width = max(int(LETTER * len(series.name) / max(per_point, 0.1)) + 1, 1)
    if width >= len(series.ys):
        return ""
    windows = np.lib.stride_tricks.sliding_window_view
    low, high = windows(below, width).max(axis=1), windows(below + series.ys, width).min(axis=1)
    best = int((high - low).argmax())
    if abs(axes.y(float(high[best])) - axes.y(float(low[best]))) < 15:
        return ""
    x = axes.x(float(series.xs[best + width // 2]))
    return words(x, axes.y(float(high[best] + low[best]) / 2) + 4, series.name, "inside", "middle")


def _data(axes: Axes, series: Sequence[Series]) -> str:
    """For the script: pixels and values of the axis, then each series."""
    same = len({s.xs.tobytes() for s in series}) == 1
    told: dict[str, Any] = {
        "px": [axes.x.start, axes.x.end, axes.y.start, axes.y.end],
        "x": [axes.x.low, axes.x.high, int(axes.x.log)],
        "k": [axes.x_kind, axes.y_kind],
        "s": [{"n": s.name, "m": s.mark, "y": _short(s.ys)} | ({} if same else {"x": _short(s.xs)}) for s in series],
    }
    if same and series:
        told["xs"] = _short(series[0].xs)
    return json.dumps(told, separators=(",", ":"))


def _short(values: Floats) -> list[float]:
    """Four digits are more than a pointer can tell apart."""
    short = [float(f"{value:.4g}") for value in values.tolist()]
    return [int(value) if value == int(value) else value for value in short]


def shade(axes: Axes, begin: float, end: float) -> str:
    """A part of the horizontal axis, marked."""
    x, top = axes.x(begin), axes.frame.top
    return tag(
        "rect",
        x=x,
        y=top,
        width=max(axes.x(end) - x, 0.0),
        height=axes.frame.height - axes.frame.bottom - top,
        class_="shade",
    )


def rule(axes: Axes, y: float) -> str:
    """A level that is meant as a limit."""
    left, right = axes.frame.left, axes.frame.width - axes.frame.right
    return line(left, axes.y(y), right, axes.y(y), "rule")
