"""The keeper: the scheduler's side of real processes. It asks for starts, hears of ends, and finds its own again.

Why: one place that turns requests into events, each attempt with one story whatever died in between.
Owns: who is waited for, by its lifeline; a nursery, and a new one when it dies.
Must not: wait in the scheduler's loop, poll, end a replica because the scheduler ends, or start anything twice.

    spawn ─► asked ── born ─► watched ── its lifeline is closed ─► its folder is read ─► Exited | Refused | Lost
               │                 ▲
               │    adopt ─► its folder is read, and it lives
               │                 │
               └── the nursery died: claimed, its folder is read; not claimed, it is asked for again

Started, if it is told, is told first. A story that has ended is forgotten here; its folder is for others to remove.

A lifeline is the end of a pipe whose other end its supervisor holds until the attempt is over and on record, or until
it is killed. Of one that was adopted, the pidfd of the replica is watched instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from optimus.drivers.local.keeping import cgroups, wire
from optimus.drivers.local.keeping.events import Event, Exited, Lost, Refused, Request, Started, checked
from optimus.drivers.local.keeping.finding import Ended, Gone, Living, Never, StartRecord, find
from optimus.drivers.local.keeping.identity import boot_id
from optimus.drivers.local.keeping.limiting import Limiting
from optimus.drivers.local.keeping.nursery_line import NurseryLine, widen_open_files
from optimus.drivers.local.keeping.ordering import order_of
from optimus.drivers.local.keeping.reaching import Process, end_marked, opened, send

_TRIES = 3
"""Of one start by nurseries that die meanwhile; then something is wrong that one more would not mend."""
_SOON_S, _LATER_S = 0.02, 1.0
"""Until a folder is read again that could not be judged: it is changing; no descriptor left, no room on the disk."""
_DYING_S = 10.0
"""How long a killed process may take before the scheduler is told all the same: it may hang in a driver."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Kept:
    """One attempt whose end has not been told."""

    attempt: str
    folder: Path
    request: Request | None = None
    """None: it was adopted, and is not ours to ask for."""
    serial: bytes = b""
    """Of the order. An answer to an earlier one is nobody's."""
    tries: int = 0
    lifeline: int | None = None
    replica: Process | None = None
    """None until it is known to have started."""
    told: int = 0
    """The signal that it is to get as soon as it has started; SIGKILL goes before any other."""


