"""Drawing: scales, ticks, axes and marks as SVG text.

Why: the page must open without a network and without a charting library, and look the same in ten years.
Owns: the geometry of a chart and the words on its axes. Colours are classes; the style sheet knows light and dark.
Must not: know what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from msgspec import Struct

from optimus.drivers.sim.report.numbers import grouped, signed_percent

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(x * SECOND for x in (1, 2, 5, 10, 15, 30)),
    *(x * MINUTE for x in (1, 2, 5, 10, 15, 30)),
    *(x * HOUR for x in (1, 2, 3, 6, 12)),
    *(x * DAY for x in (1, 2, 5, 7, 14, 30, 60, 90, 180, 365)),
)
_FINE_TIMES = (
    *(x * SECOND for x in (1, 2, 5, 10, 20, 30)),
    *(x * MINUTE for x in (1, 2, 5, 10, 20, 30)),
    *(x * HOUR for x in (1, 2, 4, 8, 12)),
    *(x * DAY for x in (1, 2, 4, 7, 14, 30, 90)),
)
_LOG_TIMES = (1, 10, 100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)

_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))

Ticks = Sequence[tuple[float, str]]


class Scale(Struct, frozen=True):
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        at = math.log(max(value, self.low)) if self.log else value
        part = (at - low) / (high - low) if high > low else 0.0
        return self.start + (self.end - self.start) * part


class Frame(Struct, frozen=True, kw_only=True):
    """The drawing and the room around it for words."""

    width: int = 540
    height: int = 260
    left: int = 46
    right: int = 14
    top: int = 12
    bottom: int = 38

    def x(self, low: float, high: float, *, log: bool = False) -> Scale:
        return Scale(low, high, self.left, self.width - self.right, log)

    def y(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.height - self.bottom, self.top)


# -- elements -------------------------------------------------------------------------------------------------------


def tag(name: str, *inside: str, **attributes: str | float) -> str:
    """`class_` is class, `stroke_width` is stroke-width; text inside is taken as it is."""
    told = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(v)}"' for key, v in attributes.items())
    return f"<{name}{told}>{''.join(inside)}</{name}>" if inside else f"<{name}{told}/>"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else at(value)


def at(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    return f"{value:.1f}".removesuffix(".0")


def words(x: float, y: float, text: str, class_: str = "tick", anchor: str = "start") -> str:
    extra: dict[str, str] = {} if anchor == "start" else {"text_anchor": anchor}
    return tag("text", escape(text), x=x, y=y, class_=class_, **extra)


def titled(name: str, title: str, **attributes: str | float) -> str:
    """A mark that says what it is when pointed at."""
    return tag(name, tag("title", escape(title)), **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: Iterable[Sequence[float]]) -> str:
    """Straight lines; points that do not move the pen a tenth of a pixel are left out."""
    steps, last = [], ""
    for x, y in points:
        here = f"{at(x)},{at(y)}"
        if here != last:
            steps.append(here)
            last = here
    return "M" + "L".join(steps) if steps else ""


def drawing(frame: Frame, label: str, *inside: str, data: str = "") -> str:
    attributes = ({"data_chart": data} if data else {}) | ({"class_": "wide"} if frame.width > 800 else {})
    return tag(
        "svg",
        *inside,
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_label=label,
        **attributes,
    )


# -- axes -----------------------------------------------------------------------------------------------------------


def x_axis(frame: Frame, scale: Scale, ticks: Ticks, title: str = "") -> str:
    base = frame.height - frame.bottom
    parts = [line(frame.left, base, frame.width - frame.right, base, "axis")]
    for value, label in ticks:
        x = scale(value)
        parts.append(line(x, base, x, base + 4, "axis"))
        parts.append(words(x, base + 16, label, "tick", "middle"))
    if title:
        parts.append(words(frame.width - frame.right, base + 32, title, "title", "end"))
    return "".join(parts)


def y_axis(frame: Frame, scale: Scale, ticks: Ticks) -> str:
    parts = []
    for value, label in ticks:
        y = scale(value)
        parts.append(line(frame.left, y, frame.width - frame.right, y, "grid"))
        parts.append(words(frame.left - 7, y + 4, label, "tick", "end"))
    return "".join(parts)


# -- ticks ----------------------------------------------------------------------------------------------------------


def round_ticks(high: float, most: int = 5, show: Callable[[float], str] = grouped) -> Ticks:
    """From 0 to at most `high`, on round numbers."""
    if high <= 0:
        return [(0.0, show(0.0))]
    rough = high / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    return [(i * step, show(i * step)) for i in range(int(high / step + 1e-9) + 1)]


def percent_ticks() -> Ticks:
    return [(part / 4, f"{part * 25} %") for part in range(5)]


def change_ticks(low: float, high: float) -> Ticks:
    """Of changes in percent, around 0."""
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)
    step = next((s for s in steps if (high - low) / s <= 8), high - low)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [(i * step, signed_percent(i * step, 0) if i else "0") for i in range(first, last + 1)]


def time_ticks(length_ms: float, most: int = 8) -> Ticks:
    """Of a clock that starts at 0."""
    step = next((s for s in _STEPS if length_ms / s <= most), max(length_ms, 1))
    size, name = next(((s, n) for s, n in _UNITS if step >= s), (1, "ms"))
    return [(i * step, f"{i * step / size:g} {name}" if i else "0") for i in range(int(length_ms / step) + 1)]


def log_time_ticks(scale: Scale, least_px: float = 44) -> Ticks:
    times = _FINE_TIMES if scale.high / scale.low < 100 else _LOG_TIMES
    return apart(scale, [(t, clock(t)) for t in times if scale.low <= t <= scale.high], least_px)


def log_ticks(scale: Scale, least_px: float = 30, sign: str = "") -> Ticks:
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    values = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    if math.log10(scale.high / scale.low) > 2.5:
        values = [10.0**p for p in powers]
    inside = [(v, f"{v:,g}{sign}") for v in values if scale.low * 0.999 <= v <= scale.high * 1.001]
    return apart(scale, inside, least_px)


def apart(scale: Scale, ticks: Ticks, least_px: float) -> Ticks:
    """Without those whose words would touch."""
    kept: list[tuple[float, str]] = []
    for value, label in ticks:
        if not kept or abs(scale(value) - scale(kept[-1][0])) >= least_px:
            kept.append((value, label))
    return kept


def clock(ms: float) -> str:
    """`90000` is 1.5 min on an axis; whole units wherever they are."""
    for size, name in _UNITS:
        if ms >= size:
            return f"{ms / size:g} {name}"
    return f"{ms:g} ms" if ms else "0"
