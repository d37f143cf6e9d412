"""How fast more replicas make a workload.

Why: the state counts work by it, the brain weighs sizes by it, and both must mean the same.
"""

from __future__ import annotations

_SLOWDOWN_PERCENT = 2


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
