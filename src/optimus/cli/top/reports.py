"""Reports: what a command says, as lines for a page."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from optimus.cli import job_tables
from optimus.cli.showing import Printer
from optimus.cli.top.pieces import Line, Piece, clean


def described(view: dict[str, Any], events: list[dict[str, Any]], width: int) -> list[Line]:
    """As `optimus describe` does."""
    return printed(lambda printer: job_tables.described(printer, view, events), width)


def printed(write: Callable[[Printer], None], width: int) -> list[Line]:
    paper = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system="standard", highlight=False, emoji=False
    )
    write(Printer(paper))
    return lines_of(paper.file.getvalue())  # type: ignore[attr-defined]


def lines_of(text: str) -> list[Line]:
    """Colours are kept; every other order to a terminal is not."""
    return [_line(Text.from_ansi(one)) for one in text.removesuffix("\n").split("\n")] if text else []


def command(*words: str, address: str = "") -> list[str]:
    return [sys.executable, "-m", "optimus", *words, *(["--address", address] if address else [])]


def surroundings(width: int) -> dict[str, str]:
    """Of a command whose output is shown in a page: as wide as it, and with colours if there are any."""
    return {**os.environ, "COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "xterm"}


def _line(text: Text) -> Line:
    pieces, at = [], 0
    spans = sorted(text.spans, key=lambda span: span.start)
    for span in spans:
        if span.start > at:
            pieces.append(Piece(clean(text.plain[at : span.start])))
        pieces.append(Piece(clean(text.plain[max(span.start, at) : span.end]), str(span.style)))
        at = max(at, span.end)
    return (*pieces, Piece(clean(text.plain[at:])))
