"""The multiple-choice knapsack: one size for each job so that the sum of values is largest.

    V_0(c) = 0        V_i(c) = max over sizes k of V_{i-1}(c - k) + value_i(k)

Exact, for any values; jobs x sizes vector operations of the length of the capacity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def choose(options: Sequence[Sequence[tuple[int, float]]], capacity: int) -> list[int]:
    """The size of each job. `options`: (size, value) by job; size 0 is always possible and must be listed if it has a
    value other than 0."""
    best = np.zeros(capacity + 1)
    steps: list[NDArray[np.int64]] = []
    for mine in options:
        zero = next((value for size, value in mine if size == 0), 0.0)
        now = best + zero
        chosen = np.zeros(capacity + 1, dtype=np.int64)
        for size, value in mine:
            if 0 < size <= capacity:
                with_it = best[:-size] + value
                better = with_it > now[size:]
                now[size:][better] = with_it[better]
                chosen[size:][better] = size
        best = now
        steps.append(chosen)
    left = int(np.argmax(best))
    sizes = []
    for chosen in reversed(steps):
        size = int(chosen[left])
        sizes.append(size)
        left -= size
    return sizes[::-1]
