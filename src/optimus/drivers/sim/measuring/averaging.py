"""Averaging: one record of several that are alike: the metrics of a scheduler over traces, a world over futures.

Every number is the mean (or the median) of that number over the records that have it, so also counts and maxima; a
single record stays as it is. Names cannot be averaged and are left empty where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean, median
from typing import Any, TypeVar

import msgspec

from optimus.drivers.sim.measuring.metrics import Metrics
from optimus.drivers.sim.measuring.spreads import tidy

Fold = Callable[[list[float]], float]
_T = TypeVar("_T")


def averaged(metrics: Sequence[Metrics]) -> Metrics:
    return _folded(metrics, fmean)


def typical(records: Sequence[_T]) -> _T:
    """The median of every number: where a few are far off, a mean is like none of them."""
    return _folded(records, median)


def _folded(records: Sequence[_T], fold: Fold) -> _T:
    if len(records) == 1:
        return records[0]
    return msgspec.convert(_one(fold, [msgspec.to_builtins(record) for record in records]), type(records[0]))


def _one(fold: Fold, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    first, inside = known[0], partial(_one, fold)
    if isinstance(first, str):
        return first if all(value == first for value in known) else ""
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in known for key in value)
        return {key: inside([value[key] for value in known if key in value]) for key in keys}
    if isinstance(first, list | tuple):
        return _queues(fold, known)
    found = fold(known)
    return round(found) if all(isinstance(value, int) for value in known) else tidy(found)


def _queues(fold: Fold, lists: list[Any]) -> list[Any]:
    """Queue by queue, by name; a trace need not have all of them."""
    names = sorted({queue["queue"] for queues in lists for queue in queues})
    return [_one(fold, [queue for queues in lists for queue in queues if queue["queue"] == name]) for name in names]
