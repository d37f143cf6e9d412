"""Pieces of the page: tables, figures, keys. Text that comes from a trace is always escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from optimus.drivers.sim.report.cells import Cell, Column, Table
from optimus.drivers.sim.report.look import SCHEDULERS
from optimus.drivers.sim.report.svg import tag


def scheduler_mark(number: int) -> str:
    """The class that gives a scheduler its colour."""
    return f"s{number % SCHEDULERS}"


def html_table(table: Table) -> str:
    head = "".join(_head(column) for column in table.columns)
    rows = []
    for i, row in enumerate(table.rows):
        mark = table.marks[i] if table.marks else None
        goes_on = i + 1 < len(table.rows) and not table.rows[i + 1][0].text
        cells = "".join(_cell(column, cell) for column, cell in zip(table.columns, row, strict=True))
        if mark is not None:
            dot = f'<i class="mark {scheduler_mark(mark)}"></i>'
            at = next(n for n, column in enumerate(table.columns) if column.title == "scheduler")
            cells = "".join(
                _cell(column, cell, dot if n == at else "")
                for n, (column, cell) in enumerate(zip(table.columns, row, strict=True))
            )
        rows.append(f'<tr class="cont">{cells}</tr>' if goes_on else f"<tr>{cells}</tr>")
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    body = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="scroll">{body}</div>{note}'


def _head(column: Column) -> str:
    unit = f"<span>{escape(column.unit)}</span>" if column.unit else ""
    title = escape(column.title)
    if column.about:
        title = f'<abbr title="{escape(column.about)}">{title}</abbr>'
    side = "" if column.right else ' class="left"'
    return f'<th scope="col"{side}>{title}{unit}</th>'


def _cell(column: Column, cell: Cell, before: str = "") -> str:
    classes = " ".join(filter(None, ("" if column.right else "left", str(cell.tone))))
    told = f' class="{classes}"' if classes else ""
    return f"<td{told}>{before}{escape(cell.text)}</td>"


def figure(title: str, about: str, drawing: str, mark: str = "") -> str:
    caption = f"<figcaption>{escape(about)}</figcaption>"
    return f'<figure class="{mark}"><h3>{escape(title)}</h3>{caption}{drawing}</figure>'


def pair(*figures: str) -> str:
    return f'<div class="pair">{"".join(figures)}</div>'


def key(names: Sequence[tuple[str, str]]) -> str:
    """What colours mean: (name, class)."""
    return tag("div", *(f'<span><i class="{mark}"></i>{escape(name)}</span>' for name, mark in names), class_="key")


def section(title: str, about: str, *inside: str) -> str:
    intro = f'<p class="about">{escape(about)}</p>' if about else ""
    return f"<section><h2>{escape(title)}</h2>{intro}{''.join(inside)}</section>"


def described(pairs: Sequence[tuple[str, str]]) -> str:
    """Terms and what they are; the second part is taken as it is."""
    return f"<dl>{''.join(f'<dt>{escape(term)}</dt><dd>{text}</dd>' for term, text in pairs)}</dl>"
