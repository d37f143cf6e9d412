"""What a bare word in YAML means: the core schema of YAML 1.2, with exact decimals.

Why: YAML 1.1 reads `on` and `no` as booleans, `1:30` as ninety and 0.1 as a float; none of that is wanted here.
Owns: which words are null, booleans, integers and decimals, and how a number was written. Everything else is text.
Must not: produce a float.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TypeVar


class OddInteger(int):
    """`007`, `+5`, `0x10`: a number, and the text that it was written as."""

    written: str


class OddDecimal(Decimal):
    """`.5`, `1e3`: a number, and the text that it was written as."""

    written: str


Scalar = str | int | Decimal | bool | None

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 64
"""A longer one stays text: no quantity is that large, and the error that follows can show what was written."""
_LARGEST_EXPONENT = 6


def resolve(text: str) -> Scalar:
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        number = int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        return number if str(number) == text else _odd(OddInteger(number), text)
    if _DECIMAL.fullmatch(text):
        exponent = re.split("[eE]", text)[1:]
        if exponent and len(exponent[0]) > _LARGEST_EXPONENT:
            return text
        decimal = Decimal(text)
        return decimal if str(decimal) == text else _odd(OddDecimal(decimal), text)
    if _NOT_FINITE.fullmatch(text):
        return _odd(OddDecimal(text.replace(".", "")), text)
    return text


def as_written(value: int | float | Decimal) -> str:
    """The text of a number where text is wanted: `007` stays `007`."""
    return value.written if isinstance(value, OddInteger | OddDecimal) else str(value)


_Odd = TypeVar("_Odd", OddInteger, OddDecimal)


def _odd(number: _Odd, text: str) -> _Odd:
    number.written = text
    return number
