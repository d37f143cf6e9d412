"""A chart of dots in rows, as SVG: how far each result is from what it is compared with.

Why: results are ratios and differences with a target; a dot beside a line shows that at a glance, a table does not.
Owns: the drawing. Same content, same bytes, so that a test can tell whether a picture is older than its result file.
Must not: know any result.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, ROW, LABEL, RIGHT = 820, 26, 250, 70
TOP = 74
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8568f")
"""Okabe and Ito: told apart with any colour vision, on white and on black."""


class Dot(NamedTuple):
    value: float
    series: int
    """Its number in the key."""
    small: bool = False


class Row(NamedTuple):
    label: str
    dots: Sequence[Dot]
    target: float | None = None
    """Drawn as a tick: the result should lie on the good side of it."""
    told: str = ""
    """Written at the end of the row."""


class Axis(NamedTuple):
    low: float
    high: float
    step: float
    rule: float
    """Where "the same as the other" is."""
    digits: int = 2
    unit: str = ""


def dot_chart(title: str, about: str, axis: Axis, names: Sequence[str], rows: Sequence[Row]) -> str:
    height = TOP + len(rows) * ROW + 34
    bottom = TOP + len(rows) * ROW
    space = f'viewBox="0 0 {WIDTH} {height}" font-family="system-ui,sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {space} role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        _text(20, 26, title, size=16, bold=True),
        _text(20, 46, about, colour="#5a6470"),
    ]
    for number, name in enumerate(names):
        at = LABEL + 8 + number * 150
        parts.append(f'<circle cx="{at}" cy="60" r="5" fill="{COLOURS[number]}"/>{_text(at + 10, 64, name)}')
    marks = round((axis.high - axis.low) / axis.step)
    for i in range(marks + 1):
        value = axis.low + i * axis.step
        strong = abs(value - axis.rule) < axis.step / 1000
        stroke = "#1b1f24" if strong else "#e3e6ea"
        x = _x(axis, value)
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{TOP}" y2="{bottom}" stroke="{stroke}"/>')
        parts.append(_text(x, bottom + 18, f"{value:.{axis.digits}f}{axis.unit}", anchor="middle", colour="#5a6470"))
    for number, row in enumerate(rows):
        parts += _drawn(axis, row, TOP + number * ROW + ROW / 2)
    return "\n".join([*parts, "</svg>", ""])


def _drawn(axis: Axis, row: Row, y: float) -> list[str]:
    parts = [_text(LABEL - 14, y + 4, row.label, anchor="end")]
    if row.target is not None:
        x = _x(axis, row.target)
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{y - 9:g}" y2="{y + 9:g}" stroke="#b35806" stroke-width="2"/>')
    for dot in row.dots:
        x, beyond = _x(axis, dot.value), not axis.low <= dot.value <= axis.high
        radius, fill = (3.2, 0.45) if dot.small else (5.5, 1.0)
        parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" fill="{COLOURS[dot.series]}" fill-opacity="{fill}"/>')
        if beyond:  # drawn at the edge, with its value
            parts.append(_text(x - 10, y + 4, f"{dot.value:.{axis.digits}f}", anchor="end", colour="#5a6470"))
    return [*parts, _text(WIDTH - 14, y + 4, row.told, anchor="end", colour="#5a6470")]


def _x(axis: Axis, value: float) -> float:
    part = (min(max(value, axis.low), axis.high) - axis.low) / (axis.high - axis.low)
    return round(LABEL + part * (WIDTH - LABEL - RIGHT), 1)


def _text(
    x: float, y: float, text: str, *, size: int = 13, bold: bool = False, anchor: str = "start", colour: str = "#1b1f24"
) -> str:
    look = f'font-size="{size}" text-anchor="{anchor}" fill="{colour}"' + (' font-weight="650"' if bold else "")
    return f'<text x="{x:g}" y="{y:g}" {look}>{escape(text)}</text>'
