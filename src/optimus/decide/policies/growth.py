"""Growth: which elastic workload gets the next replica.

Higher is sooner; at zero or below the step is not taken. The brain takes one step at a time, keeps limits and
minimums, and lets no running workload grow unless it pays back its restart (`Settings.resize_payback`).
"""

from __future__ import annotations

import numpy as np

from optimus.decide.policies.columns import ElasticColumns, FloatArray, IntArray
from optimus.decide.policies.curves import log, root
from optimus.decide.policies.orders import MINUTE_MS, bounded
from optimus.model.speeds import speed_milli

__all__ = ["by_remaining", "default", "even", "speed_milli"]

HEAD_START_MS = 10 * MINUTE_MS
SHORTEST_MS = 2 * MINUTE_MS


def default(columns: ElasticColumns) -> FloatArray:
    """Gain in the logarithm of the speed per GPU, weighed by (600 s + service received)^(-1/4).

    Rule E2 of policies.md: doubling is worth the same to everybody, and a bit more to work that has had little."""
    weight = 1.0 / root(root((HEAD_START_MS + bounded(columns.attained_gpu_ms)) / 1000))
    return weight * (log(_speed(columns.next_speed_milli)) - log(_speed(columns.speed_milli))) / _step(columns)


def by_remaining(columns: ElasticColumns) -> FloatArray:
    """Gain in the square root of the speed per GPU, weighed by (work left)^(-1/2): short work finishes soon.

    Rule E1 of policies.md: better than the default where run times are well known, else more restarts for less."""
    left = np.maximum(columns.remaining_ms * (bounded(columns.speed_milli) / 1000), SHORTEST_MS)
    guess = bounded(columns.attained_gpu_ms) + HEAD_START_MS
    weight = 1.0 / root(np.where(columns.remaining_ms >= 0, left, guess) / 1000)
    return weight * (root(_speed(columns.next_speed_milli)) - root(_speed(columns.speed_milli))) / _step(columns)


def even(columns: ElasticColumns) -> IntArray:
    """Fewest replicas first, whatever they bring."""
    return np.iinfo(np.int64).max - bounded(columns.replicas)


def _step(columns: ElasticColumns) -> FloatArray:
    return bounded(columns.step_milli, 1).astype(np.float64) / 1000


def _speed(column: IntArray) -> FloatArray:
    """Plus a thousandth, so that standing still has a logarithm."""
    return bounded(column).astype(np.float64) + 1.0
