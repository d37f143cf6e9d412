"""Seeded dice. The same seed gives the same world on every machine.

Why: a failing world must be told by its number alone.
Owns: the only source of chance in `optimus.testing`; uses `randrange` alone, whose numbers do not change.
Must not: be shared between things that are to stay independent: give each a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251 - chance from a seed that is passed in; no numpy needed
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    def __init__(self, seed: int, name: str = "") -> None:
        self._random = Random(f"{seed}/{name}")  # noqa: S311 - worlds, not secrets

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def between(self, least: int, most: int) -> int:
        """Both included."""
        return least + self._random.randrange(most - least + 1)

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self._random.randrange(len(items))]

    def weighted(self, items: Sequence[tuple[int, Item]]) -> Item:
        """Pairs of (weight, item)."""
        at = self._random.randrange(sum(weight for weight, _ in items))
        for weight, item in items:
            at -= weight
            if at < 0:
                return item
        raise AssertionError("weights ran out")

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        left = list(items)
        for last in range(len(left) - 1, 0, -1):
            other = self._random.randrange(last + 1)
            left[last], left[other] = left[other], left[last]
        return left

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        return self.shuffled(items)[:count]
