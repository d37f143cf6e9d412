"""Pieces: text with a style, in columns that fit, whatever somebody has called a job."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

EIGHTHS = " ▏▎▍▌▋▊▉"
NOTHING = "–"


class Piece(NamedTuple):
    text: str
    style: str = ""


Line = tuple[Piece, ...]


def plain(line: Line) -> str:
    return "".join(piece.text for piece in line)


def clean(text: str) -> str:
    """Without anything that a terminal would take for an order."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " for one in text)


@lru_cache(4096)
def cut(text: str, width: int) -> str:
    """At most so many cells; what is missing is an ellipsis."""
    text = clean(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


@lru_cache(4096)
def cut_before(text: str, width: int) -> str:
    """The end is kept: of many nodes that is where they differ."""
    text = clean(text)
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > width - 1:
        text = text[1:]
    return f"…{text}" if width > 0 else ""


def fit(text: str, width: int) -> str:
    """Exactly so many cells."""
    short = cut(text, width)
    return short + " " * (width - cell_len(short))


def fit_right(text: str, width: int) -> str:
    short = cut(text, width)
    return " " * (width - cell_len(short)) + short


def bar(fraction: float, width: int) -> str:
    """As long as `fraction` of the width, to an eighth of a cell, on a dotted line."""
    eighths = int(min(max(fraction, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    drawn = "█" * whole + (EIGHTHS[rest] if rest else "")
    return drawn + "·" * (width - len(drawn))
