"""Savers: commands that save the work of a replica from outside, run beside it (`checkpoint.command`).

Why: not every program hears a signal; and a command that hangs, fails or is not there is its job's trouble alone.
Owns: the start of such a command, once for each replica, its end with it, and what its end means.
Must not: wait for it, or let it outlive its replica.

A saver is kept like a replica, under the name of its start with one word more: it is started at most once whoever dies
meanwhile, goes on without a scheduler, and what it writes is among the logs (`worker-0-saver`).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from optimus.drivers.local.hands import Ask
from optimus.drivers.local.keeping.events import Event, Exit, Exited, Lost, Refused, Request, Started
from optimus.drivers.local.keeping.keeper import Keeper

WORD = "saver"


class Savers:
    def __init__(
        self, runs: Path, keeper: Keeper, settled: Callable[[str], None], tell: Callable[[str, str], None]
    ) -> None:
        """`settled`: this start has been asked to leave, for good. `tell`: what went wrong, with which start."""
        self._runs = runs
        self._keeper = keeper
        self._settled = settled
        self._tell = tell
        self._starts: dict[str, str] = {}
        """By saver: the start that it saves. Those that are not here are nobody's business any more."""
        self._asked: dict[str, Ask] = {}
        """By start."""
        self._ends: dict[str, Event] = {}
        """By start: of one that an earlier scheduler began, until this one is asked for it."""

    def adopt(self, starts: Iterable[str]) -> list[str]:
        """Those that an earlier scheduler began: the keeper is to take them up with their starts."""
        found = {saver_of(start): start for start in starts if (self._runs / saver_of(start)).is_dir()}
        self._starts |= found
        return list(found)

    def begin(self, asked: Ask) -> None:
        saver = saver_of(asked.start)
        self._asked[asked.start] = asked
        if saver in self._starts:
            if (end := self._ends.pop(asked.start, None)) is not None:
                self._settle(asked, end)
            return
        self._starts[saver] = asked.start
        try:
            self._keeper.spawn(Request(saver, asked.command, asked.environment, asked.workdir or "/"))
        except ValueError as error:
            self._settle(asked, Refused(saver, str(error)))

    def end(self, start: str) -> None:
        """Its replica has ended, or is to be killed."""
        if self._starts.pop(saver_of(start), None) is not None:
            self._asked.pop(start, None)
            self._ends.pop(start, None)
            self._keeper.kill(saver_of(start))

    def heard(self, event: Event) -> bool:
        """Whether it was about a saver."""
        if event.attempt.split("-")[-2:-1] != [WORD]:
            return False
        start = self._starts.get(event.attempt)
        if start is None or isinstance(event, Started):
            return True
        asked = self._asked.get(start)
        if asked is None:
            self._ends[start] = event
        else:
            self._settle(asked, event)
        return True

    def _settle(self, asked: Ask, end: Event) -> None:
        """One that could not be run has saved nothing: the signal is the next best. One that failed may have done
        half of it, and a signal in between would spoil the rest."""
        name = asked.command[0]
        if isinstance(end, Exited) and not end.exit.error:
            if end.exit.code:
                self._tell(asked.start, f"{name} (checkpoint.command) ended with {_how(end.exit)}")
            elif end.exit.signal:
                self._tell(asked.start, f"{name} (checkpoint.command) was ended by {_how(end.exit)}")
        elif isinstance(end, Lost):
            self._tell(asked.start, f"{name} (checkpoint.command) is lost: {end.why}")
        else:
            why = end.exit.error if isinstance(end, Exited) else end.why if isinstance(end, Refused) else ""
            self._keeper.signal(asked.start, signal.Signals[asked.signal])
            self._tell(
                asked.start, f"{name} (checkpoint.command) could not be run: {why}; it got {asked.signal} instead"
            )
        self._settled(asked.start)


def saver_of(start: str) -> str:
    """Its time stays at the end, by which what is old is known."""
    name, _, began = start.rpartition("-")
    return f"{name}-{WORD}-{began}"


def _how(end: Exit) -> str:
    return f"code {end.code}" if end.code is not None else signal.Signals(end.signal or 0).name
