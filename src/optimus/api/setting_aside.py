"""Taking a bad record out of the data, so that the rest of the world goes on.

Why: one bad workload among a thousand must cost one workload.
Owns: what counts as a record, and removing it from the marked data.
Must not: decide what is bad.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from optimus.api.marks import Loc, MarkedList, MarkedMap, find_mark, look_up

_ANY = "*"
_RECORDS: tuple[tuple[Loc, str], ...] = (
    (("cycles", _ANY, "add", "nodes", _ANY), "node group"),
    (("cycles", _ANY, "add", "pools", _ANY), "pool"),
    (("cycles", _ANY, "add", "queues", _ANY), "queue"),
    (("cycles", _ANY, "change", _ANY, _ANY), "change"),
    (("cycles", _ANY, "expect", _ANY, _ANY), "expectation"),
    (("cycles", _ANY, "submit", _ANY), "workload"),
    (("cycles", _ANY, "expect", _ANY), "expectation"),
    (("cycles", _ANY, _ANY, _ANY), "event"),
    (("cluster", "nodes", _ANY), "node group"),
    (("expect", _ANY, _ANY), "expectation"),
    (("expect", _ANY), "expectation"),
    (("budget", _ANY), "setting"),
    (("settings", _ANY), "setting"),
    (("between", _ANY), "setting"),
    (("cycles", _ANY, _ANY), "event"),
    (("pools", _ANY), "pool"),
    (("queues", _ANY), "queue"),
    (("workloads", _ANY), "workload"),
    (("cycles", _ANY), "cycle"),
    (("cluster", _ANY), "section"),
    ((_ANY,), "section"),
)
"""From the narrowest: the first that matches and was written is what goes."""


class Record(Struct, frozen=True):
    loc: Loc
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind


def record_at(root: MarkedMap, loc: Loc) -> Record | None:
    """The record that a path lies in."""
    for pattern, kind in _RECORDS:
        place = loc[: len(pattern)]
        if len(place) == len(pattern) and all(want in (_ANY, part) for want, part in zip(pattern, place, strict=True)):
            parent = look_up(root, place[:-1])
            if _has(parent, place[-1]):
                return Record(place, kind, _name(parent[place[-1]], place, kind))
    return None


def remove(root: MarkedMap, record: Record) -> None:
    """A cycle leaves an empty cycle behind, so that the others keep their numbers."""
    parent = look_up(root, record.loc[:-1])
    key = record.loc[-1]
    if record.kind == "cycle":
        parent[key] = MarkedMap(find_mark(root, record.loc))
    elif isinstance(parent, MarkedList):
        del parent[key]  # type: ignore[arg-type]
        del parent.marks[key]  # type: ignore[arg-type]
    elif isinstance(parent, MarkedMap):
        del parent[str(key)]


class SetAsideNames:
    """Names of what was removed, so that whoever refers to it is not called wrong as well."""

    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()

    def add(self, record: Record) -> None:
        self._names.add((record.kind, record.name))

    def has(self, kind: str, name: str) -> bool:
        """Also finds `train-7` when the record `train` stood for several."""
        plain = name.rpartition("/")[2]
        return bool({(kind, plain), (kind, re.sub(r"-[0-9]+$", "", plain))} & self._names)


def _has(parent: Any, key: str | int) -> bool:
    if isinstance(parent, MarkedList):
        return isinstance(key, int) and 0 <= key < len(parent)
    return isinstance(parent, MarkedMap) and key in parent


def _name(value: Any, loc: Loc, kind: str) -> str:
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return str(value["name"])
    if kind in ("expectation", "section", "setting", "event"):
        return str(loc[-1])
    return f"number {loc[-1] + 1}" if isinstance(loc[-1], int) else str(loc[-1])
