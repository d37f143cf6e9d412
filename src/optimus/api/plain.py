"""Data of a program as marked data, and back.

Why: what an HTTP request or a Python program hands over has no lines, but is checked by the same code as a file.
Owns: the two conversions, and the bound on depth and size for data that no reader of ours has seen.
Must not: know any noun of the domain, or raise.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from optimus.api.marks import Fault, Mark, MarkedList, MarkedMap
from optimus.api.reading import DEEPEST, MOST_VALUES
from optimus.api.scalars import OddDecimal, OddInteger

_ATOMS = (str, int, float, Decimal, bool, type(None))


class _TooMuch(Exception):  # noqa: N818 - it ends one document, nobody outside sees it
    pass


def to_marked(value: Any, name: str) -> tuple[Any, list[Fault]]:
    """Mappings and lists that carry `name` instead of a place; None and a fault if it is no plain data."""
    mark = Mark(name, 0, 0)
    try:
        return _Walk(mark).copy(value, 0), []
    except _TooMuch as stop:
        return None, [Fault(mark, "", str(stop), "")]


class _Walk:
    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.values = 0

    def copy(self, value: Any, depth: int) -> Any:
        self.values += 1
        if depth > DEEPEST:
            raise _TooMuch(f"is nested more than {DEEPEST} levels deep")
        if self.values > MOST_VALUES:
            raise _TooMuch(f"holds more than {MOST_VALUES:,} values")
        if isinstance(value, dict):
            mapping = MarkedMap(self.mark)
            for key, inner in value.items():
                mapping.put(str(key), self.copy(inner, depth + 1), self.mark, self.mark)
            return mapping
        if isinstance(value, list | tuple):
            items = MarkedList(self.mark)
            for inner in value:
                items.put(self.copy(inner, depth + 1), self.mark)
            return items
        if not isinstance(value, _ATOMS):
            raise _TooMuch(f"holds a {type(value).__name__}, which is no plain data")
        return value


def to_plain(value: Any) -> Any:
    """Ordinary mappings, lists, text and numbers, as JSON has them."""
    if isinstance(value, dict):
        return {key: to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inner) for inner in value]
    if isinstance(value, OddInteger | OddDecimal):
        return value.written
    if isinstance(value, Decimal):
        return float(value) if repr(float(value)) == str(value) else str(value)
    return value
