"""Times as Kubernetes writes them, and back.

Why: what a pod says of its end, and what a status says of a job, is in one form; lives count in milliseconds.
Owns: the form.
Must not: read a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime


def read_time(text: str | None) -> int:
    """RFC 3339 as milliseconds; 0 if there is none."""
    try:
        return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000) if text else 0
    except (ValueError, OverflowError):
        return 0


def as_time(at_ms: int | None) -> str:
    """Whole seconds, as Kubernetes has it; empty if there is none."""
    return "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
