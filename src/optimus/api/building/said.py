"""What a job says in more than one place: which of them counts, and where it stands in the file.

Why: `gpu: 1`, `replicaSpec.gpu` and a container's limits mean the same, and an error must name what was written.
Owns: "say it once", amounts that may be repeated as long as they agree, and the way back from a word to its place.
Must not: know which words there are.
"""

from __future__ import annotations

from typing import TypeVar

from optimus.api.building.report import Report
from optimus.api.locating import field_of_role, plain_key, split_path
from optimus.api.marks import Loc, dotted, look_up
from optimus.api.specs.fields import shown

Value = TypeVar("Value")
_COUNTS = {"min": "minReplicas", "max": "maxReplicas"}
_ELSEWHERE: dict[str, Loc] = {"id": ("metadata", "name"), "suspended": ("spec", "suspend")}


class Said:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.places: dict[str, Loc] = {}
        """A word of the short form -> where it was said."""

    def once(self, word: str, *candidates: tuple[Loc, Value | None]) -> Value | None:
        """The value of a word that may stand in several places, but only in one of them."""
        given = [(loc, value) for loc, value in candidates if value is not None]
        if not given:
            return None
        first, value = given[0]
        self.places[word] = first
        for loc, _ in given[1:]:
            self.report.add(loc, f"is given twice: {dotted(first)} and {dotted(loc)}", "keep one of the two")
        return value

    def repeated(self, word: str, value: Value | None, other: tuple[Loc, Value] | None, *, agree: bool) -> Value | None:
        """A value that a container may say again; if only the container says it, it counts."""
        if other is None:
            return value
        loc, again = other
        if value is None:
            self.places[word] = loc
            return again
        if not agree:
            here, there = (look_up(self.report.root, place) for place in (loc, self.places[word]))
            other_words = "says otherwise" if isinstance(there, dict) else f"is {shown(there)}"
            message = f"is {shown(here)}, but {dotted(self.places[word])} {other_words}"
            self.report.add(loc, message, "make them equal, or keep one of the two")
        return value

    def duration(
        self, word: str, seconds: int | None, plain: int | None, *, under: Loc = (), least: int = 0
    ) -> int | None:
        """`maxRuntimeSeconds: 3600` or `maxRuntime: 1h`."""
        home: Loc = ("spec", *under)
        long_name = "ttlSecondsAfterFinished" if word == "ttlAfterFinished" else f"{word}Seconds"
        value = self.once(dotted((*under, word)), ((*home, long_name), seconds), ((*home, word), plain))
        if value is not None and value < least:
            self.report.add(self.places[dotted((*under, word))], "must be more than 0")
        return value

    def locate(self, path: str) -> Loc:
        """Where the field of a workload, as `optimus.model.validation` calls it, was written."""
        parts = split_path(path)
        if parts[:2] == ["gang", "roles"]:
            word, *rest = field_of_role(parts[3:])
            place = self.places.get(str(word), ("spec", word))
            if place[-1] == "replicaSpec":
                rest = [_COUNTS.get(str(part), part) for part in rest]
            return (*place, *rest)
        if parts[0] == "gang":
            return ("spec", *parts[1:])
        if str(parts[0]) in _ELSEWHERE:
            return _ELSEWHERE[str(parts[0])]
        plain = tuple(plain_key(part) for part in parts)
        return self.places.get(dotted(plain), ("spec", *plain))
