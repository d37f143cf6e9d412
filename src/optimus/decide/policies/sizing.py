"""Sizing: what each size is worth to an elastic workload. The brain makes the sum over a queue largest.

    worth = weight x curve(speed x discount)

The curve is concave: the first GPU of one is worth more than the tenth of another. The weight prefers those of whom
little is left, or who have had little. The discount counts for every size but the present one: a change costs a
restart, and more so for young work and for work that was restarted often (Pollux, OSDI'21).
"""

from __future__ import annotations

import numpy as np

from optimus.decide.policies.columns import UNKNOWN, FloatArray, SizeColumns
from optimus.decide.policies.curves import log, root
from optimus.decide.policies.orders import HOUR_MS, MINUTE_MS, bounded

HEAD_START_MS = 10 * MINUTE_MS
SHORTEST_MS = 2 * MINUTE_MS
AGING_MS = 2 * HOUR_MS
"""Work that was submitted this long ago weighs 1.4 times as much as new work."""
STAYING = 0.88
"""What a size is worth after a change, beside the restart itself: the future may look different soon."""


def by_work_done(columns: SizeColumns) -> FloatArray:
    """Logarithm of the speed, weighed by (600 s + work done)^(-1/4): needs no history.

    Rule E2 of policies.md: doubling is worth the same to everybody, and a bit more to work that has had little."""
    weight = 1.0 / root(root((HEAD_START_MS + bounded(columns.worked_ms)) / 1000))
    return weight * log(1.0 + _speed(columns, restart_discount(columns)))


def default(columns: SizeColumns) -> FloatArray:
    """Logarithm of the speed, weighed by the square root of (1 + age / 2 h) / work left: what is nearly done gets done.

    Rule E1 of policies.md with another curve, and with the age, which guards the tail: what is large and has been here
    for long is not always last. Of a family that was never seen, as much is left as was done, and ten minutes. Who
    waits loses nothing by any size, so the discount is for those that run, and stronger than Pollux's."""
    known = columns.left_ms != UNKNOWN
    guess = bounded(columns.worked_ms) + HEAD_START_MS
    left = np.where(known, np.maximum(columns.left_ms, SHORTEST_MS), guess)
    weight = root((1.0 + bounded(columns.age_ms) / AGING_MS) / (left / 1000))
    discount = np.where(columns.now_replicas > 0, STAYING * restart_discount(columns), 1.0)
    return weight * log(1.0 + _speed(columns, discount))


def restart_discount(columns: SizeColumns) -> FloatArray:
    """The part of its life that work would have had for itself after one more restart."""
    age, cost = bounded(columns.age_ms), bounded(columns.restart_cost_ms, 1)
    useful = np.maximum(age - cost * np.minimum(bounded(columns.restarts), 1 << 20), 0)
    discount: FloatArray = useful / (age + cost)
    return discount


def _speed(columns: SizeColumns, discount: FloatArray) -> FloatArray:
    """In thousandths of one replica's, with the discount where the size would change."""
    speed = bounded(columns.speed_milli).astype(np.float64)
    return np.where(columns.replicas == columns.now_replicas, speed, speed * discount)
