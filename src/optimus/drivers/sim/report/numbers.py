"""Numbers as people read them: one unit per column, few digits, a true minus sign."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

NONE = "–"
_UNITS = (("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000))


class Unit(Struct, frozen=True):
    """Of time, with as many digits after the point for all numbers of a column."""

    name: str
    ms: int
    digits: int

    def show(self, value_ms: float | None) -> str:
        return NONE if value_ms is None else fixed(value_ms / self.ms, self.digits)


def unit_for(values_ms: Iterable[float | None]) -> Unit:
    """In which the typical one of these has a digit or two before the point."""
    known = sorted(abs(value) for value in values_ms if value is not None)
    typical = known[len(known) // 2] if known else 0.0
    name, ms = next(((name, ms) for name, ms in reversed(_UNITS) if typical >= 1.5 * ms), _UNITS[0])
    return Unit(name, ms, 2 if typical < 10 * ms else 1 if typical < 100 * ms else 0)


def duration(ms: float | None) -> str:
    """Alone in a sentence: `41 min`, `2.4 h`."""
    if ms is None:
        return NONE
    if ms == 0:
        return "0 s"
    if abs(ms) < 1_000:
        return f"{grouped(ms)} ms"
    unit = unit_for([ms])
    return f"{grouped(ms / unit.ms)} {unit.name}"


def signed_duration(ms: float | None) -> str:
    """Of a change: `+41 min`, `−2.4 h`."""
    return f"+{duration(ms)}" if ms is not None and ms > 0 else duration(ms)


def grouped(value: float | None) -> str:
    """Three digits that matter, thousands apart: 12,345 · 123 · 12.3 · 1.23."""
    if value is None:
        return NONE
    size = abs(value)
    digits = 0 if size >= 99.95 or value == int(value) else 1 if size >= 9.995 else 2
    return minus(f"{value:,.{digits}f}")


def count(value: int) -> str:
    return f"{value:,}"


def fixed(value: float | None, digits: int) -> str:
    return NONE if value is None else minus(f"{value:,.{digits}f}")


def percent(part: float | None, digits: int = 1) -> str:
    return NONE if part is None else minus(f"{100 * part:.{digits}f} %")


def signed_percent(part: float | None, digits: int = 1) -> str:
    if part is None:
        return NONE
    shown = f"{100 * part:+.{digits}f} %"
    return minus(shown if float(shown[:-2]) else shown.replace("+", "±").replace("-", "±"))


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """`−13.1 to −11.7 %`."""
    if low is None or high is None:
        return NONE
    return f"{minus(f'{100 * low:+.{digits}f}')} to {minus(f'{100 * high:+.{digits}f}')} %"


def minus(text: str) -> str:
    return text.replace("-", "−")
