"""How long to wait before the next try: longer each time, never all at once, and as long as the server asks."""

from __future__ import annotations

import random

FIRST_S = 0.2
MOST_S = 30.0
LONGEST_ASKED_S = 120.0
"""More than this is not believed: somebody may have written a date of next year."""


class Backoff:
    def __init__(self, first_s: float = FIRST_S, most_s: float = MOST_S) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._wait_s = first_s

    def next(self, asked_s: float | None = None) -> float:
        """Seconds; at least what the server asked for."""
        wait = self._wait_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, keeps no secret
        self._wait_s = min(self._wait_s * 2, self._most_s)
        return max(wait, min(asked_s or 0.0, LONGEST_ASKED_S))

    def reset(self) -> None:
        self._wait_s = self._first_s
