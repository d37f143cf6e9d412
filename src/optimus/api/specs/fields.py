"""Kinds of fields: quantities, names, choices, moments; each reads what people write and says what is wrong.

Why: `gpu: 0.5`, `memory: 16Gi`, `since: -10m` mean the same in every file.
Owns: the field types and the model that all specs derive from.
Must not: use a bare int, float or bool anywhere: pydantic's own conversions are too kind (`"yes"` is no boolean).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from optimus.model import units

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?", re.ASCII)
_LONGEST_NAME = 253
_DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_SHOWN = 40


class Spec(BaseModel):
    """A mapping in a file. An empty value (`limit:`) counts as not written."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            return {key: value for key, value in data.items() if value is not None}
        return data


def complain(message: str, hint: str = "") -> PydanticCustomError:
    """An error of this package; `explaining` takes message and hint from its context."""
    return PydanticCustomError("optimus", "{message}", {"message": message, "hint": hint})


def shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def nearest(word: str, known: list[str]) -> str:
    """A hint: the closest of the known words, or all of them when they are few."""
    folded = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]}?"
    return f"known: {', '.join(known)}" if 0 < len(known) <= 24 else ""


def _quantity(parse: Callable[[Any], int]) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            return parse(value)
        except units.UnitError as error:
            raise complain(error.message, error.hint) from None

    return read


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise complain(f"must be text, not {shown(value)}", _quoted(value))
    if not _NAME.fullmatch(value) or len(value) > _LONGEST_NAME:
        message = f"is not a name: {shown(value) or 'empty'}"
        raise complain(message, "letters, digits, '-', '_' and '.', with a letter or digit at both ends")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise complain(f"must be text, not {shown(value)}", _quoted(value))
    return value


def _quoted(value: object) -> str:
    return "" if isinstance(value, dict | list) or value is None else f'write "{shown(value)}" in quotes'


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise complain(f"must be true or false, not {shown(value)}")


def _bounded_count(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = _quantity(units.parse_count)(value)
        if not least <= number <= most:
            raise complain(f"must be {least} to {most}: {number}")
        return number

    return read


def written(quantity: str) -> dict[str, Any]:
    """The schema of what may be a number or text; `x-quantity` says what of (for those who write schemas)."""
    return {"anyOf": [{"type": "number"}, {"type": "string"}], "x-quantity": quantity}


_COUNT_SCHEMA = {"type": "integer", "minimum": 0}

Gpu = Annotated[int, PlainValidator(_quantity(units.parse_gpu)), WithJsonSchema(written("gpu"))]
Cpu = Annotated[int, PlainValidator(_quantity(units.parse_cpu)), WithJsonSchema(written("cpu"))]
Memory = Annotated[int, PlainValidator(_quantity(units.parse_memory)), WithJsonSchema(written("memory"))]
"""What is asked for: rounded up to MiB."""
Capacity = Annotated[
    int,
    PlainValidator(_quantity(lambda value: units.parse_memory(value, round_up=False))),
    WithJsonSchema(written("memory")),
]
"""What is there: rounded down to MiB."""
Duration = Annotated[int, PlainValidator(_quantity(units.parse_duration)), WithJsonSchema(written("duration"))]
Offset = Annotated[int, PlainValidator(_quantity(units.parse_offset)), WithJsonSchema(written("offset"))]
"""A duration with a sign: -10m is ten minutes ago."""
Percent = Annotated[int, PlainValidator(_quantity(units.parse_percent)), WithJsonSchema(written("percent"))]
Share = Annotated[int, PlainValidator(_quantity(units.parse_share)), WithJsonSchema(written("share"))]
Count = Annotated[int, PlainValidator(_quantity(units.parse_count)), WithJsonSchema(_COUNT_SCHEMA)]
Integer = Annotated[int, PlainValidator(_quantity(units.parse_integer)), WithJsonSchema({"type": "integer"})]
Copies = Annotated[int, PlainValidator(_bounded_count(0, 100_000)), WithJsonSchema(_COUNT_SCHEMA)]
"""How many similar ones: bounded, because each becomes an object."""
Devices = Annotated[int, PlainValidator(_bounded_count(0, 1024)), WithJsonSchema(_COUNT_SCHEMA)]
Few = Annotated[int, PlainValidator(_bounded_count(1, 1024)), WithJsonSchema({"type": "integer", "minimum": 1})]
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
Name = Annotated[str, PlainValidator(_name), WithJsonSchema({"type": "string", "maxLength": _LONGEST_NAME})]
Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]


def as_list(value: Any) -> Any:
    """One thing where several are allowed."""
    return value if isinstance(value, list | tuple) else [value]


Names = Annotated[tuple[Name, ...], BeforeValidator(as_list)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(as_list)]
Counts = Annotated[tuple[Count, ...], BeforeValidator(as_list)]

Chosen = TypeVar("Chosen", bound=StrEnum)


def choice(kind: type[Chosen]) -> Callable[[Any], Chosen]:
    """A validator for one of the words of an enumeration."""
    known = [str(member) for member in kind]

    def read(value: Any) -> Chosen:
        if isinstance(value, str) and value in known:
            return kind(value)
        word = shown(value)
        raise complain(f"must be one of {', '.join(known)}, not {word}", nearest(word, known) if len(known) > 4 else "")

    return read


def one_of(kind: type[StrEnum]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": [str(member) for member in kind]})


class Moment(Struct, frozen=True):
    """A point in time as written: an offset, a time of day, or a date."""

    offset_ms: int | None = None
    clock_ms: int | None = None
    absolute_ms: int | None = None

    def resolve(self, base_ms: int) -> int:
        """A time of day is the next one at or after the base."""
        if self.absolute_ms is not None:
            return self.absolute_ms
        if self.clock_ms is not None:
            return base_ms + (self.clock_ms - base_ms) % _DAY_MS
        return base_ms + (self.offset_ms or 0)


def read_moment(value: Any) -> Moment:
    if isinstance(value, str):
        clock = _CLOCK.fullmatch(value.strip())
        if clock:
            hours, minutes, seconds = (int(part or 0) for part in clock.groups())
            return Moment(clock_ms=(hours * 3600 + minutes * 60 + seconds) * 1000)
        if len(value) >= 8 and value[4:5] == "-":
            try:
                moment = datetime.fromisoformat(value.strip())
                aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            except ValueError:
                raise complain(f"is not a date: {shown(value)}", "write 2026-01-05T14:20:00Z") from None
            return Moment(absolute_ms=(aware - _EPOCH) // timedelta(milliseconds=1))
    try:
        return Moment(offset_ms=units.parse_offset(value))
    except units.UnitError as error:
        hint = "write an offset such as 5m or -10m, a time such as 14:20, or 2026-01-05T14:20:00Z"
        raise complain(error.message.replace("a duration", "a time"), hint) from None


When = Annotated[Moment, PlainValidator(read_moment), WithJsonSchema(written("moment"))]
