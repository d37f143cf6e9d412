"""Growth: which elastic workload gets the next replica, and how fast more replicas make it.

Higher is sooner; at zero or below the step is not taken. The brain takes one step at a time, keeps limits and
minimums, and lets no running workload grow unless it pays back its restart (`Settings.resize_payback`).
"""

from __future__ import annotations

import numpy as np

from optimus.decide.policies.columns import ElasticColumns, FloatArray, IntArray
from optimus.decide.policies.orders import MINUTE_MS, bounded

HEAD_START_MS = 10 * MINUTE_MS
SHORTEST_MS = 2 * MINUTE_MS

_SLOWDOWN_PERCENT = 2
_LN2 = 0.6931471805599453


def default(columns: ElasticColumns) -> FloatArray:
    """Gain in the logarithm of the speed per GPU, weighed by (600 s + service received)^(-1/4).

    Rule E2 of policies.md: doubling is worth the same to everybody, and a bit more to work that has had little."""
    weight = 1.0 / _root(_root((HEAD_START_MS + bounded(columns.attained_gpu_ms)) / 1000))
    return weight * (_log(_speed(columns.next_speed_milli)) - _log(_speed(columns.speed_milli))) / _step(columns)


def by_remaining(columns: ElasticColumns) -> FloatArray:
    """Gain in the square root of the speed per GPU, weighed by (work left)^(-1/2): short work finishes soon.

    Rule E1 of policies.md: better than the default where run times are well known, else more restarts for less."""
    left = np.maximum(columns.remaining_ms * (bounded(columns.speed_milli) / 1000), SHORTEST_MS)
    guess = bounded(columns.attained_gpu_ms) + HEAD_START_MS
    weight = 1.0 / _root(np.where(columns.remaining_ms >= 0, left, guess) / 1000)
    return weight * (_root(_speed(columns.next_speed_milli)) - _root(_speed(columns.speed_milli))) / _step(columns)


def even(columns: ElasticColumns) -> IntArray:
    """Fewest replicas first, whatever they bring."""
    return np.iinfo(np.int64).max - bounded(columns.replicas)


def speed_milli(replicas: int, measured_percent: tuple[int, ...] = ()) -> int:
    """Speed of a workload with so many replicas; 1000 is one replica.

    Measured where it was measured. Beyond that, and without any measurement, every replica loses 2 % of its time
    to each other one: 2 give 1.96, 8 give 7.0, 64 give 28. A curve that was falling where it ends stays level."""
    if replicas <= 0:
        return 0
    measured = min(replicas, len(measured_percent))
    if not measured:
        return _curve_milli(replicas)
    last = max(measured_percent[measured - 1], 0) * 10
    if measured == replicas:
        return last
    if measured > 1 and measured_percent[measured - 1] <= measured_percent[measured - 2]:
        return last
    return last * _curve_milli(replicas) // _curve_milli(measured)


def _curve_milli(replicas: int) -> int:
    return 1000 * replicas * 100 // (100 + _SLOWDOWN_PERCENT * (replicas - 1))


def _step(columns: ElasticColumns) -> FloatArray:
    return bounded(columns.step_milli, 1).astype(np.float64) / 1000


def _speed(column: IntArray) -> FloatArray:
    """Plus a thousandth, so that standing still has a logarithm."""
    return bounded(column).astype(np.float64) + 1.0


def _root(values: FloatArray) -> FloatArray:
    root: FloatArray = np.sqrt(values)
    return root


def _log(values: FloatArray) -> FloatArray:
    """Natural logarithm by + x / alone: numpy's own differs in the last bit between machines and even rows."""
    mantissa, exponent = np.frexp(values)
    z = (mantissa - 0.75) / (mantissa + 0.75)  # |z| <= 1/5: ten terms reach the last bits
    square = z * z
    series = np.zeros_like(z)
    for odd in range(21, 0, -2):
        series = series * square + 1.0 / odd
    return exponent * _LN2 + 2.0 * z * series - 0.2876820724517809  # ln(3/4)
