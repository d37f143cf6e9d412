"""The default policy, but whoever started last is asked first: what lost work is compared with.

Each victim costs more than all that are newer together, so of two sets the one whose oldest member is newer wins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optimus.decide.policies import DEFAULT, IntArray, VictimColumns


def newest(columns: VictimColumns) -> IntArray:
    _, age = np.unique(columns.running_ms, return_inverse=True)
    return np.left_shift(1, np.minimum(age, 50)).astype(np.int64)


newest_first = replace(DEFAULT, name="newest-first", victim_cost=newest)
