"""Cutting stock: what a gap on a device is worth when the best combinations of shares are cut from devices.

Why: where shares of 470 and 530 are common, a gap of 530 is worth more than half a device, one of 460 next to nothing.
The linear programme "serve the mix with the fewest devices" knows which combinations are efficient; its row prices say
what one share of each size is worth, and a knapsack with these prices says what a gap is worth.
Owns: the linear programme (column generation with a dense revised simplex) and the knapsack.
Must not: know nodes, CPU, memory or models. Sizes and gaps are steps of `GAP_MILLI`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from optimus.model.packing import GAP_STEPS

Floats = NDArray[np.float64]

_TOLERANCE = 1e-8
MAX_SIZES = 40
"""Keeps the linear programme at tens of milliseconds; a mix seldom has more than 25 sizes."""
_MAX_PIVOTS = 1_000
"""Far above what a mix needs (tens); the prices of an unfinished programme are still usable."""


def best_fill_values(demand: Mapping[int, float]) -> Floats:
    """Value of a gap of 0 … `GAP_STEPS` steps, in devices: a whole device is worth 1.

    `demand` maps a size in steps to how often it is asked for. Only the proportions matter.
    """
    demand = most_asked(demand)
    prices = np.full(GAP_STEPS + 1, -np.inf)
    prices[sorted(demand)] = share_prices(demand)
    values, _ = _fill(prices)
    in_devices: Floats = values / values[GAP_STEPS]
    return in_devices


def most_asked(demand: Mapping[int, float]) -> dict[int, float]:
    """The sizes that take up most, at most `MAX_SIZES`; a rare size counts as the next larger one that is kept."""
    by_amount = sorted(demand, key=lambda size: (-size * demand[size], size))
    kept = sorted({max(demand), *by_amount[: MAX_SIZES - 1]})
    merged = dict.fromkeys(kept, 0.0)
    for size, count in demand.items():
        merged[kept[bisect_left(kept, size)]] += count
    return merged


def share_prices(demand: Mapping[int, float]) -> Floats:
    """Devices that one share of each size (ascending) costs when the whole mix is cut from the fewest devices."""
    sizes = np.array(sorted(demand))
    wanted = np.array([demand[int(size)] for size in sizes], dtype=np.float64)
    wanted /= wanted.sum()
    # The inverse of the basis is kept, not computed: factorising a small matrix may start a pool of threads.
    per_device = (GAP_STEPS // sizes).astype(np.float64)
    inverse: Floats = np.diag(1.0 / per_device)
    devices: Floats = wanted / per_device
    price_of = np.full(GAP_STEPS + 1, -np.inf)
    for _ in range(_MAX_PIVOTS):
        price_of[sizes] = inverse.sum(axis=0)
        values, first = _fill(price_of)
        if values[GAP_STEPS] <= 1.0 + _TOLERANCE:
            break
        step = (inverse * _pattern(first, sizes)).sum(axis=1)
        ratio = np.full(len(sizes), np.inf)
        np.divide(devices, step, out=ratio, where=step > _TOLERANCE)
        leaving = int(ratio.argmin())
        step[leaving] -= 1.0
        row, amount = inverse[leaving] / (step[leaving] + 1.0), max(float(ratio[leaving]), 0.0)
        inverse -= np.multiply.outer(step, row)
        devices = np.maximum(devices - step * amount, 0.0)
    prices: Floats = np.maximum(inverse.sum(axis=0), 0.0)
    return prices


def _fill(prices: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Unbounded knapsack: best value of every gap, and the size to cut first (0: leave one step empty).

    `prices` is indexed by size; sizes nobody asks for are -inf.
    """
    values = np.zeros(GAP_STEPS + 1)
    first = np.zeros(GAP_STEPS + 1, dtype=np.int64)
    for gap in range(1, GAP_STEPS + 1):
        options = values[gap - 1 :: -1] + prices[1 : gap + 1]
        size = int(options.argmax()) + 1
        value = options[size - 1]
        if value > values[gap - 1] + _TOLERANCE:
            values[gap], first[gap] = value, size
        else:
            values[gap] = values[gap - 1]
    return values, first


def _pattern(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """How many shares of each size the best fill of a whole device cuts."""
    counts = np.zeros(len(sizes))
    row = {int(size): index for index, size in enumerate(sizes)}
    gap = GAP_STEPS
    while gap > 0:
        size = int(first[gap])
        if size == 0:
            gap -= 1
        else:
            counts[row[size]] += 1
            gap -= size
    return counts
