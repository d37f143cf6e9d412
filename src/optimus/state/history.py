"""What ended work tells about work to come: run times by queue and by family, and past use by queue.

Bounded: each queue and family keeps its last SAMPLES run times. Everything is an integer; past use decays by
half-lives in whole steps so that replaying the same observations gives the same numbers.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque

SAMPLES = 256
HIGH_QUANTILE_PERCENT = 90
DECAY_UNIT = 1 << 50
"""Fine enough that a tick of a second still decays under a half-life of a year."""


class RunTimes:
    """The last run times of one queue or family."""

    def __init__(self, recent: list[int] | None = None) -> None:
        self._recent: deque[int] = deque(recent or [], SAMPLES)
        self._sorted = sorted(self._recent)

    def add(self, run_ms: int) -> None:
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

    def mean_beyond_ms(self, elapsed_ms: int) -> int | None:
        """Mean total run time of work that outlived `elapsed_ms`; None when nothing did."""
        first = bisect_right(self._sorted, elapsed_ms)
        longer = self._sorted[first:]
        return sum(longer) // len(longer) if longer else None

    def recent(self) -> list[int]:
        return list(self._recent)


class History:
    def __init__(self) -> None:
        self.by_queue: dict[str, RunTimes] = {}
        self.by_family: dict[str, RunTimes] = {}
        self.past_use: dict[str, int] = {}
        """Queue -> decayed GPU-milli x ms."""
        self.past_use_at = 0

    def ended(self, queue: str, family: str, run_ms: int) -> None:
        self.by_queue.setdefault(queue, RunTimes()).add(run_ms)
        if family:
            self.by_family.setdefault(family, RunTimes()).add(run_ms)

    def remember_use(self, used_milli: dict[str, int], now_ms: int, half_life_ms: int) -> None:
        """Decay past use to now and add what was in use since the last call."""
        passed = now_ms - self.past_use_at
        if passed <= 0 or not half_life_ms:
            self.past_use_at = max(now_ms, self.past_use_at)
            return
        kept = round(DECAY_UNIT * 0.5 ** (passed / half_life_ms))
        for queue in sorted(self.past_use.keys() | used_milli.keys()):
            value = self.past_use.get(queue, 0) * kept // DECAY_UNIT + used_milli.get(queue, 0) * passed
            if value:
                self.past_use[queue] = value
            else:
                self.past_use.pop(queue, None)
        self.past_use_at = now_ms