class Keeper:
    def __init__(
        self,
        runs: str | os.PathLike[str],
        tell: Callable[[Event], None],
        *,
        limiting: Limiting | None = None,
    ) -> None:
        """`tell` is called in the loop of `start`, never from inside `spawn`; it may call any method here. Without
        `limiting` nobody is limited."""
        self._runs = Path(os.path.abspath(runs))
        self._tell = tell
        self._limiting = limiting
        self._kept: dict[str, Kept] = {}
        self._asked: dict[bytes, Kept] = {}
        """By serial."""
        self._serials = itertools.count(1)
        self._line: NurseryLine | None = None
        self._burials: set[asyncio.Task[None]] = set()
        self._boot = ""
        self._open_files = 0
        self._open = False

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._boot = boot_id()
        self._open_files = widen_open_files()
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:  # every spawn will say so; what runs can still be adopted
            log.warning("the folder of runs %s cannot be made: %s", self._runs, error.strerror)
        self._open = True
        with contextlib.suppress(OSError):  # the first spawn tries again, and tells whom it concerns
            self._line = self._new_line()

    async def close(self) -> None:
        """Stop watching. Whatever runs goes on, and what was asked for is still started."""
        self._open = False
        if self._line is not None:
            await self._line.close()
        if self._burials:
            await asyncio.wait(self._burials)
        for kept in list(self._kept.values()):
            self._forget(kept)
        if self._limiting is not None:
            self._limiting.close()

    def spawn(self, request: Request) -> None:
        """Ask for a start; what comes of it is told."""
        if not self._open:
            raise RuntimeError("a keeper that is not started, or is closed, starts nothing")
        if request.attempt in self._kept:
            again = Refused(request.attempt, "this attempt was claimed before", claimed_before=True)
            self._loop.call_soon(self._say, again)
            return
        kept = self._kept[request.attempt] = Kept(request.attempt, self._runs / request.attempt, request)
        self._ask(kept)

    async def adopt(self, attempts: Iterable[str]) -> None:
        """Take up the stories of attempts that an earlier scheduler asked for; those it asked for in vain end here."""
        for number, attempt in enumerate(attempts):
            if checked(attempt) not in self._kept:
                kept = self._kept[attempt] = Kept(attempt, self._runs / attempt)
                self._look(kept)
            if number % 64 == 63:
                await asyncio.sleep(0)
        if self._limiting is not None:  # of those that were killed together with whoever would have removed theirs
            self._limiting.clear(set(self._kept))

    def signal(self, attempt: str, signum: int, *, whole_group: bool = True) -> bool:
        """Whether it was there to be told; one that is only asked for is told when it has started. Never reaches a
        stranger that got its number."""
        kept = self._kept.get(attempt)
        if kept is None:
            return False
        if kept.replica is None:
            kept.told = signal.SIGKILL if kept.told == signal.SIGKILL else signum
            return True
        return send(kept.replica, signum, whole_group=whole_group)

    def kill(self, attempt: str) -> bool:
        """End it and everything below it; one that is only asked for ends when it has started. Whether it is known.

        Its supervisor sees the replica die and ends whatever was below it, in its group or not.
        """
        if attempt not in self._kept:
            return False
        self.signal(attempt, signal.SIGKILL)
        return True

    # -- asking -----------------------------------------------------------------------------------------------

    def _ask(self, kept: Kept) -> None:
        assert kept.request is not None
        kept.tries += 1
        try:
            if self._line is None:
                self._line = self._new_line()
        except OSError as error:
            self._loop.call_soon(self._refuse, kept, f"no process could be started: {error.strerror}")
            return
        kept.serial = b"%d" % next(self._serials)
        self._asked[kept.serial] = kept
        self._line.send(wire.packed(order_of(kept.request, kept.folder, kept.serial, self._limiting)))

    def _new_line(self) -> NurseryLine:
        return NurseryLine(self._heard, self._line_ended, self._open_files)

    def _line_ended(self) -> None:
        """The nursery is gone, and so is everybody who could still have answered an order."""
        ended, self._line = self._line, None
        if not self._open or ended is None:
            return  # what was asked for and not answered is for the next scheduler to adopt
        unanswered = [kept for kept in self._asked.values() if kept.lifeline is None]
        status = ended.process.returncode
        log.warning("the nursery ended with status %s; %d starts are to be settled", status, len(unanswered))
        for kept in unanswered:
            del self._asked[kept.serial]
            if os.path.lexists(kept.folder):
                self._look(kept)
            elif kept.tries < _TRIES:
                self._ask(kept)
            else:
                self._refuse(kept, f"the process that starts others ended each time, with status {status}")

    # -- hearing ----------------------------------------------------------------------------------------------

    def _heard(self, fields: list[bytes], lifelines: list[int]) -> None:
        kind, *rest = fields
        if kind == wire.BORN:
            for serial, lifeline in itertools.zip_longest(rest, lifelines):
                self._born(self._asked.get(serial), lifeline)
            return
        kept = self._asked.get(rest[0])
        if kept is None:  # its end was seen first, by its lifeline
            return
        if kind == wire.STARTED:
            _, pid, ticks, wall_ms, skipped = rest
            self._has_started(kept, Process(int(pid), int(ticks)), int(wall_ms), skipped.decode())
        elif kind == wire.REFUSED:
            _, why, claimed_before = rest
            self._refuse(kept, why.decode(errors="replace"), claimed_before=bool(claimed_before))

    def _born(self, kept: Kept | None, lifeline: int | None) -> None:
        if kept is None or kept.lifeline is not None:
            if lifeline is not None:
                os.close(lifeline)
        elif lifeline is not None:
            kept.lifeline = lifeline
            self._loop.add_reader(lifeline, self._over, kept)
        else:  # there was no descriptor left to receive it with
            self._loop.call_later(_LATER_S, self._look, kept)

    def _over(self, kept: Kept) -> None:
        self._unwatch(kept)
        self._look(kept, supervisor_gone=True)

    def _adopted_is_over(self, kept: Kept) -> None:
        self._unwatch(kept)
        self._look(kept)

    def _look(self, kept: Kept, *, supervisor_gone: bool = False) -> None:
        """Let its folder say how it stands."""
        if self._kept.get(kept.attempt) is not kept or kept.lifeline is not None:
            return  # settled since this was planned
        finding = find(kept.folder, self._boot, supervisor_gone=supervisor_gone)
        if isinstance(finding, Living | Ended | Gone):
            started = finding.started
            self._has_started(kept, started.replica, started.wall_ms, started.limits_skipped)
        if isinstance(finding, Living):
            kept.lifeline = finding.pidfd
            self._loop.add_reader(finding.pidfd, self._adopted_is_over, kept)
        elif isinstance(finding, Ended) and not any(map(os.path.exists, finding.started.cgroups)):
            self._finish(kept, Exited(kept.attempt, finding.exit))
        elif isinstance(finding, Never):
            self._refuse(kept, finding.why)
        elif isinstance(finding, Ended | Gone):
            burial = self._loop.create_task(self._bury(kept, finding))
            self._burials.add(burial)
            burial.add_done_callback(self._burials.discard)
        elif finding.soon:
            self._loop.call_later(_SOON_S, self._look, kept)
        else:
            log.warning("looking again later: %s", finding.why)
            self._loop.call_later(_LATER_S, self._look, kept)

    # -- telling ----------------------------------------------------------------------------------------------

    def _has_started(self, kept: Kept, replica: Process, wall_ms: int, skipped: str) -> None:
        if kept.replica is not None:
            return
        kept.replica = replica
        self._say(Started(kept.attempt, replica.pid, wall_ms, skipped))
        if kept.told:
            send(replica, kept.told, whole_group=True)

    async def _bury(self, kept: Kept, found: Ended | Gone) -> None:
        """Nobody watches what is left of it any more, so that it is ended before its end is told."""
        if isinstance(found, Ended):
            await self._end_remains(kept.folder, found.started)
            self._finish(kept, Exited(kept.attempt, found.exit))
            return
        if found.same_boot:
            await self._end_remains(kept.folder, found.started)
        self._finish(kept, Lost(kept.attempt, found.why))

    async def _end_remains(self, folder: Path, started: StartRecord) -> None:
        pidfd = opened(started.replica)
        if pidfd is not None:
            send(started.replica, signal.SIGKILL, whole_group=True)
            dead = asyncio.Event()
            self._loop.add_reader(pidfd, dead.set)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(dead.wait(), _DYING_S)
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
        groups = [os.fsencode(group) for group in started.cgroups]
        await asyncio.to_thread(cgroups.end, groups)
        await asyncio.to_thread(end_marked, folder)
        await asyncio.to_thread(cgroups.remove, groups)

    def _refuse(self, kept: Kept, why: str, *, claimed_before: bool = False) -> None:
        if self._limiting is not None and not claimed_before:
            self._limiting.forget(kept.attempt)
        self._finish(kept, Refused(kept.attempt, why, claimed_before))

    def _finish(self, kept: Kept, event: Event) -> None:
        self._forget(kept)
        self._say(event)

    def _forget(self, kept: Kept) -> None:
        self._unwatch(kept)
        self._asked.pop(kept.serial, None)
        if self._kept.get(kept.attempt) is kept:
            del self._kept[kept.attempt]

    def _unwatch(self, kept: Kept) -> None:
        if kept.lifeline is not None:
            self._loop.remove_reader(kept.lifeline)
            os.close(kept.lifeline)
            kept.lifeline = None

    def _say(self, event: Event) -> None:
        try:
            self._tell(event)
        except Exception:  # one event that its hearer stumbles over must not cost others theirs
            log.exception("nobody took in %s", event)
