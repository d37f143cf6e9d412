"""Victim costs: what it costs to take running work out. Lower goes first.

The brain asks only among victims that shares, priority and surplus leave equal, and adds the costs of a set up.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.policies.columns import IntArray, VictimColumns
from optimus.decide.policies.ranking import MOST

_LONGEST_MS = 1 << 37
"""Four years. With `_LARGEST_MILLI` the product stays inside 63 bits."""
_LARGEST_MILLI = 1 << 25
"""33,000 GPUs."""


def default(columns: VictimColumns) -> IntArray:
    """Restart + work lost since the last checkpoint x GPUs, in GPU-microseconds. Who saves in time loses none.

    The restart counts once per workload whatever its size, so one victim beats two halves."""
    restart = np.clip(columns.restart_cost_ms, 0, _LONGEST_MS) * 1000
    lost = np.clip(columns.lost_ms, 0, _LONGEST_MS) * np.clip(columns.size_milli, 0, _LARGEST_MILLI)
    cost: IntArray = np.minimum(restart + lost, MOST)
    return cost


def flat(columns: VictimColumns) -> IntArray:
    """All the same: shares and priority decide, then the fewest victims, then the newer goes."""
    return np.ones(len(columns), dtype=np.int64)
