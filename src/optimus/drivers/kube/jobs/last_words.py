"""Last words: what a replica said of itself, in the termination message of its main container.

Why: a job tells how far it is and what it has saved without any right on the server
(docs/guides/checkpoint-and-resume.md).
Owns: what of it is believed: single fields, each of its kind and within its bounds.
Must not: trust it. A job writes what it likes; what is no report is said once, and nothing follows from it.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import Struct

from optimus.drivers.kube.objects import ContainerStatus, Pod

LONGEST = 4_096
MOST_METRICS, LONGEST_NAME, LONGEST_PATH = 20, 64, 1_024
LARGEST = 1 << 53
AHEAD_MS = 60_000
"""So far the clock of a node may be ahead."""


class LastWords(Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: int | None = None
    total: int | None = None
    fraction: float | None = None
    steps_per_second: float | None = None
    metrics: dict[str, float | str] = {}
    checkpoint_ms: int | None = None
    checkpoint_step: int | None = None
    checkpoint_path: str = ""


def last_words(pod: Pod, now_ms: int) -> tuple[LastWords | None, str]:
    """What it said, and what is wrong with that; nothing of either where it said nothing."""
    main = main_status(pod)
    ended = main.state.terminated if main is not None and main.state is not None else None
    text = (ended.message or "").strip() if ended is not None else ""
    if not text:
        return None, ""
    if len(text) > LONGEST:
        return None, "its last words are not read: they are too long"
    if not text.startswith("{"):  # the end of its log, or words of its own
        return None, "its last words are not read: they are no JSON object"
    try:
        told = msgspec.json.decode(text.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return None, f"its last words are not read: they are no JSON ({str(error).lower()[:60]})"
    return _believed(told, now_ms), ""


def main_status(pod: Pod) -> ContainerStatus | None:
    """Of the first container of its template, by name: the server lists them in any order."""
    found = pod.status.container_statuses or []
    name = pod.spec.containers[0].name if pod.spec.containers else ""
    return next((one for one in found if one.name == name), None)


def _believed(told: dict[str, Any], now_ms: int) -> LastWords:
    checkpoint = told.get("checkpoint")
    saved: dict[str, Any] = checkpoint if isinstance(checkpoint, dict) else {}
    at_ms = _whole(told.get("last_checkpoint_ms")) or _whole(saved.get("at_ms"))
    path = saved.get("path")
    fraction = _number(told.get("fraction"))
    metrics = told.get("metrics")
    return LastWords(
        step=_whole(told.get("step")),
        total=_whole(told.get("total")),
        fraction=fraction if fraction is not None and 0.0 <= fraction <= 1.0 else None,
        steps_per_second=_number(told.get("steps_per_second")),
        metrics=_metrics(metrics) if isinstance(metrics, dict) else {},
        checkpoint_ms=at_ms if at_ms is not None and at_ms <= now_ms + AHEAD_MS else None,
        checkpoint_step=_whole(saved.get("step")),
        checkpoint_path=path[:LONGEST_PATH] if isinstance(path, str) else "",
    )


def _metrics(told: dict[str, Any]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name, value in list(told.items())[:MOST_METRICS]:
        number = _number(value)
        if number is not None:
            found[name[:LONGEST_NAME]] = number
        elif isinstance(value, str):
            found[name[:LONGEST_NAME]] = value[:LONGEST_NAME]
    return found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) < LARGEST else None
