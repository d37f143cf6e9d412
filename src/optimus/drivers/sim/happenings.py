"""What happened to one workload, in which cycle and why.

Why: a story's result is not only where everybody ended up, but what they went through.
Owns: the kinds of happenings.
Must not: be kept by anybody but the book.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.model.reasons import Reason

STARTED = "started"
GROWN = "grown"
SHRUNK = "shrunk"
MOVED = "moved"
EVICTED = "evicted"
HELD = "held"
DROPPED = "dropped"
REFUSED = "refused"
FINISHED = "finished"
FAILED = "failed"
CANCELLED = "cancelled"
LOST = "lost"
START_FAILED = "startFailed"


class Happening(Struct, frozen=True, kw_only=True):
    cycle: int
    """Of the plan that did it, or before which it happened; 1 is the first."""
    at_ms: int
    kind: str
    replicas: int = 0
    """How many it was about."""
    cause: Reason | None = None
    beneficiary: str = ""
