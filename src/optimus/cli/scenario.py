"""`optimus scenario run` and `check`: small worlds in, states and reasons out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from optimus.cli.showing import Format, FormatOption, Printer, dump, example, tracked

if TYPE_CHECKING:
    from optimus.cli.scenario_checks import Checked
    from optimus.drivers.sim.outcome import Outcome

app = typer.Typer(
    help="Play or check scenario files.",
    epilog=example("optimus scenario run my-story.yaml"),
    no_args_is_help=True,
    rich_markup_mode=None,
)
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Scenario files; of a folder, all in it.")]
Together = Annotated[bool, typer.Option("--together", help="All files describe one world.")]
JournalFolder = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", help="Record every cycle there; `optimus replay DIR` reads it."),
]

World = tuple[Path, ...]
"""Files that are read together."""
Result = TypeVar("Result")


@app.command(epilog=example("optimus scenario run examples/01-scenario-lend-and-take-back/story.yaml"))
def run(
    file: Files, output: FormatOption = Format.TABLE, together: Together = False, journal: JournalFolder = None
) -> None:
    """Play scenario files with the scheduler's real decision code.

    One file is told as a story, of several there is a line each (-o wide tells them all).
    Fails (1) if an expectation does not hold or a file has errors that it does not announce.
    """
    worlds = _worlds(file, together)
    if journal is not None:
        _demand_new_folder(journal, worlds)
    outcomes = list(_each(worlds, lambda files: play_world(files, journal)))
    if output in (Format.JSON, Format.YAML):
        from optimus.drivers.sim.outcome import Outcomes

        dump(Outcomes(ok=all(outcome.ok for outcome in outcomes), scenarios=tuple(outcomes)), output)
    else:
        from optimus.cli.scenario_report import report

        report(Printer(), outcomes, wide=output is Format.WIDE)
    if not all(outcome.ok for outcome in outcomes):
        raise typer.Exit(1)


@app.command(epilog=example("optimus scenario check my-story.yaml"))
def check(file: Files, output: FormatOption = Format.TABLE, together: Together = False) -> None:
    """Report every error in scenario files, each with its place."""
    from optimus.cli.scenario_checks import check_world, report_checks

    checked: list[Checked] = list(_each(_worlds(file, together), check_world))
    report_checks(checked, output)
    if not all(one.ok for one in checked):
        raise typer.Exit(1)


def play_world(files: World, journal: Path | None = None) -> Outcome:
    """Whatever goes wrong is in the outcome, so that the next world is played too."""
    from optimus.drivers.sim.outcome import Outcome
    from optimus.drivers.sim.playing import load_story, play
    from optimus.engine.journal import JournalError

    names = tuple(map(str, files))
    loaded = load_story(*files)
    try:
        return play(loaded, files=names, journal=journal)
    except JournalError as error:
        crash = str(error)
    except Exception as error:  # one broken story must not hide the others
        if os.environ.get("OPTIMUS_DEBUG"):
            raise
        crash = (
            f"the scheduler broke down: {type(error).__name__}: {error} "
            "(a fault of Optimus; please report it with this file. OPTIMUS_DEBUG=1 shows where)"
        )
    return Outcome(
        name=loaded.scenario.name,
        description=loaded.scenario.description,
        files=names,
        policy=loaded.scenario.policy,
        ok=False,
        crash=crash,
        errors=loaded.errors,
        set_aside=loaded.set_aside,
    )


def _demand_new_folder(journal: Path, worlds: Sequence[World]) -> None:
    wrong = ""
    if len(worlds) != 1:
        wrong = f"a journal records one scenario, these are {len(worlds)}; with --together they are one world"
    elif journal.is_file():
        wrong = f"{journal}: is a file; a journal is a folder"
    elif journal.is_dir() and any(journal.glob("*.journal")):
        wrong = f"{journal}: already holds a journal; name a new folder"
    if wrong:
        raise typer.BadParameter(wrong, param_hint="--journal")


def _worlds(files: Sequence[Path], together: bool) -> list[World]:
    """Each file, or all of them, as a world. Files that are not there are wrong usage, all said at once."""
    found: list[Path] = []
    wrong: list[str] = []
    for path in files:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
            if not inside:
                wrong.append(f"{path}: is a folder without scenario files (*.yaml)")
            found += inside
        elif not path.exists():
            wrong.append(f"{path}: there is no such file")
        else:
            found.append(path)
    if wrong:
        raise typer.BadParameter("\n".join(wrong), param_hint="FILE")
    return [tuple(found)] if together else [(path,) for path in found]


def _each(worlds: Sequence[World], do: Callable[[World], Result]) -> Iterator[Result]:
    """One after the other."""
    yield from map(do, tracked(worlds, len(worlds), "scenarios", lambda world: world[-1].name))
