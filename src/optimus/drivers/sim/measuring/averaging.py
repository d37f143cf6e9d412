"""Averaging: the metrics of one scheduler over several traces.

Every number is the mean of that number over the traces that have it, so also counts and maxima; a single trace stays
as it is. Names cannot be averaged and are left empty where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from optimus.drivers.sim.measuring.metrics import Metrics
from optimus.drivers.sim.measuring.spreads import tidy


def averaged(metrics: Sequence[Metrics]) -> Metrics:
    if len(metrics) == 1:
        return metrics[0]
    return msgspec.convert(_mean([msgspec.to_builtins(m) for m in metrics]), Metrics)


def _mean(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, str):
        return first if all(value == first for value in known) else ""
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in known for key in value)
        return {key: _mean([value[key] for value in known if key in value]) for key in keys}
    if isinstance(first, list | tuple):
        return _mean_queues(known)
    mean = sum(known) / len(known)
    return round(mean) if all(isinstance(value, int) for value in known) else tidy(mean)


def _mean_queues(lists: list[Any]) -> list[Any]:
    """Queue by queue, by name; a trace need not have all of them."""
    names = sorted({queue["queue"] for queues in lists for queue in queues})
    return [_mean([queue for queues in lists for queue in queues if queue["queue"] == name]) for name in names]
