"""`optimus replay`: decide once more what a journal recorded, under the same policy or another; or look at a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from optimus.cli.moments import demand_journal, find_moment, journal_here
from optimus.cli.showing import Format, FormatOption, Printer, console, dump

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="The folder of a journal. Else that of `optimus up` here.", show_default=False),
]
Under = Annotated[
    str, typer.Option("--policy", metavar="NAME|FILE.py:NAME", help="Decide under this policy instead, and compare.")
]
At = Annotated[
    str,
    typer.Option(
        metavar="TIME|CYCLE", help="Tell what was decided then, and why: 4711, 14:20, -10m or 2026-01-05T14:20:00Z."
    ),
]


def replay(folder: Folder = None, policy: Under = "", at: At = "", output: FormatOption = Format.TABLE) -> None:
    """Replay a journal and compare the plans with the recorded ones.

    Under the recorded policy every cycle should agree; fails (1) if one does not, or if the journal is damaged.
    Under another policy each cycle is decided from the situation as it was recorded.
    """
    from optimus.cli import replay_report as report
    from optimus.cli.replaying import Replay, tell_moment
    from optimus.engine.journal import Journal, JournalError
    from optimus.engine.policy_loading import PolicyError

    if folder is None:
        folder = journal_here()
    demand_journal(folder)
    _demand_policy(policy)
    try:
        told = tell_moment(find_moment(Journal(folder), at), policy) if at else Replay(folder, policy).told()
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
