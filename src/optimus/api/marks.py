"""Data that remembers where it was written.

Why: an error without its line is a riddle; pydantic knows the path to a value, these containers know its place.
Owns: mappings and lists with a mark for every key and item, and walking them by path.
Must not: know YAML or any noun of the domain. To pydantic they are an ordinary dict and list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Loc = tuple[str | int, ...]
"""Path to a value, as pydantic gives it: keys and list positions from the root."""


class Mark(NamedTuple):
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Fault(NamedTuple):
    """Something wrong with the text itself, such as a key that is there twice."""

    mark: Mark
    key: str
    message: str
    hint: str


class MarkedMap(dict[str, Any]):
    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.key_marks: dict[str, Mark] = {}
        self.value_marks: dict[str, Mark] = {}
        self.faults: list[Fault] = []

    def put(self, key: str, value: Any, key_mark: Mark, value_mark: Mark) -> None:
        self[key] = value
        self.key_marks[key] = key_mark
        self.value_marks[key] = value_mark

    def take_from(self, other: MarkedMap, key: str) -> None:
        """The entry of another mapping, with its place."""
        self.put(key, other[key], other.key_marks[key], other.value_marks[key])


class MarkedList(list[Any]):
    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.marks: list[Mark] = []
        self.faults: list[Fault] = []

    def put(self, value: Any, mark: Mark) -> None:
        self.append(value)
        self.marks.append(mark)

    def take_all_from(self, other: MarkedList) -> None:
        self.extend(other)
        self.marks.extend(other.marks)
        self.faults.extend(other.faults)


def find_mark(root: MarkedMap, loc: Loc, *, key: bool = False) -> Mark:
    """The place of a value, or of the closest thing around it that was written. `key`: the place of its key."""
    here: Any = root
    mark = root.mark
    for step, part in enumerate(loc):
        if isinstance(here, MarkedMap) and part in here:
            inner = here[str(part)]
            at_key = isinstance(inner, dict | list) or (key and step == len(loc) - 1)
            mark = here.key_marks[str(part)] if at_key else here.value_marks[str(part)]
            here = inner
        elif isinstance(here, MarkedList) and isinstance(part, int) and 0 <= part < len(here):
            mark = here.marks[part]
            here = here[part]
        else:
            break
    return mark


def look_up(root: Any, loc: Loc) -> Any:
    """The value at a path, or None."""
    for part in loc:
        if (isinstance(root, MarkedMap) and part in root) or (
            isinstance(root, MarkedList) and isinstance(part, int) and 0 <= part < len(root)
        ):
            root = root[part]  # type: ignore[index]
        else:
            return None
    return root


def dotted(loc: Loc) -> str:
    """A path as people write it: `spec.containers[0].env`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def faults_below(here: Any, loc: Loc = ()) -> list[tuple[Loc, Fault]]:
    """Every fault in the text, with the path to the mapping or list that has it."""
    found: list[tuple[Loc, Fault]] = []
    waiting: list[tuple[Any, Loc]] = [(here, loc)]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, MarkedMap):
            found.extend((place, fault) for fault in value.faults)
            waiting.extend((inner, (*place, key)) for key, inner in value.items())
        elif isinstance(value, MarkedList):
            found.extend((place, fault) for fault in value.faults)
            waiting.extend((inner, (*place, index)) for index, inner in enumerate(value))
    return found
