"""Small questions to an object: a path, the first that is there, the least of several, one or another.

    spec.parallelism | 1                                   the first that is there
    {least: [a, b]}   {product: [a, b]}   {less: [a, b]}   of those that are there; less is a - b, never below 0
    {when: path, is: value, then: a, else: b}

Paths start at the object, or with `item` at what `each` or `at` found. A key with dots in it cannot be named.

Why: the table says where each kind keeps its numbers; code for each kind would be the same lines with other names.
Owns: the grammar and its answers. What is missing or no number is None.
Must not: know any kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.objects import Anything

ROOTS = ("spec", "status", "metadata", "item")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ExpressionError(Exception):
    """The text says what is wrong with it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class Path(Struct, frozen=True):
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.keys)


class First(Struct, frozen=True, tag=True):
    of: tuple[Path | int, ...]


class Arithmetic(Struct, frozen=True, tag=True):
    how: str
    of: tuple[Expression, ...]


class When(Struct, frozen=True, tag=True):
    asks: First
    value: str | int | bool
    then: Expression
    otherwise: Expression


Expression = First | Arithmetic | When


class Place(Struct, frozen=True):
    """Where a question is asked: at an object, and at an item in it."""

    root: Mapping[str, Any]
    item: Any = None


def place_of(thing: Anything) -> Place:
    meta = thing.metadata
    about = {"name": meta.name, "labels": meta.labels or {}, "annotations": meta.annotations or {}}
    spec, status = (part if isinstance(part, Mapping) else {} for part in (thing.spec, thing.status))
    return Place({"spec": spec, "status": status, "metadata": about})


def look(path: Path, place: Place) -> Any:
    found: Any = place.item if path.keys[0] == "item" else place.root.get(path.keys[0])
    for key in path.keys[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def first(expression: First, place: Place) -> Any:
    for part in expression.of:
        value = part if isinstance(part, int) else look(part, place)
        if value is not None:
            return value
    return None


def holds(asks: First, value: str | int | bool, place: Place) -> bool:
    """Whether the answer is this value; 1 is not true, and a field that is not there is false."""
    found = first(asks, place)
    found = False if found is None and isinstance(value, bool) else found
    return bool(found == value and isinstance(found, bool) == isinstance(value, bool))


_HOW: dict[str, Callable[[list[int]], int]] = {
    "least": min,
    "product": prod,
    "less": lambda of: max(of[0] - sum(of[1:]), 0),
}
_ALL_NEEDED = ("product", "less")


def number(expression: Expression, place: Place) -> int | None:
    """The answer as a count; None if it is not there."""
    if isinstance(expression, First):
        found = first(expression, place)
        return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None
    if isinstance(expression, When):
        return number(
            expression.then if holds(expression.asks, expression.value, place) else expression.otherwise, place
        )
    answers = [number(part, place) for part in expression.of]
    there = [answer for answer in answers if answer is not None]
    if not there or (expression.how in _ALL_NEEDED and len(there) < len(answers)):
        return None
    return _HOW[expression.how](there)


def read_path(text: Any) -> Path:
    words = text.strip().split(".") if isinstance(text, str) else []
    if not words or words[0] not in ROOTS:
        raise ExpressionError(f"is no path: {text}", f"a path starts with {', '.join(ROOTS[:-1])} or {ROOTS[-1]}")
    if bad := next((word for word in words if not _KEY.fullmatch(word)), None):
        raise ExpressionError(
            f"is no path: {text}", f"{bad or 'nothing'} cannot be a key; write names with dots between"
        )
    return Path(tuple(words))


def read_first(value: Any) -> First:
    """`a | b | 1`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return First((_count(value),))
    if not isinstance(value, str):
        raise ExpressionError("must be a path, a number, or `path | number`")
    parts = [part.strip() for part in value.split("|")]
    return First(tuple(_count(int(part)) if part.isdecimal() else read_path(part) for part in parts))


def read_expression(value: Any) -> Expression:
    if not isinstance(value, Mapping):
        return read_first(value)
    if set(value) == {"when", "is", "then", "else"}:
        asked = value["is"]
        if not isinstance(asked, str | int | bool):
            raise ExpressionError("is: must be text, a number, true or false")
        return When(read_first(value["when"]), asked, read_expression(value["then"]), read_expression(value["else"]))
    how = next(iter(value)) if len(value) == 1 else ""
    if how not in _HOW or not isinstance(value[how], list) or not value[how]:
        known = "least: […], product: […], less: […], or when, is, then and else together"
        raise ExpressionError(
            f"is no expression: {', '.join(map(str, value)) or 'an empty mapping'}", f"known: {known}"
        )
    return Arithmetic(how, tuple(read_expression(part) for part in value[how]))


def _count(value: int) -> int:
    if value < 0:
        raise ExpressionError(f"must not be negative: {value}")
    return int(value)
