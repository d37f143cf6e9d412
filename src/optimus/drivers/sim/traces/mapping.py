"""The mapping file: which column of somebody's CSV is which field of a job, and in what unit.

    name: lab-2025                      columns:
    cluster: {gpus: 256, perNode: 8}      name: JobID
    constants:                            submit: {column: Submitted, format: "%d.%m.%Y %H:%M"}
      class: unattended                   duration: {column: Minutes, unit: min}
                                          gpus: GPUs
                                          class: {column: Kind, values: {nb: interactive}, default: unattended}

Why: most job lists are a few columns with other names.
Owns: the format of the file, its errors, and the units a cell can be in.
Must not: build jobs, or guess a unit that is not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from optimus.drivers.sim.traces.rows import RowError, epoch_ms, shown
from optimus.drivers.sim.traces.trace import TraceError

Constant = str | int | float | bool

MOMENTS = ("submit", "start", "end", "deadline")
LENGTHS = ("duration", "expected")
WHOLE = ("gpus", "replicas", "minReplicas", "maxReplicas", "gpuMilli", "priority")
AMOUNTS = ("cpu", "memory")
WORDS = ("name", "queue", "family", "class", "models")
FIELDS = (*WORDS, *MOMENTS, *LENGTHS, *WHOLE, *AMOUNTS)

_LENGTH_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_CPU_MILLI = {"milli": 1, "cores": 1_000}
_MEMORY_MIB = {"MiB": 1.0, "GiB": 1024.0, "KiB": 1 / 1024, "bytes": 1 / 2**20}
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_MISSING = re.compile(r"missing required field `(.*?)`")
_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d+))?", re.ASCII)


class Column(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    column: str
    unit: str = ""
    """Times: ms, s (the default), min, h, d, or clock (1-02:03:04). cpu: cores, milli. memory: MiB, GiB, KiB, bytes."""
    format: str = ""
    """Of a date: `iso`, or as strptime has it (`%d.%m.%Y %H:%M`). Without a zone it is UTC."""
    values: dict[str, Constant] = {}
    """Cells that mean something else: {nb: interactive}."""
    default: Constant | None = None
    """For empty cells."""


class MappedCluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    gpus: int | None = None
    per_node: int = 8
    model: str = "gpu"


class Mapping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    columns: dict[str, str | Column]
    constants: dict[str, Constant] = {}
    name: str = ""
    cluster: MappedCluster = MappedCluster()
    delimiter: str = ","
    encoding: str = "utf-8-sig"

    def column(self, field: str) -> Column | None:
        written = self.columns.get(field)
        return Column(column=written) if isinstance(written, str) else written


KEYS = Mapping.__struct_encode_fields__


def load_mapping(path: Path) -> Mapping:
    """TraceError with everything that is wrong with it."""
    try:
        written = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(written, dict):
        raise TraceError(f"{path}: no mapping; expected columns: and the name of a column for each field")
    wrong = [f"{key} is no key{_near(key, KEYS)}; keys are {', '.join(KEYS)}" for key in written if key not in KEYS]
    try:
        mapping = msgspec.convert({key: value for key, value in written.items() if key in KEYS}, Mapping)
    except msgspec.ValidationError as error:
        wrong.append(_in_words(error))
        mapping = None
    if mapping is not None:
        wrong += _wrong(mapping)
    if wrong or mapping is None:
        raise TraceError(f"{path}: " + "; ".join(wrong))
    return mapping


def _near(key: object, known: Iterable[str]) -> str:
    close = get_close_matches(str(key), list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _in_words(error: msgspec.ValidationError) -> str:
    """The library's own words name Python's things, and not where in the file it is."""
    what, _, at = str(error).partition(" - at ")
    where = at.strip("`").removeprefix("$").lstrip(".") or "the mapping"
    if where.endswith("[...]"):
        where = f"an entry of {where.removesuffix('[...]')}"
    if unknown := _UNKNOWN.search(what):
        known = (MappedCluster if where == "cluster" else Column).__struct_encode_fields__
        return f"{where} has no key {unknown[1]}{_near(unknown[1], known)}; its keys are {', '.join(known)}"
    if missing := _MISSING.search(what):
        return f"{where} needs the key {missing[1]}"
    wanted = what.removeprefix("Expected ").replace("`", "").replace("object", "keys and values")
    return f"{where}: expected {wanted}"


def _wrong(mapping: Mapping) -> list[str]:
    named = (*mapping.columns, *mapping.constants)
    fields = ", ".join(FIELDS)
    wrong = [
        f"{field} is no field of a job{_near(field, FIELDS)}; fields are {fields}"
        for field in named
        if field not in FIELDS
    ]
    both = [field for field in mapping.columns if field in mapping.constants]
    wrong += [f"{field} is a column and a constant; remove one" for field in both]
    if "submit" not in named:
        wrong.append("submit is missing; name the column of the time of submission, or the constant 0")
    if "duration" not in named and not {"start", "end"} <= set(named):
        wrong.append("duration is missing; name its column, or those of start and end")
    if len(mapping.delimiter) != 1:
        wrong.append(f'delimiter is {mapping.delimiter!r}; write one character, or "\\t" for a tab')
    for field in mapping.columns:
        column = mapping.column(field)
        if column is not None and field in FIELDS:
            wrong += _wrong_units(field, column)
    for field, value in mapping.constants.items():
        try:
            constant_of(field, value)
        except RowError as error:
            wrong.append(str(error))
    return wrong


def _wrong_units(field: str, column: Column) -> list[str]:
    units: tuple[str, ...] = ()
    if field in MOMENTS or field in LENGTHS:
        units = (*_LENGTH_MS, "clock")
    elif field == "cpu":
        units = tuple(_CPU_MILLI)
    elif field == "memory":
        units = tuple(_MEMORY_MIB)
    wrong = []
    if column.unit and column.unit not in units:
        known = f"it is one of {', '.join(units)}" if units else "this field has none"
        wrong.append(f"unit of {field} is {column.unit}; {known}")
    if column.format and field not in MOMENTS:
        wrong.append(f"format of {field}: only {', '.join(MOMENTS)} can be dates")
    if column.format and column.unit:
        wrong.append(f"{field} has a format and a unit; a date needs no unit, a number no format")
    return wrong


# ----------------------------------------------------------------------------------------------- one cell


def constant_of(field: str, value: Constant) -> object:
    """In the units of columns without one: seconds, cores, MiB."""
    return reader_of(field, Column(column="constant"))(str(value))


def reader_of(field: str, column: Column) -> Callable[[str], object]:
    """Text of a cell -> text, whole number, milliseconds, thousandths of a core or MiB; RowError if it cannot be."""
    what = f"{field} ({column.column})"
    if field in MOMENTS and column.format:
        return lambda text: _date_ms(what, text, column.format)
    if field in MOMENTS or field in LENGTHS:
        if column.unit == "clock":
            return lambda text: _clock_ms(what, text)
        return lambda text: round(_number(what, text) * _LENGTH_MS[column.unit or "s"])
    if field == "cpu":
        return lambda text: round(_number(what, text) * _CPU_MILLI[column.unit or "cores"])
    if field == "memory":
        return lambda text: round(_number(what, text) * _MEMORY_MIB[column.unit or "MiB"])
    if field in WHOLE:
        return lambda text: _whole(what, text)
    return lambda text: text


def _number(what: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise RowError(f"{what} is {shown(text)}; write a number, or give its format or unit in the mapping") from None
    if not abs(number) < 2**53:
        raise RowError(f"{what} is {shown(text)}; write a number that can be counted")
    return number


def _whole(what: str, text: str) -> int:
    number = _number(what, text)
    if number != int(number):
        raise RowError(f"{what} is {shown(text)}; write a whole number")
    return int(number)


def _date_ms(what: str, text: str, form: str) -> int:
    try:
        # without a zone it is UTC, which epoch_ms sees to
        return epoch_ms(datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form))  # noqa: DTZ007
    except (ValueError, OverflowError):
        raise RowError(f"{what} is {shown(text)}; expected a date since 1970 written as {form}") from None


def _clock_ms(what: str, text: str) -> int:
    found = _CLOCK.fullmatch(text)
    if not found:
        raise RowError(f"{what} is {shown(text)}; expected a time such as 1-02:03:04, 02:03:04 or 03:04")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    part = int((found[5] or "0").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + part
