"""Moments of a journal, by what somebody typed: a cycle, a time of day, an offset, a date and time.

Why: every command that looks into a journal is asked for moments in the same words.
Owns: these words, and what is said when a journal or a moment is not there.
Must not: know what the moment is wanted for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from optimus.model.units import format_clock_ms, format_moment_ms

if TYPE_CHECKING:
    from optimus.engine.journal import Journal, Moment

DAY_MS = 86_400_000
FIRST_DATE_MS = 20 * 365 * DAY_MS
"""Nothing was scheduled before 1990; what is earlier counts from the beginning of a trace."""
END = 2**62
"""No journal has so many cycles."""


def find_moment(journal: Journal, at: str) -> Moment:
    """The moment that was asked for; JournalError if it is not there."""
    from optimus.engine.journal import JournalError

    end = journal.seek(sequence=END)
    sequence = int(at) if at.isdecimal() else None
    moment = journal.seek(sequence=sequence) if sequence is not None else journal.seek(now_ms=_time(at, end.now_ms))
    if sequence is not None and moment.sequence != sequence:
        why = f": {moment.flaws[0]}" if moment.flaws else f"; it ends with cycle {end.sequence}"
        raise JournalError(f"cycle {at} is not in the journal{why}")
    if not moment.cycles:
        opened = describe_moment(moment.keyframe.now_ms)
        raise JournalError(f"nothing was decided by then; the journal begins with cycle 0 at {opened}")
    return moment


def _time(at: str, end_ms: int) -> int:
    """A time of day is the last one in the journal; an offset counts from the end."""
    from optimus.api.specs.fields import read_moment

    try:
        when = read_moment(at)
    except ValueError as error:
        message = f"{at}: {error}; write a cycle such as 4711, a time such as 14:20, or 2026-01-05T14:20:00Z"
        raise typer.BadParameter(message, param_hint="--at") from None
    return when.resolve(end_ms - DAY_MS + 1 if when.clock_ms is not None else end_ms)


def journal_here() -> Path:
    """Of `optimus up` on this machine, also when it is not up."""
    from optimus.client.connection import store_folder
    from optimus.drivers.local.journaling import FOLDER

    folder = store_folder() / FOLDER
    if not any(folder.glob("*.journal")):
        message = f"{folder}: no journal of this machine; `optimus up` keeps one, or name the folder of another"
        raise typer.BadParameter(message, param_hint="DIR")
    return folder


def demand_journal(folder: Path) -> None:
    wrong = ""
    if not folder.exists():
        wrong = "there is no such folder"
    elif not folder.is_dir():
        wrong = "is a file; a journal is a folder"
    elif not any(folder.glob("*.journal")):
        wrong = "holds no journal; `optimus scenario run FILE --journal DIR` writes one"
    if wrong:
        raise typer.BadParameter(f"{folder}: {wrong}", param_hint="DIR")


def describe_moment(at_ms: int) -> str:
    """`2026-01-05 14:20`: with the date, because a journal may be of any day. One of a simulation begins at 0 and has
    no date: `day 3, 14:20`."""
    if 0 <= at_ms < FIRST_DATE_MS:
        return f"day {at_ms // DAY_MS + 1}, {format_clock_ms(at_ms)}"
    return format_moment_ms(at_ms, now_ms=0)
