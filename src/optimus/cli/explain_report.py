"""The page of an explanation in a terminal: in colours, as wide as it is."""

from __future__ import annotations

from rich.text import Text

from optimus.cli.job_tables import STYLES
from optimus.cli.showing import Printer
from optimus.explaining.explanation import Explanation
from optimus.explaining.page import INDENT, PHASE, Columns, Line, Paragraph, Words, page


def report(printer: Printer, told: Explanation, *, wide: bool) -> None:
    def styled(words: Words) -> Text:
        return Text(words.text, style=STYLES.get(told.phase, "") if words.style == PHASE else words.style)

    for part in page(told, wide=wide):
        match part:
            case Line(words):
                printer.line(Text.assemble(*map(styled, words)))
            case Paragraph(words, indent):
                printer.paragraph(words.text, words.style, indent=indent)
            case Columns(rows, header):
                printer.columns([[*map(styled, row)] for row in rows], indent=INDENT, header=header)
