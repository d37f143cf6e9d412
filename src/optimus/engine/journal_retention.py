"""How long a journal is kept: settings of the writer, and which segments are too many.

Why: a journal grows for ever, a disk does not.
Owns: the rules of rotation and retention as arithmetic.
Must not: delete anything itself, or read a clock: age is measured by the journal's own `now_ms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

PROTECTED_SEGMENTS = 2
"""The one being written and the newest complete one are never deleted."""


class JournalSettings(Struct, frozen=True, kw_only=True):
    rotate_cycles: int = 1_000
    """A new segment, with a keyframe, after this many cycles …"""
    rotate_bytes: int = 16 * 1024 * 1024
    """… or this many bytes of cycles before compression (or half of what the keyframe took, if that is more).
    It bounds the time of a search, which decodes up to one segment."""
    compress: bool = True
    """Cycles."""
    compress_keyframes: bool = False
    """Those are rare and large, and the engine waits for it: a tenth of what the dump takes. About 50 times smaller."""
    keep_bytes: int | None = 1024 * 1024 * 1024
    keep_segments: int | None = None
    keep_ms: int | None = None
    fsync_every: int = 0
    """1: each cycle is on disk before the next begins; n: every n cycles; 0: the kernel decides. Only a power loss
    or a crash of the machine makes a difference: what was written survives the death of the process in any case."""

    def __post_init__(self) -> None:
        if self.rotate_cycles < 1 or self.rotate_bytes < 1:
            raise ValueError("rotate_cycles and rotate_bytes must be at least 1")
        if self.fsync_every < 0:
            raise ValueError("fsync_every must be 0 (never), 1 (each cycle) or more")
        for name in ("keep_bytes", "keep_segments", "keep_ms"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must not be negative; None keeps everything")


class Kept(Struct):
    """A segment as the writer knows it."""

    path: Path
    opened_ms: int
    bytes: int


def count_surplus(kept: Sequence[Kept], settings: JournalSettings, now_ms: int) -> int:
    """How many of the oldest segments may go. `kept` is in order, the one being written last."""
    total = sum(segment.bytes for segment in kept)
    surplus = 0
    while surplus < len(kept) - PROTECTED_SEGMENTS:
        remaining = len(kept) - surplus
        ended_ms = kept[surplus + 1].opened_ms  # the next one begins where this one ends
        too_many = settings.keep_segments is not None and remaining > settings.keep_segments
        too_large = settings.keep_bytes is not None and total > settings.keep_bytes
        too_old = settings.keep_ms is not None and now_ms - ended_ms > settings.keep_ms
        if not (too_many or too_large or too_old):
            break
        total -= kept[surplus].bytes
        surplus += 1
    return surplus
