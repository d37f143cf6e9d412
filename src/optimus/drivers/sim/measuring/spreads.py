"""Spreads: how many values there are, their average, and how far they reach."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.columns import SIZES, Columns, Floats


class Spread(Struct, frozen=True, kw_only=True):
    """Percentiles are interpolated linearly between the two nearest values. None where there is no value."""

    count: int
    average: float | None = None
    median: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


def spread(values: Floats) -> Spread:
    """Of those that are numbers."""
    known = values[~np.isnan(values)]
    if not len(known):
        return Spread(count=0)
    median, p90, p99 = np.percentile(known, (50, 90, 99))
    return Spread(
        count=len(known),
        average=tidy(known.mean()),
        median=tidy(median),
        p90=tidy(p90),
        p99=tidy(p99),
        max=tidy(known.max()),
    )


def by_size(values: Floats, columns: Columns) -> dict[str, Spread]:
    """Only classes that have jobs."""
    size = columns.asked.size
    return {name: spread(values[size == i]) for i, name in enumerate(SIZES) if (size == i).any()}


def tidy(value: float | np.floating) -> float:
    """Six significant decimals: the last bits of a sum are no result, and files stay comparable."""
    return round(float(value), 6)
