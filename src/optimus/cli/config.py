"""`optimus config`: what holds where nothing is typed, and where each value comes from."""

from __future__ import annotations

import os
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.text import Text

from optimus.cli import settings
from optimus.cli.showing import Format, FormatOption, Printer, console, dump
from optimus.client.connection import settings_file

Only = Annotated[str, typer.Argument(metavar="COMMAND", help="Of this command only, such as run or scenario.")]
JustPath = Annotated[bool, typer.Option("--path", help="Only say where the file is, or would be.")]
NOBODY = "there is no home folder for a file: name one with OPTIMUS_CONFIG"


class Held(Struct, frozen=True, rename="camel"):
    command: str
    option: str
    value: Any
    origin: str
    """default, the name of a variable, or FILE:LINE."""
    variable: str
    """That of this option alone."""


class Settings(Struct, frozen=True):
    file: str
    found: bool
    settings: tuple[Held, ...]


def config(ctx: typer.Context, command: Only = "", path: JustPath = False, output: FormatOption = Format.TABLE) -> None:
    """Show settings from variables and from the file; -o wide shows the defaults, too."""
    file = settings_file()
    if path:
        if file is None:
            console(stderr=True).print(f"Error: {NOBODY}", style="red")
            raise typer.Exit(1)
        typer.echo(str(file))
        return
    known = list(settings.settings_of(ctx.find_root().command))
    commands = sorted({one.words[0] for one in known})
    if command and command not in commands:
        close = get_close_matches(command, commands, n=1)
        told = f"did you mean {close[0]}?" if close else f"those with options are {', '.join(commands)}"
        raise typer.BadParameter(f"there is no command {command}; {told}", param_hint="COMMAND")
    entries = {(one.setting.words, one.setting.key): one for one in settings.read_file(known)}
    held = [_held(one, entries.get((one.words, one.key))) for one in known if command in ("", one.words[0])]
    told_all = Settings(str(file or ""), file is not None and file.exists(), tuple(held))
    if output in (Format.JSON, Format.YAML):
        dump(told_all, output)
        return
    _show(Printer(), told_all, everything=output is Format.WIDE or bool(command))
    for variable in _strangers(known):
        console(stderr=True).print(variable, style="yellow", markup=False)


def _held(setting: settings.Setting, entry: settings.Entry | None) -> Held:
    variable = next((name for name in setting.variables if os.environ.get(name)), "")
    value = os.environ[variable] if variable else entry.value if entry is not None else _default(setting.option)
    origin = variable or (entry.place if entry is not None else "default")
    return Held(" ".join(setting.words), f"--{setting.key}", value, origin, setting.variables[0])


def _default(option: Any) -> Any:
    value = option.default
    if isinstance(value, Enum):
        return value.value
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _show(printer: Printer, told: Settings, *, everything: bool) -> None:
    there = "" if told.found else " (not there: nothing is set by it)"
    printer.line(f"file {told.file}{there}" if told.file else NOBODY, "dim")
    shown = [one for one in told.settings if everything or one.origin != "default"]
    if not shown:
        printer.line("Every option has its default; -o wide shows them.", "dim")
        return
    printer.line()
    rows = [
        (
            Text(one.command, style="bold"),
            one.option,
            "–"
            if one.value in (None, "", "[]")
            else str(one.value).lower()
            if isinstance(one.value, bool)
            else str(one.value),
            Text(one.origin, style="dim" if one.origin == "default" else "cyan"),
        )
        for one in shown
    ]
    printer.columns(rows, header=["command", "option", "value", "from"])


def _strangers(known: list[settings.Setting]) -> list[str]:
    """Variables that look like one of ours and are none: a wish that nobody hears."""
    ours = {name for one in known for name in one.variables}
    starts = tuple({f"OPTIMUS_{one.words[0].upper().replace('-', '_')}_" for one in known})
    found = []
    for name in sorted(os.environ):
        if name.startswith(starts) and name not in ours:
            close = get_close_matches(name, ours, n=1)
            found.append(f"Warning: {name} is no option's variable{f'; did you mean {close[0]}?' if close else ''}")
    return found
