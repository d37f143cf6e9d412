"""Filling: how many GPUs drawn jobs keep busy inside the window in which they are submitted.

Why: of a few jobs one may be longer than all the others together. Counted to its end it is most of the load, and the
cluster stands empty while the others come; what lies beyond the window is no load of the window.
Owns: what a window holds of its jobs, and the span, the number of jobs or the durations with which a load is met in it.
Must not: draw anything.

    busy GPUs = sum of GPUs x (duration inside the window, if it started at once) / length of the window
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST_PART = 0.5
"""No job takes more than this part of the window, so that its end is seen and others come while it runs."""
MOST_LONGER = 100.0
"""Durations are not made longer than so many times: few jobs stay few."""
_HALVINGS = 60


def cut(duration_ms: Floats, span_ms: float) -> Floats:
    """Durations in a window of this length."""
    result: Floats = np.minimum(duration_ms, span_ms * LONGEST_PART)
    return result


def expected(gpus: Ints | Floats, duration_ms: Floats, span_ms: float) -> Floats:
    """GPUs that each job keeps busy on average, wherever in the window it comes."""
    part = cut(duration_ms, span_ms) / span_ms
    result: Floats = gpus * (part - part * part / 2)
    return result


def inside(gpus: Ints | Floats, duration_ms: Floats, submit_ms: Floats) -> float:
    """GPUs that are busy on average from the first submission to the last, if every job starts at once."""
    last = float(submit_ms.max())
    span = max(last - float(submit_ms.min()), 1.0)
    return float((gpus * np.minimum(duration_ms, last - submit_ms)).sum()) / span


def span_for(gpus: Ints | Floats, duration_ms: Floats, busy: float) -> float:
    """The window in which these jobs keep so many GPUs busy; next to nothing where they are too few for that."""
    longest = float((gpus * duration_ms).sum()) / busy
    return _halved(lambda span: float(expected(gpus, duration_ms, span).sum()) - busy, 1.0, max(longest, 2.0))


def lengthened(gpus: Ints | Floats, duration_ms: Floats, submit_ms: Floats, span_ms: float, busy: float) -> Floats:
    """Durations so much longer or shorter that the load is met in a given window; as they are where too few."""

    def over(shorter: float) -> float:
        return inside(gpus, cut(duration_ms / shorter, span_ms), submit_ms) - busy

    shorter = _halved(over, 1 / MOST_LONGER, 1e6) if over(1 / MOST_LONGER) >= 0 else 1.0
    result: Floats = np.maximum(cut(duration_ms / shorter, span_ms), 1_000.0)
    return result


def _halved(above: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function becomes 0, by halving on a logarithmic scale."""
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if above(middle) > 0 else (low, middle)
    return high
