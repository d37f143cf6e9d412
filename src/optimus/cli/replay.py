"""`optimus replay`: decide once more what a journal recorded, under the same policy or another; or look at a moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.text import Text

from optimus.cli.showing import Format, FormatOption, Printer, console, dump

if TYPE_CHECKING:
    from optimus.engine.journal import Journal, Moment

DAY_MS = 86_400_000
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a journal.")]
Under = Annotated[
    str, typer.Option("--policy", metavar="NAME|FILE.py:NAME", help="Decide under this policy instead, and compare.")
]
At = Annotated[
    str,
    typer.Option(
        metavar="TIME|CYCLE", help="Tell what was decided then, and why: 4711, 14:20, -10m or 2026-01-05T14:20:00Z."
    ),
]


def replay(folder: Folder, policy: Under = "", at: At = "", output: FormatOption = Format.TABLE) -> None:
    """Replay a journal and compare the plans with the recorded ones.

    Under the recorded policy every cycle should agree; fails (1) if one does not, or if the journal is damaged.
    Under another policy each cycle is decided from the situation as it was recorded.
    """
    from optimus.cli import replay_report as report
    from optimus.cli.replaying import Replay, tell_moment
    from optimus.engine.journal import Journal, JournalError
    from optimus.engine.policy_loading import PolicyError

    _demand_journal(folder)
    _demand_policy(policy)
    try:
        told = tell_moment(_moment(Journal(folder), at), policy) if at else Replay(folder, policy).told()
    except PolicyError as error:
        _fail(f"the recorded policy cannot be loaded: {error}; --policy NAME replays under another one")
    except JournalError as error:
        _fail(str(error))
    if output in (Format.JSON, Format.YAML):
        dump(told, output)
    else:
        report.report(Printer(), told, wide=output is Format.WIDE)
    if not told.ok:
        raise typer.Exit(1)


def _moment(journal: Journal, at: str) -> Moment:
    """The moment that was asked for; JournalError if it is not there."""
    from optimus.cli.replaying import END, describe_moment
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


def _demand_journal(folder: Path) -> None:
    wrong = ""
    if not folder.exists():
        wrong = "there is no such folder"
    elif not folder.is_dir():
        wrong = "is a file; a journal is a folder"
    elif not any(folder.glob("*.journal")):
        wrong = "holds no journal; `optimus scenario run FILE --journal DIR` writes one"
    if wrong:
        raise typer.BadParameter(f"{folder}: {wrong}", param_hint="DIR")


def _demand_policy(policy: str) -> None:
    from optimus.engine.policy_loading import PolicyError, load

    try:
        if policy:
            load(policy)
    except PolicyError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from None


def _fail(message: str) -> NoReturn:
    console(stderr=True).print(Text(message, style="red"))
    raise typer.Exit(1)
