"""How far a job is and when it ends, from what it says of itself.

Why: tables, pages and `optimus top` say the same of the same job.
Owns: what of a report is believed. A job writes what it likes: what makes no sense counts as not said.
Must not: guess. Who does not say how far it is has no end, and neither has one that waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

QUIET_MS = 60_000
STEPS_MISSED = 3
"""A job is quiet if it has said nothing for a minute and for as long as so many steps take."""
LONGEST_S = 100 * 365 * 86_400
RUNS = ("Running", "Rescaling")


class Progress(NamedTuple):
    fraction: float | None = None
    step: int | None = None
    total: int | None = None
    left_ms: int | None = None
    """Until it ends, from now on; 0 if it should be there already."""
    quiet_ms: int = 0
    """For how long it has said nothing, where that is unusual."""


def progress_of(view: Mapping[str, Any], now_ms: int) -> Progress:
    """Of a job as the HTTP API tells it. Of an array: the parts that have succeeded."""
    if counts := view.get("counts"):
        done, parts = counts.get("Succeeded", 0), sum(counts.values())
        return Progress(done / parts, done, parts)
    told = view.get("progress")
    if not isinstance(told, Mapping):
        return Progress()
    step, total = _count(told.get("step")), _count(told.get("total"))
    fraction = _number(told.get("fraction"), most=1.0)
    if fraction is None and step is not None and total:
        fraction = min(step / total, 1.0)
    if view.get("phase") == "Succeeded":  # its last word may have come too late to be read
        agrees = step is not None and total is not None and step >= total
        return Progress(None if fraction is None else 1.0, step if agrees or not total else None, total)
    if view.get("phase") not in RUNS or told.get("phase", "running") != "running" or _is_old(told, view):
        return Progress(fraction, step, total)
    said_ms = _number(told.get("updated_ms"))
    rate = _number(told.get("steps_per_second"))
    silent_ms = max(now_ms - int(said_ms), 0) if said_ms is not None else 0
    quiet_ms = silent_ms if silent_ms > max(QUIET_MS, STEPS_MISSED * 1000 / rate if rate else 0) else 0
    left_s = _left_s(told, fraction, step, total, rate)
    if left_s is None or said_ms is None or quiet_ms:
        return Progress(fraction, step, total, None, quiet_ms)
    return Progress(fraction, step, total, max(int(left_s * 1000) - silent_ms, 0))


def _left_s(
    told: Mapping[str, Any], fraction: float | None, step: int | None, total: int | None, rate: float | None
) -> float | None:
    said = _number(told.get("seconds_left"), most=LONGEST_S)
    if said is not None or "seconds_left" in told:
        return said
    if not rate or step is None or not total or fraction is None:
        return None
    if abs(fraction - step / total) > 1e-6:  # loops inside: the rate counts their steps, the total does not
        return None
    return _number((total - step) / rate, most=LONGEST_S)


def _is_old(told: Mapping[str, Any], view: Mapping[str, Any]) -> bool:
    """Said by an earlier attempt."""
    attempt = _count(told.get("attempt"))
    return attempt is not None and attempt < max(view.get("attempt") or 0, 1)


def _number(value: Any, most: float = float("inf")) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and 0 <= number <= most else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None
