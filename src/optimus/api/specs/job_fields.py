"""Kinds of fields that only jobs have: command lines, environments, signals, whole seconds, DNS labels.

Why: what is started must be exactly what was written; a number may stand for text, a boolean may not.
Owns: these field types and what is wrong with one of them alone.
Must not: start anything or look at the machine.

`A: true` is refused: programs differ in whether they want true, True or 1, and only the author knows.
"""

from __future__ import annotations

import re
import shlex
import signal
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from optimus.api.scalars import as_written
from optimus.api.specs.fields import complain, nearest, shown
from optimus.model import units
from optimus.model.gang_validation import MOST_REPLICAS
from optimus.model.labels import is_label

MOST_PARTS = 100_000
_SIGNALS = sorted(name for name in signal.Signals.__members__ if not name.startswith("SIGRT"))
_NEVER_SEEN = ("SIGKILL", "SIGSTOP")
_SHELL_WORDS = re.compile(r"[|&;<>]+|[0-9]?>.*|\$.+|.*\$[({].*", re.DOTALL)


def _label(value: Any) -> str:
    if not isinstance(value, str):
        raise complain(f"must be text, not {shown(value)}")
    if not is_label(value):
        close = re.sub(r"[^a-z0-9-]+", "-", value.lower())[:63].strip("-")
        advice = "small letters, digits and '-', at most 63, with a letter or digit at both ends"
        raise complain(
            f"is not a DNS label: {shown(value) or 'empty'}",
            f"{advice}; such as {close}" if 0 < len(close) < 40 else advice,
        )
    return value


def wrong_label(text: str) -> str:
    """What is wrong with it, in words; empty if nothing is."""
    try:
        _label(text)
    except PydanticCustomError as error:
        return f"{error.message()} ({(error.context or {})['hint']})"
    return ""


def read_word(value: Any) -> str:
    """Text, or a number as it was written."""
    if isinstance(value, bool):
        raise complain(f"must be text, not {shown(value)}", f'write "{shown(value)}", "{value}" or "{int(value)}"')
    if isinstance(value, int | float | Decimal):
        return as_written(value)
    if not isinstance(value, str):
        raise complain(f"must be text, not {shown(value)}", 'write "" for empty text' if value is None else "")
    if "\0" in value:
        raise complain("contains a NUL byte, which no process can be given")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise complain("contains half a character (a surrogate), which cannot be written as UTF-8")
    return value


def _list_of_words(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return value
    raise complain(f"must be a list of words, not {shown(value)}", "write [python, train.py]")


def _split_words(value: Any) -> Any:
    """A list of words, or one text that is split as a shell would split it."""
    if not isinstance(value, str):
        return _list_of_words(value)
    try:
        return shlex.split(value)
    except ValueError as error:
        message = f"cannot be split into words: {str(error).lower()}"
        raise complain(message, "close the quote, or write a list of words") from None


def _with_program(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise complain("names no program", "write [python, train.py] or python train.py")
    return words


def shell_word(written: Any) -> str:
    """The first word of a text that only a shell would understand; empty if there is none, or if it is a list."""
    try:
        words = shlex.split(written) if isinstance(written, str) else []
    except ValueError:
        return ""
    return next((word for word in words if _SHELL_WORDS.fullmatch(word)), "")


def _named_values(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    raise complain(f"must be a mapping of names to text, not {shown(value)}", "write {NAME: text}")


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not value or "=" in value or "\0" in value:
        raise complain(f"is not the name of a variable: {shown(value) or 'empty'}", "a name without '='")
    return value


def _signal(value: Any) -> str:
    name = str(value).upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    if not isinstance(value, str) or name not in _SIGNALS:
        hint = nearest(name, _SIGNALS) if isinstance(value, str) else "write its name, such as SIGUSR1"
        raise complain(f"there is no signal {shown(value)}", hint or "such as SIGUSR1 or SIGTERM")
    if name in _NEVER_SEEN:
        raise complain(f"{name} cannot be caught, so nothing would be saved", "write SIGUSR1 or SIGTERM")
    return name


def _whole_seconds(least: int) -> PlainValidator:
    def read(value: Any) -> int:
        try:
            seconds = units.parse_integer(value)
        except units.UnitError as error:
            raise complain(f"must be whole seconds: {shown(value)}", _without_seconds(value)) from error
        if seconds < least:
            raise complain(f"{'must be more than 0' if least else 'must not be negative'}: {seconds}")
        if seconds * 1000 > units.LARGEST:
            raise complain(f"is too large: {seconds}")
        return seconds * 1000

    return PlainValidator(read)


def _without_seconds(value: Any) -> str:
    try:
        units.parse_duration(value)
    except units.UnitError:
        return "such as 3600"
    return "a duration with a unit goes into the field of the same name without Seconds"


def _from_one_to(most: int) -> PlainValidator:
    def read(value: Any) -> int:
        try:
            number = units.parse_count(value)
        except units.UnitError as error:
            raise complain(error.message, error.hint) from None
        if not 1 <= number <= most:
            raise complain(f"must be 1 to {most}: {number}")
        return number

    return PlainValidator(read)


_TEXT = WithJsonSchema({"type": "string"})
_POSITIVE = WithJsonSchema({"type": "integer", "minimum": 1})


def _up_to(most: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": 1, "maximum": most})


DnsLabel = Annotated[str, PlainValidator(_label), _TEXT]
Word = Annotated[str, PlainValidator(read_word), _TEXT]
Variable = Annotated[str, PlainValidator(_variable), _TEXT]
Words = Annotated[tuple[Word, ...], BeforeValidator(_list_of_words)]
Command = Annotated[tuple[Word, ...], BeforeValidator(_split_words), AfterValidator(_with_program)]
Environment = Annotated[dict[Variable, Word], BeforeValidator(_named_values)]
SignalName = Annotated[str, PlainValidator(_signal), _TEXT]
Seconds = Annotated[int, _whole_seconds(1), _POSITIVE]
"""Whole seconds, more than none, counted in milliseconds."""
SecondsOrNone = Annotated[int, _whole_seconds(0), WithJsonSchema({"type": "integer", "minimum": 0})]
Replicas = Annotated[int, _from_one_to(MOST_REPLICAS), _up_to(MOST_REPLICAS)]
Parts = Annotated[int, _from_one_to(MOST_PARTS), _up_to(MOST_PARTS)]
