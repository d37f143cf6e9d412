"""Lifetimes: times of what has ended, and how far the others have come.

Why: what still runs has outlived part of the history. Leaving it out makes every guess too short, and counting it as
ended does too.
Owns: the estimate of Kaplan and Meier (1958), as draws and as quantiles.
Must not: know what it is the lifetime of.

A draw takes any lifetime beyond what is known; when that one has not ended, it is drawn once more from those beyond it
(Efron's redistribution to the right, 1967: the same estimate). Beyond everything known the tail is Pareto's: what has
lasted long will last long.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import numpy as np

TAIL = 1.5
"""Pareto's exponent beyond the longest: the median of what outlived everything is 1.6 times as long."""
TAIL_MOST = 20.0


class Lifetimes:
    def __init__(self, ended: Iterable[float], still: Iterable[float] = ()) -> None:
        """`still`: lifetimes so far of what has not ended."""
        both = sorted([(value, True) for value in ended] + [(value, False) for value in still])
        self._values = [value for value, _ in both]
        self._ended = [done for _, done in both]
        self.ended = sum(self._ended)
        self.longest = max((value for value, done in both if done), default=0.0)
        """Of what has ended."""

    def known_beyond(self, beyond: float) -> int:
        """How many that ended lasted longer."""
        return sum(self._ended[bisect_right(self._values, beyond) :])

    def draw(self, draw: np.random.Generator, beyond: float = 0.0) -> float:
        """A lifetime longer than `beyond`."""
        reached = beyond
        while (first := bisect_right(self._values, reached)) < len(self._values):
            chosen = int(draw.integers(first, len(self._values)))
            if self._ended[chosen]:
                return self._values[chosen]
            reached = self._values[chosen]
        return reached * tail(draw)

    def quantile(self, part: float) -> float | None:
        """The time by which so many have ended; None where too few have for that to be known."""
        alive, left = 1.0, len(self._values)
        for value, ended in zip(self._values, self._ended, strict=True):
            if ended:
                alive *= 1.0 - 1.0 / left
                if alive <= 1.0 - part + 1e-12:
                    return value
            left -= 1
        return None


def tail(draw: np.random.Generator) -> float:
    """So many times as long as it has lasted."""
    return min(float((1.0 - draw.random()) ** (-1.0 / TAIL)), TAIL_MOST)
