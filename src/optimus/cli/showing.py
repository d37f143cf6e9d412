"""How anything is shown: the output formats, the console, and text in columns.

Why: every command has the same `-o`, the same colours and the same tables.
Owns: the formats, when there is colour, and how lines fit the terminal.
Must not: know what it shows.

Into a pipe or a file nothing is coloured, wrapped or cut: one line stays one line.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

NARROWEST = 24
GAP = 2
PATIENCE_SECONDS = 1.0
"""Without a word; then a progress bar appears."""
Item = TypeVar("Item")


class Format(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


FormatOption = Annotated[
    Format,
    typer.Option(
        "-o", "--output", envvar="OPTIMUS_OUTPUT", help="table and wide are for people, json and yaml for programs."
    ),
]


def example(*commands: str) -> str:
    """For the end of a help text; the lines stay as they are."""
    return "\b\n" + "\n".join(["Example:", *(f"  {command}" for command in commands)])


def console(*, stderr: bool = False) -> Console:
    """Colours and cursor moves only on a terminal, and not where NO_COLOR says so."""
    return _Console(stderr=stderr, highlight=False, soft_wrap=True, emoji=False)


def say(text: str, style: str = "") -> None:
    """To people, beside what the command puts out: lines that are too long for the terminal break between words."""
    printer = Printer(console(stderr=True))
    for line in text.splitlines():
        printer.paragraph(line, style)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        hang_up()
        raise SystemExit(0)


def hang_up() -> None:
    """Whoever read what we say has gone, which is no failure: `optimus get jobs | head -1`. Nothing more is said."""
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def dump(record: Any, form: Format) -> None:
    """A msgspec struct for programs."""
    import msgspec

    plain = msgspec.to_builtins(record, str_keys=True)
    if form is Format.JSON:
        import json

        typer.echo(json.dumps(plain, indent=2, ensure_ascii=False))
        return
    import yaml

    typer.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120), nl=False)


def tracked(
    items: Iterable[Item], total: int, what: str, name: Callable[[Item], str], *, at_once: bool = False
) -> Iterator[Item]:
    """The items one by one; on a terminal a progress bar appears if it takes longer than a second. `at_once`: each of
    them takes longer."""
    if (total < 2 and not at_once) or not (errors := console(stderr=True)).is_terminal:
        yield from items
        return
    from rich.progress import Progress

    progress = Progress(console=errors, transient=True)
    task = progress.add_task(what, total=total)
    begun, shown = time.monotonic(), False
    try:
        for item in items:
            if not shown and (at_once or time.monotonic() - begun > PATIENCE_SECONDS):
                progress.start()
                shown = True
            progress.update(task, description=name(item))
            yield item
            progress.advance(task)
    finally:
        if shown:
            progress.stop()


class Printer:
    """Lines and columns, as wide as the terminal."""

    def __init__(self, target: Console | None = None) -> None:
        self.console = target or console()
        self.width: int | None = self.console.width if self.console.is_terminal else None

    def line(self, text: Text | str = "", style: str = "") -> None:
        self.console.print(Text(text, style=style) if isinstance(text, str) else text)

    def paragraph(self, text: str, style: str = "", indent: int = 0) -> None:
        for piece in self._wrapped(Text(text, style=style), indent):
            self.line(Text(" " * indent) + piece)

    def columns(
        self,
        rows: Iterable[Sequence[Text | str]],
        *,
        indent: int = 0,
        header: Sequence[str] = (),
        least: Sequence[int] = (),
        right: Sequence[int] = (),
    ) -> None:
        """Rows of equal length; all columns but the last are padded, the last one is wrapped beside them.

        `least` are widths that columns have at least, `right` the columns whose text is pushed to the right."""
        cells = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
        if not cells:
            return
        if header:
            cells.insert(0, [Text(name, style="dim") for name in header])
        *widths, last = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
        widths = [max(width, wanted) for width, wanted in zip_longest(widths, least[: len(widths)], fillvalue=0)]
        offset = indent + sum(widths) + GAP * len(widths)
        for row in cells:
            start = Text(" " * indent)
            for number, (cell, width) in enumerate(zip(row[:-1], widths, strict=True)):
                pad, gap = Text(" " * (width - cell.cell_len)), Text(" " * GAP)
                start = start + (pad + cell if number in right else cell + pad) + gap
            if self.width is not None and self.width - offset < min(NARROWEST, last):
                self._below(start, Text() if header and row is cells[0] else row[-1], indent)
                continue
            end = Text(" " * (last - row[-1].cell_len)) + row[-1] if len(widths) in right else row[-1]
            first, *others = self._wrapped(end, offset) or [Text()]
            self._print(start + first)
            for other in others:
                self._print(Text(" " * offset) + other)

    def _below(self, start: Text, last: Text, indent: int) -> None:
        """Too narrow for a last column: it goes on lines of its own."""
        self._print(start)
        if last.plain:
            for piece in self._wrapped(last, indent + 2 * GAP):
                self._print(Text(" " * (indent + 2 * GAP)) + piece)

    def _print(self, text: Text) -> None:
        text.rstrip()
        self.line(text)

    def _wrapped(self, text: Text, offset: int) -> list[Text]:
        if self.width is None:
            return [text]
        return list(text.wrap(self.console, max(self.width - offset, NARROWEST)))
