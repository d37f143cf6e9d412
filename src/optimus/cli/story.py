"""`optimus story`: a small scenario, played by the real scheduler, to watch.

What is decided scrolls by line by line; the picture of the GPUs stays below it and changes. Without a terminal the same
text comes without pauses, colours or cursor moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from optimus.cli.showing import Printer, console

if TYPE_CHECKING:
    from optimus.drivers.sim.playing import Moment, Play

SHIPPED = Path(__file__).parent / "stories" / "morning.yaml"
BEFORE_LINES_SECONDS = 1.1
PER_LINE_SECONDS = 0.45
AFTER_CYCLE_SECONDS = 1.0
INTERRUPTED = 130
PLAIN_WIDTH = 100
LEAST_WIDTHS = (9, 8)
"""Of verbs and names, so that most cycles line up."""

Show = Callable[[list[Text]], None]
"""Replaces the picture."""


def story(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A scenario file of your own instead.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Without pauses.")] = False,
) -> None:
    """Watch the scheduler at work for half a minute."""
    from optimus.drivers.sim.playing import Play, load_story

    if file is not None and not file.is_file():
        raise typer.BadParameter(f"{file}: there is no such file", param_hint="FILE")
    path = file or SHIPPED
    loaded = load_story(path)
    for error in loaded.unexpected:
        console(stderr=True).print(Text(str(error), style="red"))
    play = Play(loaded.scenario, folder=path.parent)
    target = console()
    try:
        _perform(play, target, paced=target.is_terminal and not fast)
    except KeyboardInterrupt:
        target.print(Text("stopped", style="dim"))
        raise typer.Exit(INTERRUPTED) from None
    _say_goodbye(target, path)
    if play.checker.failures or loaded.unexpected:
        for failure in play.checker.failures:
            console(stderr=True).print(Text(str(failure), style="red"))
        raise typer.Exit(1)


def _perform(play: Play, target: Console, *, paced: bool) -> None:
    from optimus.cli.scenario_report import cycle_lines
    from optimus.cli.story_drawing import Picture

    printer = Printer(target)
    width = target.width if target.is_terminal else PLAIN_WIDTH
    printer.line(play.scenario.name, "bold")
    if play.scenario.description:
        printer.paragraph(play.scenario.description.strip(), "italic")
    known: dict[str, str] = {}
    with _stage_for(target) as show:
        for moment in play:
            lines = cycle_lines(moment.told, known)
            known = {wait.workload: wait.reason.text for wait in moment.told.waiting}
            picture = Picture(play.stage.book).draw(moment.plan, width - 1)
            _tell(printer, moment, lines, paced=paced)
            show([Text(), *picture])
            _pause(AFTER_CYCLE_SECONDS, paced)


def _tell(printer: Printer, moment: Moment, lines: list[tuple[Text, Text, Text]], *, paced: bool) -> None:
    printer.line()
    printer.columns([(Text(moment.told.clock, style="bold cyan"), Text(moment.told.note.strip(), style="italic"))])
    _pause(BEFORE_LINES_SECONDS, paced)
    widths = [max([least, *(line[i].cell_len for line in lines)]) for i, least in enumerate(LEAST_WIDTHS)]
    for line in lines:
        printer.columns([line], indent=2, least=widths)
        _pause(PER_LINE_SECONDS, paced)


@contextmanager
def _stage_for(target: Console) -> Iterator[Show]:
    """On a terminal the picture stays below the text and is redrawn; else it is printed after each cycle."""
    if not target.is_terminal:

        def print_all(lines: list[Text]) -> None:
            for line in lines:
                line.rstrip()
                target.print(line)

        yield print_all
        return
    with Live(Group(), console=target, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda lines: live.update(Group(*lines), refresh=True)


def _pause(seconds: float, paced: bool) -> None:
    if paced:
        time.sleep(seconds)


def _say_goodbye(target: Console, path: Path) -> None:
    target.print()
    target.print(Text("Everything above was decided by the real scheduler. Read the story, change it, play it again:"))
    target.print(Text(f"  optimus scenario run {_shown(path)}", style="bold"))


def _shown(path: Path) -> str:
    """Relative where that is shorter."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
