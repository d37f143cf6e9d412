"""What ended work tells about work to come: run times by queue and by family, and past use by queue, pool and resource.

Bounded: each queue and family keeps its last SAMPLES run times. Everything is an integer, also on the way: past use
decays by a table of roots, not by a power of floats, so every machine that replays the same facts gets the same result.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Mapping
from math import isqrt

import numpy as np

from optimus.state.arrays import Ints

SAMPLES = 256
HIGH_QUANTILE_PERCENT = 90
A_FEW = 8
"""So many ends, or all there are, make a chance: fewer are luck."""
WELL_KNOWN = SAMPLES // 2
"""From so many runs on it is known how likely each run time is; fewer tell the mean."""
DECAY_BITS = 64
"""Parts of a factor: fine enough that a millisecond still decays under a half-life of a year."""
_NEVER_MS = 1 << 62
Use = tuple[str, str, str]
"""Queue, pool, resource."""


def _roots() -> tuple[int, ...]:
    """2^(-1/2), 2^(-1/4), 2^(-1/8) … in parts of 2^DECAY_BITS: each is the square root of the one before."""
    roots = [1 << DECAY_BITS - 1]
    for _ in range(DECAY_BITS):
        roots.append(isqrt(roots[-1] << DECAY_BITS))
    return tuple(roots[1:])


_ROOTS = _roots()


def kept_part(passed_ms: int, half_life_ms: int) -> int:
    """2^(-passed / half-life) in parts of 2^DECAY_BITS: a root of the table for each bit of the fraction."""
    halvings, rest = divmod(passed_ms, half_life_ms)
    fraction = (rest << DECAY_BITS) // half_life_ms
    kept = 1 << DECAY_BITS
    for place, root in enumerate(_ROOTS, start=1):
        if fraction >> DECAY_BITS - place & 1:
            kept = kept * root >> DECAY_BITS
    return kept >> halvings


class RunTimes:
    """The last run times of one queue or family."""

    def __init__(self, recent: list[int] | None = None) -> None:
        self._recent: deque[int] = deque(recent or [], SAMPLES)
        self._sorted = sorted(self._recent)
        self._array: Ints | None = None

    def add(self, run_ms: int) -> None:
        self._array = None
        if len(self._recent) == SAMPLES:
            del self._sorted[bisect_right(self._sorted, self._recent[0]) - 1]
        self._recent.append(run_ms)
        insort(self._sorted, run_ms)

    def high_ms(self, beyond_ms: int = 0) -> int | None:
        """The high quantile of run times longer than `beyond_ms`; None when there is none."""
        first = bisect_right(self._sorted, beyond_ms)
        longer = len(self._sorted) - first
        if not longer:
            return None
        return self._sorted[
            first + (longer * HIGH_QUANTILE_PERCENT) // 100 - (longer * HIGH_QUANTILE_PERCENT % 100 == 0)
        ]

    def highs_ms(self, beyond_ms: Ints) -> Ints:
        """`high_ms` of many at once; -1 for None."""
        times = self._as_array()
        first = np.searchsorted(times, beyond_ms, side="right")
        longer = len(times) - first
        at = first + longer * HIGH_QUANTILE_PERCENT // 100 - (longer * HIGH_QUANTILE_PERCENT % 100 == 0)
        return np.where(longer > 0, times[at], -1) if len(times) else first - 1

    def means_beyond_ms(self, elapsed_ms: Ints) -> Ints:
        """Mean total run time of work that outlived each of these; 0 where nothing did."""
        times = self._as_array()
        first = np.searchsorted(times, elapsed_ms, side="right")
        longer = len(times) - first
        sums = np.concatenate([np.cumsum(times[::-1])[::-1], [0]])
        found: Ints = sums[first] // np.maximum(longer, 1)
        return found

    def is_well_known(self) -> bool:
        """Whether there are enough of them for `efforts_beyond_ms` to mean something."""
        return len(self._sorted) >= WELL_KNOWN

    def efforts_beyond_ms(self, elapsed_ms: Ints) -> Ints:
        """Run time so far plus the time it takes on average until one like it ends, if each is given up at the age at
        which that is least (the Gittins index of the run times); 0 where nothing lived as long.

        Of a mix this says more than the mean, which a few long ones make: who is young may well be short, and who has
        outlived the short ones is one of the long ones."""
        times, count = self._as_array(), len(self._sorted)
        if not count:
            return np.zeros_like(elapsed_ms)
        ages, of_each = np.unique(elapsed_ms, return_inverse=True)
        first = np.searchsorted(times, ages, side="right")
        sums = np.concatenate([[0], np.cumsum(times)])
        at = np.arange(count)
        until = sums[1:] + (count - 1 - at) * times  # what all of them get, if each is given up at the age of this one
        before = sums[first] + (count - first) * ages  # what they had at the age of the asker
        ended = at - first[:, None] + 1  # [age, until]: of those that lived as long, so many end until then
        least = np.minimum(np.maximum(count - first, 1), A_FEW)[:, None]
        efforts = (until - before[:, None]) // np.maximum(ended, 1)
        efforts = np.where(ended >= least, efforts, _NEVER_MS).min(axis=1)
        found: Ints = np.where(first < count, ages + np.maximum(efforts, 1), 0)[of_each]
        return found

    def _as_array(self) -> Ints:
        if self._array is None:
            self._array = np.array(self._sorted, dtype=np.int64)
        return self._array

    def recent(self) -> list[int]:
        return list(self._recent)


class History:
    def __init__(self) -> None:
        self.by_queue: dict[str, RunTimes] = {}
        self.by_family: dict[str, RunTimes] = {}
        self.work_by_family: dict[str, RunTimes] = {}
        """What one replica would have needed for it, in milliseconds."""
        self.speeds_by_family: dict[str, tuple[int, ...]] = {}
        """The longest list of speeds that ended work of the family was measured at."""
        self.past_use: dict[Use, int] = {}
        """Decayed amount x ms, in the resource's own unit; a queue counts with everything below it."""
        self.past_use_at = 0

    def ended(
        self, queue: str, family: str, run_ms: int, work_ms: int = 0, speedup_percent: tuple[int, ...] = ()
    ) -> None:
        self.by_queue.setdefault(queue, RunTimes()).add(run_ms)
        if family:
            self.by_family.setdefault(family, RunTimes()).add(run_ms)
            if work_ms > 0:
                self.work_by_family.setdefault(family, RunTimes()).add(work_ms)
            if len(speedup_percent) >= max(len(self.speeds_by_family.get(family, ())), 2):
                self.speeds_by_family[family] = speedup_percent

    def remember_use(self, used: Mapping[Use, int], now_ms: int, half_life_ms: int) -> None:
        """Decay past use to now and add what was in use since the last call."""
        passed = now_ms - self.past_use_at
        if passed <= 0 or not half_life_ms:
            self.past_use_at = max(now_ms, self.past_use_at)
            return
        kept = kept_part(passed, half_life_ms)
        past = {use: value * kept >> DECAY_BITS for use, value in self.past_use.items()}
        for use, amount in used.items():
            past[use] = past.get(use, 0) + amount * passed
        self.past_use = {use: value for use, value in sorted(past.items()) if value}
        self.past_use_at = now_ms
