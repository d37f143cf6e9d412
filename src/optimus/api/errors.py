"""What is wrong with a file, in the words and with the place that its author needs.

Why: everything that reads files for people reports the same way: all errors at once, each with its line.
Owns: the error of one place, the record of what was left out because of it, and the one exception of this package.
Must not: decide what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class FileError(Struct, frozen=True, kw_only=True, rename="camel"):
    path: str
    """The file; empty or `items[2]` where there is none."""
    line: int
    """From 1; 0 where there are no lines, as in data that a program handed over: `place` has the whole path."""
    column: int
    place: str
    """What it is about, for people: `workload train: gpu.count`."""
    message: str
    hint: str = ""
    set_aside: str = ""
    """What was left out because of it, such as `workload train`; empty where the world goes on with it."""
    expected: bool = False
    """The file says itself, under `expect.errors`, that this error is there."""

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        where = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        return f"{where}: {place}{self.message}{hint}".removeprefix(": ")


class SetAside(Struct, frozen=True, kw_only=True):
    """A piece of the file that does not take part because of its errors."""

    kind: str
    """`node group`, `pool`, `queue`, `workload`, or the section of the file."""
    name: str
    path: str
    line: int


class LoadError(Exception):
    """The file has errors that nobody expected. Raised only where a caller asks for it."""

    def __init__(self, errors: Iterable[FileError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))
