"""Saying: what happened to a job, as events people read.

Why: a status says how it is; who asks why needs what came before.
Owns: the words of those events.
Must not: say what did not change.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.lives import LeavingCause, Life


class Saying(Struct, frozen=True):
    reason: str
    """One word of a small vocabulary."""
    text: str
    warning: bool = False


_HARMLESS = (LeavingCause.SUSPENDED, LeavingCause.RESIZED)


def what_happened(before: Life, life: Life) -> list[Saying]:
    """Between one look and the next."""
    found: list[Saying] = []
    if life.attempt > before.attempt:
        found.append(Saying("Started", f"attempt {life.attempt} with {len(life.places)} replicas"))
    elif life.attempt and len(life.places) != len(before.places) and life.places and before.places:
        found.append(Saying("Rescaled", f"from {len(before.places)} to {len(life.places)} replicas"))
    if life.leaving is not None and before.leaving is None:
        cause = life.leaving.cause
        found.append(Saying(cause.capitalize(), life.leaving.text, warning=cause not in _HARMLESS))
    elif life.last_leaving is not None and _left_in_one_step(before, life):
        warning = life.last_leaving not in _HARMLESS
        found.append(Saying(life.last_leaving.capitalize(), life.last_text, warning=warning))
    if life.outcome is not None and not before.over:
        found.append(Saying(life.outcome.capitalize(), life.ended_text or "it is over", warning=bool(life.ended_text)))
    return found


def _left_in_one_step(before: Life, life: Life) -> bool:
    ran = before.leaving is None and before.since_ms is not None
    return ran and life.since_ms is None and not life.over
