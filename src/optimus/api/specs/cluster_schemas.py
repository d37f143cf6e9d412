"""Words for the schema of a server: what a field is, and what must hold.

Why: a rule stands beside the field it is about, and reads as a sentence.
Owns: how rules, bounds and defaults are written so that `optimus.api.crds` finds them.
Must not: know a field.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import WithJsonSchema

Schema = dict[str, Any]
RULES = "x-kubernetes-validations"


def must(rule: str, message: str) -> dict[str, str]:
    """What must hold (CEL), and what to do if it does not."""
    return {"rule": rule, "message": message}


def rules(*found: dict[str, str]) -> Schema:
    """About one mapping or value."""
    return {RULES: list(found)}


def as_stored(schema: Schema) -> WithJsonSchema:
    """Exactly this schema, which is structural already."""
    return WithJsonSchema({"x-structural": schema})


def number(least: int, most: int, default: int | None = None) -> WithJsonSchema:
    usual = {} if default is None else {"x-default": default}
    return WithJsonSchema({"type": "integer", "minimum": least, "maximum": most, **usual})


def ratio(most: float | None = None, *, nothing: bool = False) -> WithJsonSchema:
    """A number that may have a point: more than 0, unless it may be `nothing`."""
    least: Schema = {"minimum": 0} if nothing else {"minimum": 0, "exclusiveMinimum": True}
    return WithJsonSchema({"type": "number", **least, **({} if most is None else {"maximum": most})})


def text(longest: int, *found: dict[str, str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "maxLength": longest, **(rules(*found) if found else {})})


def texts(longest: int, most: int, **more: Any) -> WithJsonSchema:
    items = {"type": "string", "maxLength": longest}
    return WithJsonSchema({"type": "array", "items": items, "maxItems": most, **more})


def usually(kind: type[StrEnum], default: StrEnum) -> WithJsonSchema:
    """One of its words; the default, if nothing is said."""
    return WithJsonSchema({"type": "string", "enum": [str(member) for member in kind], "x-default": str(default)})
