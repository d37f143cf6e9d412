"""Tables as data: the terminal and the page show the same cells, each in its own way."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct


class Tone(StrEnum):
    PLAIN = ""
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    BAD = "bad"


class Cell(NamedTuple):
    text: str
    tone: Tone = Tone.PLAIN


class Column(Struct, frozen=True):
    title: str
    unit: str = ""
    right: bool = True
    about: str = ""
    """One sentence for those who point at it."""


class Table(Struct, frozen=True, kw_only=True):
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    marks: tuple[int | None, ...] = ()
    """By row: which scheduler it is about, for its colour; empty when none is."""
