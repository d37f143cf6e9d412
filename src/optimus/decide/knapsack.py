"""The multiple-choice knapsack: one size for each workload, so that the sum of what they are worth is largest.

    V_0(c) = 0        V_i(c) = max over sizes k of V_{i-1}(c - k) + worth_i(k)

Exact up to a bound on workloads x sizes x capacity; beyond it every workload takes the size that is worth most at one
price per GPU, the lowest price at which all fits. Everybody has one of its sizes: nobody is left out.

Whoever keeps its size wins a tie. And the answer holds still: once a workload has the size that was chosen for it,
every other size is worth less to it than before, so asking again gives the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimus.state.arrays import Ints

EXACT_STEPS = 30_000_000
"""Workloads x sizes x capacity up to which the answer is exact: some tens of milliseconds."""
_PRICES = 60
_NOTHING = -(1 << 61)


@dataclass(frozen=True, slots=True)
class Choice:
    """The sizes one workload could have, the present one first."""

    sizes: tuple[int, ...]
    worths: tuple[int, ...]


def choose(choices: Sequence[Choice], capacity: int) -> list[int] | None:
    """For each the number of its size; None if even the smallest do not fit."""
    if sum(min(choice.sizes) for choice in choices) > capacity:
        return None
    steps = sum(len(choice.sizes) for choice in choices) * (capacity + 1)
    return _exact(choices, capacity) if steps <= EXACT_STEPS else _at_one_price(choices, capacity)


def _exact(choices: Sequence[Choice], capacity: int) -> list[int]:
    best: Ints = np.zeros(capacity + 1, dtype=np.int64)
    taken: list[Ints] = []
    for choice in choices:
        now = np.full(capacity + 1, _NOTHING, dtype=np.int64)
        chosen = np.zeros(capacity + 1, dtype=np.int64)
        for number, (size, worth) in enumerate(zip(choice.sizes, choice.worths, strict=True)):
            if size > capacity:
                continue
            with_it = best[: capacity + 1 - size] + worth
            better = with_it > now[size:]
            now[size:][better] = with_it[better]
            chosen[size:][better] = number
        best = np.maximum(now, _NOTHING)
        taken.append(chosen)
    left = capacity
    numbers = []
    for choice, chosen in zip(reversed(choices), reversed(taken), strict=True):
        number = int(chosen[left])
        numbers.append(number)
        left -= choice.sizes[number]
    return numbers[::-1]


def _at_one_price(choices: Sequence[Choice], capacity: int) -> list[int]:
    low, high = 0, max(max(choice.worths) - min(choice.worths) for choice in choices) + 1
    numbers = [min(range(len(c.sizes)), key=c.sizes.__getitem__) for c in choices]
    for _ in range(_PRICES):
        if low >= high:
            break
        price = (low + high) // 2
        asked = [_best_at(choice, price) for choice in choices]
        if sum(choice.sizes[number] for choice, number in zip(choices, asked, strict=True)) <= capacity:
            numbers, high = asked, price
        else:
            low = price + 1
    return numbers


def _best_at(choice: Choice, price: int) -> int:
    return max(range(len(choice.sizes)), key=lambda n: (choice.worths[n] - price * choice.sizes[n], -n))
