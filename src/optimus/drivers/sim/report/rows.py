"""Rows: dots, intervals and bars beside a name, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from optimus.drivers.sim.report.numbers import grouped
from optimus.drivers.sim.report.svg import Frame, Scale, Ticks, at, drawing, line, tag, titled, words, x_axis

ROW = 20
GROUP_GAP = 12


class Dot(Struct, frozen=True, kw_only=True):
    """One row: a range with a filled dot, and a hollow one where two values are compared."""

    group: str
    """Rows of a group stand together under one name."""
    name: str
    mark: str
    value: float | None
    low: float | None = None
    high: float | None = None
    other: float | None = None
    text: str = ""
    """At the right end."""
    tip: str = ""


def dots(
    label: str,
    rows: Sequence[Dot],
    scale: tuple[float, float],
    ticks_of: Ticks,
    *,
    log: bool = False,
    left: int = 120,
    right: int = 96,
    width: int = 540,
    zero: float | None = None,
    title: str = "",
    show: Callable[[float], str] = grouped,
) -> str:
    """What lies beyond the scale is an arrow at its end, with its number as `show` writes it."""
    groups = list(dict.fromkeys(row.group for row in rows))
    in_groups = len(groups) > 1 or bool(groups and groups[0])
    height = len(rows) * ROW + max(len(groups) - 1, 0) * GROUP_GAP + 16 + 38
    frame = Frame(width=width, height=height, left=left, right=right, top=10, bottom=38)
    x = frame.x(*scale, log=log)
    parts = [line(x(value), frame.top, x(value), height - frame.bottom, "grid") for value, _ in ticks_of]
    if zero is not None:
        parts.append(line(x(zero), frame.top - 4, x(zero), height - frame.bottom, "zero"))
    y = float(frame.top + ROW / 2 + 3)
    before = None
    for row in rows:
        if before is not None and row.group != before:
            y += GROUP_GAP
        if row.group != before and in_groups:
            parts.append(words(0, y + 4, row.group, "group"))
        before = row.group
        parts.append(_dot(frame, x, y, row, show, in_groups=in_groups))
        y += ROW
    parts.append(x_axis(frame, x, ticks_of, title))
    return drawing(frame, label, *parts)


def _dot(frame: Frame, x: Scale, y: float, row: Dot, show: Callable[[float], str], *, in_groups: bool) -> str:
    parts = []
    if row.name:
        anchor, where = ("end", frame.left - 10) if in_groups else ("start", 0)
        parts.append(words(where, y + 4, row.name, "tick", anchor))
    beyond = row.value is not None and not x.low <= row.value <= x.high
    if row.low is not None and row.high is not None and not beyond:
        parts.append(line(x(max(row.low, x.low)), y, x(min(row.high, x.high)), y, "range"))
    if row.other is not None and row.value is not None:
        parts.append(line(x(row.other), y, x(row.value), y, "range"))
        parts.append(tag("circle", cx=x(row.other), cy=y, r=4, class_="hollow"))
    if row.value is not None and beyond:
        parts.append(_arrow(x, y, show(row.value), right=row.value > x.high))
    elif row.value is not None:
        parts.append(tag("circle", cx=x(row.value), cy=y, r=4.5, class_="dot"))
    if row.text:
        parts.append(words(frame.width, y + 4, row.text, "value", "end"))
    hit = titled("rect", row.tip, x=0, y=y - ROW / 2, width=frame.width, height=ROW, class_="hit") if row.tip else ""
    return tag("g", *parts, hit, class_=row.mark)


def _arrow(x: Scale, y: float, text: str, *, right: bool) -> str:
    tip, back, anchor = (x.end, x.end - 9, "end") if right else (x.start, x.start + 9, "start")
    head = tag("path", d=f"M{at(tip)},{at(y)}L{at(back)},{at(y - 5)}V{at(y + 5)}Z", class_="dot")
    return head + words(back + (-5 if right else 5), y + 4, text, "name", anchor)


class Split(Struct, frozen=True, kw_only=True):
    """How many went one way, how many the other."""

    name: str
    good: int
    even: int
    bad: int
    text: str = ""


def splits(label: str, rows: Sequence[Split], *, width: int = 540, left: int = 120, right: int = 70) -> str:
    """Parts of each row's jobs: sooner to the left, later to the right, of one middle line."""
    frame = Frame(width=width, height=len(rows) * 24 + 24, left=left, right=right, top=20, bottom=4)
    most = max((max(row.good, row.bad) / max(row.good + row.even + row.bad, 1) for row in rows), default=0.5)
    middle = (frame.left + frame.width - frame.right) / 2
    half = (frame.width - frame.right - frame.left) / 2 - 40
    parts = [
        words(middle - 8, 12, "sooner", "good-name", "end"),
        words(middle + 8, 12, "later", "bad-name"),
    ]
    for i, row in enumerate(rows):
        y, total = frame.top + 24 * i, max(row.good + row.even + row.bad, 1)
        good, bad = (half * (n / total) / max(most, 1e-9) for n in (row.good, row.bad))
        parts += [
            words(0, y + 14, row.name, "tick"),
            tag("rect", x=middle - good, y=y + 3, width=good, height=14, class_="good-bar"),
            tag("rect", x=middle, y=y + 3, width=bad, height=14, class_="bad-bar"),
            words(middle - good - 6, y + 14, f"{100 * row.good / total:.0f} %", "tick", "end"),
            words(middle + bad + 6, y + 14, f"{100 * row.bad / total:.0f} %", "tick"),
            words(frame.width, y + 14, row.text, "value", "end"),
        ]
    parts.append(line(middle, frame.top, middle, frame.height - 2, "zero"))
    return drawing(frame, label, *parts)


def histogram(
    label: str, counts: Sequence[int], edges: Sequence[float], ticks_of: Ticks, *, title: str, tips: Sequence[str]
) -> str:
    """Over a logarithmic axis; below 1 is better, above it is worse, and the bar around it is neither."""
    frame = Frame(height=210, left=14)
    x, y = frame.x(edges[0], edges[-1], log=True), frame.y(0, max(max(counts, default=1), 1) * 1.08)
    parts = []
    for i, amount in enumerate(counts):
        begin, end = x(edges[i]), x(edges[i + 1])
        kind = "good-bar" if edges[i + 1] <= 1 else "bad-bar" if edges[i] >= 1 else "even-bar"
        parts.append(
            titled(
                "rect",
                tips[i],
                x=begin + 0.5,
                y=y(amount),
                width=max(end - begin - 1, 0.5),
                height=max(y(0) - y(amount), 0.0),
                class_=kind,
            )
        )
    return drawing(frame, label, *parts, x_axis(frame, x, ticks_of, title))
