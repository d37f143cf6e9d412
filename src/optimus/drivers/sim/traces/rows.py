"""Rows: a CSV file, plain or gzipped, one row at a time, however badly it is written.

Why: every loader meets the same bad files and must answer in the same way.
Owns: opening and decoding, the header, reading numbers and times out of a row, and the list of problems.
Must not: know what a column means, or give up on a file because of a row.

    open_table ──► Table ── rows() ──► Row ── whole("num_gpus") ──► 8
                     │                  └──── RowError: why this row is no job
                     └──► problems: what could not be read, line by line
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import IO, cast

from optimus.drivers.sim.traces.trace import TraceError, TraceProblem, Verdict
from optimus.model.units import LARGEST

MOST_GPUS = 100_000
"""Of one job or node. More is a mistake, and would take its time before it is found out elsewhere."""
LONGEST_MS = 10 * 365 * 86_400_000
"""Of one job. More is a date in the wrong column or a wrong unit, and would be played to its end."""
_GZIP = b"\x1f\x8b"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_UNDECODED = re.compile("[\udc80-\udcff]")
"""Bytes that are not text in the encoding of the file, as the `surrogateescape` handler shows them."""
_LONGEST_SHOWN = 40


class RowError(Exception):
    """The row cannot become a job; the message says why and what to do."""


class Problems:
    """What was wrong with one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[TraceProblem] = []

    def leave_out(self, line: int, message: str) -> None:
        self._add(line, Verdict.LEFT_OUT, message)

    def change(self, line: int, message: str) -> None:
        self._add(line, Verdict.CHANGED, message)

    def note(self, message: str) -> None:
        self._add(0, Verdict.NOTE, message)

    def _add(self, line: int, verdict: Verdict, message: str) -> None:
        self.found.append(TraceProblem(file=self.file, line=line, verdict=verdict, message=message))


