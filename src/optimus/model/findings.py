"""A list of problems in the making, with the two checks that every noun needs.

Why: a description is checked to its end, so problems are gathered, not raised.
Owns: the sentences for a number out of range and for a name that is there twice.
Must not: know any noun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from optimus.model.problems import Problem
from optimus.model.units import LARGEST


class Findings:
    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.problems: list[Problem] = []

    def add(self, path: str, message: str) -> None:
        self.problems.append(Problem(self.subject, path, message))

    def amount(
        self,
        path: str,
        value: int | None,
        *,
        least: Literal[0, 1] = 0,
        most: int = LARGEST,
        show: Callable[[int], str] = str,
    ) -> None:
        """A quantity that is given must lie between `least` and `most`; `show` says it in the unit people use."""
        if value is None:
            return
        if value < least:
            self.add(path, f"{'must be more than 0' if least else 'must not be negative'}: {show(value)}")
        elif value > most:
            self.add(path, f"is too large: {show(value)}; at most {show(most)}")

    def number(self, path: str, value: int | None) -> None:
        """One that may be negative, and must still be counted with."""
        if value is not None and abs(value) > LARGEST:
            self.add(path, f"is too large or too small: {value}; at most {LARGEST}, at least -{LARGEST}")

    def distinct(self, path: str, names: Sequence[object], what: str) -> None:
        """`path` has a `{}` for the place of the second one in the list."""
        seen: set[object] = set()
        for index, name in enumerate(names):
            if name in seen:
                self.add(path.format(index), f"{what} {name} is there twice")
            seen.add(name)
