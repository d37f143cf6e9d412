"""Remembering: what the journal knows of the past, for whoever forecasts.

Why: how many come in an hour is in the journal, which is on this machine; whoever asks may be elsewhere.
Owns: reading it beside the loop, and not more often than it changes much.
Must not: ask the engine.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from optimus.engine.journal_past import WINDOW_MS, past_of, write_past

FRESH_S = 30.0
"""Of a day, half a minute more or less is not seen."""


class Remembered:
    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._reading: asyncio.Task[bytes] | None = None
        self._read_at = 0.0

    async def past(self) -> bytes:
        """Whoever asks while it is read, or soon after, gets the same."""
        if self._reading is None or (self._reading.done() and time.monotonic() - self._read_at > FRESH_S):
            self._reading = asyncio.create_task(asyncio.to_thread(_read, self._journal))
            self._reading.add_done_callback(self._done)
        return await asyncio.shield(self._reading)

    def _done(self, reading: asyncio.Task[bytes]) -> None:
        self._read_at = time.monotonic() if not reading.cancelled() and reading.exception() is None else 0.0


def _read(journal: Path) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return write_past(past_of(journal, now_ms, since_ms=now_ms - WINDOW_MS))