class Row:
    __slots__ = ("_at", "_cells", "line")

    def __init__(self, line: int, cells: Sequence[str], at: Mapping[str, int]) -> None:
        self.line = line
        self._cells = cells
        self._at = at

    def text(self, column: str) -> str:
        return self._cells[self._at[column]].strip()

    def text_or(self, column: str, default: str = "") -> str:
        """For columns that a file may lack."""
        at = self._at.get(column)
        return default if at is None else self._cells[at].strip() or default

    def name(self, column: str) -> str:
        text = self.text(column)
        if not text:
            raise RowError(f"{column} is empty; every job needs a name")
        return text

    def number(self, column: str) -> float:
        text = self._cells[self._at[column]]
        try:
            number = float(text)
        except ValueError:
            raise RowError(f"{column} is {shown(text)}; write a number") from None
        if not math.isfinite(number) or abs(number) > LARGEST:
            raise RowError(f"{column} is {shown(text)}; write a number that can be counted")
        return number

    def number_or(self, column: str, default: float) -> float:
        return self.number(column) if self.text_or(column) else default

    def whole(self, column: str) -> int:
        text = self._cells[self._at[column]]
        if text.isdecimal() and text.isascii() and len(text) < 16:  # the usual case, and ten times faster
            return int(text)
        number = self.number(column)
        if number != int(number):
            raise RowError(f"{column} is {shown(text)}; write a whole number")
        return int(number)

    def gpus(self, column: str) -> int:
        """A whole number of devices, at least one."""
        gpus = self.gpus_or_none(column)
        if gpus == 0:
            raise RowError(f"{column} is 0; a job without GPUs is no job here, leave it out or give it one")
        return gpus

    def gpus_or_none(self, column: str) -> int:
        """For formats in which 0 has a meaning."""
        return counted_gpus(column, self.whole(column))

    def ms(self, column: str) -> int:
        """A moment or length in seconds, not negative, as milliseconds."""
        number = self.number(column)
        if number < 0:
            raise RowError(f"{column} is {shown(self.text(column))}; a time cannot be negative here")
        return round(number * 1000)

    def duration_ms(self, column: str) -> int:
        """Seconds that a job ran, more than none."""
        return positive_ms(column, self.number(column) * 1000)

    def date_ms(self, column: str) -> int:
        """A date and time as in `2017-09-04 10:30:41`; without a zone it is taken as UTC."""
        text = self.text(column)
        try:
            return epoch_ms(datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            raise RowError(f"{column} is {shown(text)}; write a date since 1970 as 2017-09-04 10:30:41") from None


def counted_gpus(what: str, gpus: int) -> int:
    if gpus < 0:
        raise RowError(f"{what} is {gpus}; there cannot be fewer than no GPUs")
    if gpus > MOST_GPUS:
        raise RowError(f"{what} is {gpus}; that is no number of GPUs, look for a shifted column")
    return gpus


def positive_ms(what: str, milliseconds: float) -> int:
    if milliseconds < 0:
        raise RowError(f"{what} is {milliseconds / 1000:g} s; it ends before it begins, so its times must be corrected")
    if milliseconds < 1:
        raise RowError(f"{what} is 0; a job that never ran says nothing, leave it out or give it its run time")
    if milliseconds > LONGEST_MS:
        raise RowError(
            f"{what} is {milliseconds / 1000:g} s; nothing runs for more than ten years, look for a shifted column or "
            "another unit"
        )
    return round(milliseconds)


def epoch_ms(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    milliseconds = round(moment.timestamp() * 1000)
    if milliseconds < 0:  # a placeholder, and it would become the beginning of all time
        raise ValueError("before 1970")
    return milliseconds


def shown(text: str) -> str:
    """A cell in a message."""
    text = _UNDECODED.sub("�", text)
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "...")


class Table:
    def __init__(self, path: Path, *, encoding: str = "utf-8-sig", delimiter: str = ",") -> None:
        """TraceError if there is no file, or nothing in it."""
        self.path = path
        self.problems = Problems(path.name)
        self.read = 0
        """Rows so far, good or bad; empty lines are no rows."""
        self._encoding = encoding
        self._delimiter = delimiter
        with open_text(path, encoding) as file:
            cells = self._next(csv.reader(file, delimiter=delimiter))
        if cells is None:
            why = self.problems.found[0].message if self.problems.found else "the file is empty"
            raise TraceError(f"{path}: {why}; expected a header and a row for each job")
        self.columns = tuple(_UNDECODED.sub("�", cell).strip() for cell in cells)
        self._at = {column: i for i, column in reversed(list(enumerate(self.columns)))}
        self.problems.found.clear()  # what is wrong with the header is found again with the rows
        self.read = 0

    def demand(self, *columns: str) -> None:
        missing = [column for column in columns if column not in self._at]
        if missing:
            raise TraceError(
                f"{self.path}: no column {', '.join(missing)}; expected {', '.join(columns)}; "
                f"found {', '.join(map(shown, self.columns[:20]))}"
            )

    def __contains__(self, column: str) -> bool:
        return column in self._at

    def for_each(self, use: Callable[[Row], None]) -> None:
        """Those that `use` refuses with a RowError are told in `problems` as well."""
        for row in self.rows():
            try:
                use(row)
            except RowError as wrong:
                self.problems.leave_out(row.line, str(wrong))

    def rows(self) -> Iterator[Row]:
        """Those that have a cell for each column; the others are told in `problems`."""
        width = len(self.columns)
        with open_text(self.path, self._encoding) as file:
            reader = csv.reader(file, delimiter=self._delimiter)
            self._next(reader)
            while True:
                line = reader.line_num + 1
                cells = self._next(reader)
                if cells is None:
                    return
                if not cells:
                    continue
                self.read += 1
                wrong = self._wrong(cells, width, reader.line_num - line)
                if wrong:
                    self.problems.leave_out(line, wrong)
                else:
                    yield Row(line, cells, self._at)

    def _wrong(self, cells: list[str], width: int, more_lines: int) -> str:
        if len(cells) != width:
            if more_lines:
                return (
                    f"a quote opened here swallows the next {more_lines} lines, and their jobs with them; close it, "
                    "or remove it"
                )
            return f"{len(cells)} cells, and the header has {width}; add or remove commas"
        if any(not cell.isascii() and _UNDECODED.search(cell) for cell in cells):
            return f"not text in {self._encoding.removesuffix('-sig')}; convert the file or name its encoding"
        return ""

    def _next(self, reader: Iterator[list[str]]) -> list[str] | None:
        """The next row; None at the end of what can be read, which may be before the end of the file."""
        while True:
            try:
                return next(reader, None)
            except csv.Error as error:
                self.read += 1
                line = getattr(reader, "line_num", 0)
                self.problems.leave_out(line, f"no row of a CSV file ({error}); look for a quote that is not closed")
            except EOFError:
                self.problems.note(
                    "the compressed file is cut off: the rows before the cut are used, what follows is lost; "
                    "fetch the file again"
                )
                return None
            except (zlib.error, gzip.BadGzipFile) as error:
                self.problems.note(
                    f"the compressed file is damaged ({error}): the rows before that place are used, what follows is "
                    "lost; fetch the file again"
                )
                return None
            except OSError as error:
                raise TraceError(f"{self.path}: cannot be read: {error.strerror or error}") from error


def open_text(path: Path, encoding: str = "utf-8-sig") -> TextIOWrapper:
    """Text of a file, plain or gzipped; what it is is told by its first bytes, not by its name."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise TraceError(f"{path}: is a folder; expected a file") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if head in _WIDE and encoding.startswith("utf-8"):
        raise TraceError(f"{path}: is written in UTF-16; convert it to UTF-8 or name its encoding")
    opened = gzip.GzipFile(path) if head == _GZIP else path.open("rb")
    try:
        return TextIOWrapper(cast("IO[bytes]", opened), encoding=encoding, errors="surrogateescape", newline="")
    except LookupError:
        opened.close()
        raise TraceError(f"{path}: {encoding!r} is no encoding; common ones are utf-8, latin-1 and utf-16") from None
