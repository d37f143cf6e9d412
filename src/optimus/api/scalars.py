"""What a bare word in YAML means: the core schema of YAML 1.2, with exact decimals.

Why: YAML 1.1 reads `on` and `no` as booleans, `1:30` as ninety and 0.1 as a float; none of that is wanted here.
Owns: which words are null, booleans, integers and decimals. Everything else is text.
Must not: produce a float.
"""

from __future__ import annotations

import re
from decimal import Decimal

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
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _DECIMAL.fullmatch(text):
        exponent = re.split("[eE]", text)[1:]
        return text if exponent and len(exponent[0]) > _LARGEST_EXPONENT else Decimal(text)
    if _NOT_FINITE.fullmatch(text):
        return Decimal(text.replace(".", ""))
    return text
