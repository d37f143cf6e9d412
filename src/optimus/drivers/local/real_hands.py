"""Real hands: what the body wants done, done by `keeping`, and what comes of it told to the body.

Why: the body speaks of jobs and their starts, the keeper of processes and files.
Owns: the translation.
Must not: remember anything: the body and the folders of the starts do.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import structs

from optimus.drivers.local.hands import Ask, Spawn
from optimus.drivers.local.keeping.events import Event, Exit, Exited, Lost, Request, Started
from optimus.drivers.local.keeping.keeper import Keeper
from optimus.drivers.local.keeping.limiting import Limiting
from optimus.drivers.local.savers import Savers
from optimus.lives import Ended, Shortage

ASKED = "asked"
"""A file in the folder of a start: it has been asked to leave."""


class RealHands:
    def __init__(
        self,
        runs: Path,
        saw_start: Callable[[str, int, str], None],
        saw_end: Callable[[str, Ended], None],
        saw_trouble_saving: Callable[[str, str], None],
        limiting: Limiting | None = None,
    ) -> None:
        """`saw_start` is told the start, when it was, and which of its limits nobody keeps."""
        self.keeper = Keeper(runs, self._told, limiting=limiting)
        self._savers = Savers(runs, self.keeper, self._settled, saw_trouble_saving)
        self._runs = runs
        self._saw_start = saw_start
        self._saw_end = saw_end
        self._adopted: set[str] = set()
        """Starts that an earlier scheduler asked for, and whose end was not known to it."""

    async def adopt(self, starts: Iterable[str]) -> None:
        """What became of them is told before this returns; of one whose remains have to be ended first, later."""
        self._adopted = set(starts)
        await self.keeper.adopt([*self._savers.adopt(self._adopted), *self._adopted])

    def spawn(self, asked: Spawn) -> None:
        try:
            where = asked.workdir or "/"
            request = Request(asked.start, asked.command, asked.environment, where, asked.limits, asked.job)
        except ValueError as error:
            self._saw_end(asked.start, Ended(at_ms=_now_ms(), error=str(error)))
            return
        with contextlib.suppress(OSError):  # on a full disk it is not begun either, and says so
            Path(asked.environment["OPTIMUS_CHECKPOINT_DIR"]).mkdir(parents=True, exist_ok=True)
        self.keeper.spawn(request)

    def ask(self, asked: Ask) -> None:
        """Once: asked again, a job may leave without saving. A scheduler that comes later finds the mark."""
        if (self._runs / asked.start / ASKED).exists():
            return
        if asked.command:
            self._savers.begin(asked)
        else:
            self.keeper.signal(asked.start, signal.Signals[asked.signal])
            self._settled(asked.start)

    def kill(self, start: str) -> None:
        self._savers.end(start)
        self.keeper.kill(start)

    def _settled(self, start: str) -> None:
        with contextlib.suppress(OSError):  # it has not begun yet, or the disk is full: better twice than never
            (self._runs / start / ASKED).touch()

    def _told(self, event: Event) -> None:
        if self._savers.heard(event):
            return
        if not isinstance(event, Started):
            self._savers.end(event.attempt)
        if isinstance(event, Started):
            self._saw_start(event.attempt, event.wall_ms, event.limits_skipped)
        elif isinstance(event, Exited):
            self._saw_end(event.attempt, _ended(event.exit))
        elif isinstance(event, Lost):
            self._saw_end(event.attempt, Ended(at_ms=_now_ms(), lost=True))
        elif not event.claimed_before:
            # what an earlier scheduler asked for and nobody began is lost with it; that is no failure of the job
            lost = event.attempt in self._adopted
            why = "the scheduler ended before it had begun" if lost else event.why
            self._saw_end(event.attempt, Ended(at_ms=_now_ms(), lost=lost, error=why))


def _ended(end: Exit) -> Ended:
    told = Ended(at_ms=end.ended_ms, code=end.code, signal=end.signal, error=end.error or "")
    if end.shortage is None:
        return told
    used, limit = end.shortage.used_bytes, end.shortage.limit_bytes
    shortage = Shortage(used_mib=-(-used >> 20), limit_mib=None if limit is None else limit >> 20)
    return structs.replace(told, shortage=shortage)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
