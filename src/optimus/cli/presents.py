"""Where to play on from, by what somebody typed: a scenario file, or a journal and a moment of it.

Why: a forecast and a what-if take the same worlds, and refuse bad ones in the same words.
Owns: telling the two apart, and the refusals.
Must not: play.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.text import Text

from optimus.cli.moments import END, find_moment
from optimus.cli.showing import console

if TYPE_CHECKING:
    from optimus.drivers.sim.present import Present

STORIES = (".yaml", ".yml")
CALLED = {
    "edf": "deadline",
    "fcfs": "fifo",
    "las": "least-attained-service",
    "sjf": "shortest-first",
    "srtf": "shortest-first",
}
"""Names from books, and what the policy is called here."""


def is_journal(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*.journal"))


def is_story(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in STORIES


def demand_world(path: Path, *, others: str = "") -> None:
    """`others`: what else the command takes, in words."""
    wrong = ""
    if not path.exists():
        wrong = "there is no such file or folder"
    elif path.is_dir() and not is_journal(path):
        wrong = "holds no journal; `optimus scenario run FILE --journal DIR` writes one"
    elif not path.is_dir() and not is_story(path):
        wrong = "is neither a scenario (.yaml) nor the folder of a journal"
    if wrong:
        raise typer.BadParameter(f"{path}: {wrong}{others}", param_hint="WORLD")


def demand_nothing_of_journals(options: dict[str, object]) -> None:
    """Of options that only a journal has an answer to."""
    for name, given in options.items():
        if given:
            message = "needs a journal, and without WORLD the scheduler that runs is asked; name the folder of one"
            raise typer.BadParameter(message, param_hint=name)


def present_of(path: Path, at: str) -> Present:
    """Refuses in words: wrong usage is 2, a file that cannot be used is 1."""
    from optimus.drivers.sim import present
    from optimus.engine.journal import Journal, JournalError

    if is_story(path):
        if at:
            message = "a scenario is taken as it opens; --at is for journals"
            raise typer.BadParameter(message, param_hint="--at")
        return _of_story(path)
    try:
        journal = Journal(path)
        return present.of_moment(find_moment(journal, at) if at else journal.seek(sequence=END), str(path))
    except JournalError as error:
        fail(str(error))


def _of_story(path: Path) -> Present:
    from optimus.drivers.sim.playing import load_story
    from optimus.drivers.sim.present import of_scenario

    loaded = load_story(path)
    if loaded.unexpected:
        fail("\n".join(str(error) for error in loaded.unexpected))
    if not loaded.scenario.nodes:
        fail(f"{path}: no node in it; write cluster: [{{name: n, count: 2, gpus: 8}}]")
    return of_scenario(loaded.scenario, path.parent)


def demand_policy(name: str, world: str = "") -> None:
    """`world`: that names the policy; without one, somebody typed it."""
    from optimus.engine.policy_loading import PolicyError, check, load

    try:
        broken = check(load(name))
    except PolicyError as error:
        if world:
            fail(f"{world}: its policy cannot be used: {error}; --policy NAME takes another one")
        known = CALLED.get(name.lower())
        hint = f". What others call {name} is {known} here" if known else ""
        raise typer.BadParameter(f"{error}{hint}", param_hint="--policy") from None
    if broken and not world:
        message = f"{name} would fall back to the default in every decision: {broken[0].message}"
        raise typer.BadParameter(message, param_hint="--policy")


def duration(option: str, text: str) -> int:
    from optimus.model.units import UnitError, parse_duration

    try:
        found = parse_duration(text)
    except UnitError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if found <= 0:
        raise typer.BadParameter(f"is {text}; write a time such as 2h", param_hint=option)
    return found


def fail(message: str) -> NoReturn:
    console(stderr=True).print(Text(message, style="red"))
    raise typer.Exit(1)
