"""From what a policy returns to integers that the brain can sort, compare and add.

Why: policies may compute with floats, but the last bit of a float depends on the machine and on the row it stood
in. Two values that differ by less than a part in 10^12 are the same value here, so ties stay ties.
Owns: the five forms of a result: ranks, values, levels, amounts, worths; and sorting by several keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimus.decide.policies.columns import IntArray

MOST = 1 << 53
"""The largest amount. A thousand of them can be added without overflow."""

WORTH_BITS = 30
_LARGEST = (1 << 63) - 1
_DROPPED_BITS = 12  # of 52: leaves a relative precision of 2^-40
LEVEL_BITS = 20
_LEVEL_DROPPED_BITS = 64 - LEVEL_BITS  # leaves sign, exponent and 8 bits: a relative precision of 0.4 %


def rank_keys(values: NDArray[Any]) -> IntArray:
    """Dense ranks: 0 for the smallest value, equal values share one. Comparable within one call only."""
    _, ranks = np.unique(value_keys(values), return_inverse=True)
    return ranks.reshape(-1).astype(np.int64)


def value_keys(values: NDArray[Any]) -> IntArray:
    """Integers in the order of the values and with their sign, comparable between calls.

    Integers stay what they are. Finite floats become their own bit pattern, which sorts like the number it
    stands for, without the last bits."""
    if values.dtype.kind in "bi":
        return values.astype(np.int64)
    if values.dtype.kind == "u":
        return np.minimum(values.astype(np.uint64), np.uint64(_LARGEST)).astype(np.int64)
    return _without_last_bits(values, _DROPPED_BITS)


def level_keys(values: NDArray[Any]) -> IntArray:
    """Coarse keys that fit into LEVEL_BITS, comparable between calls: what is nearly equal is equal, so that the
    next layer has a say."""
    return (1 << (LEVEL_BITS - 1)) + _without_last_bits(values, _LEVEL_DROPPED_BITS)


def amounts(values: NDArray[Any]) -> IntArray:
    """Whole numbers from 0 to MOST that can be added up."""
    if values.dtype.kind == "f":
        return np.clip(np.rint(values.astype(np.float64)), 0, MOST).astype(np.int64)
    return np.clip(value_keys(values), 0, MOST)


def worths(values: NDArray[Any]) -> IntArray:
    """Whole numbers of either sign that can be added up; floats count to a part in 2^WORTH_BITS, always the same, so
    that what was best once is best when it is asked again."""
    if values.dtype.kind == "f":
        scaled = values.astype(np.float64) * float(1 << WORTH_BITS)
        return np.rint(np.clip(scaled, -MOST, MOST)).astype(np.int64)
    return np.clip(value_keys(values), -MOST, MOST)


def lexicographic(first: NDArray[Any], *rest: NDArray[Any]) -> IntArray:
    """One key that sorts by the first column, then by the next, and so on. Equal rows get equal keys."""
    columns = [value_keys(column) for column in (first, *rest)]
    order = np.lexsort(columns[::-1])
    differs = np.zeros(len(first), dtype=np.int64)
    for column in columns:
        differs[1:] |= column[order][1:] != column[order][:-1]
    keys = np.empty(len(first), dtype=np.int64)
    keys[order] = np.cumsum(differs)
    return keys


def _without_last_bits(values: NDArray[Any], dropped: int) -> IntArray:
    """The bit patterns of the numbers, which sort like the numbers, rounded; negative for negative ones."""
    numbers = values.astype(np.float64)
    magnitude = np.abs(numbers).view(np.int64)
    rounded = (magnitude + (1 << (dropped - 1))) >> dropped
    return np.where(numbers < 0, -rounded, rounded)
