"""What a client has done so far, as plain numbers that only grow. Whoever exports metrics reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TERMINATING = "terminating"
"""A 403 that no role can mend: nothing new is made in a namespace that is going."""
TIMED_OUT, UNREACHABLE, STOPPED = "no answer", "unreachable", "guard"


class Counters:
    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = defaultdict(int)
        """(verb, code) -> count; the code is an HTTP status, or why there is none."""
        self.seconds: dict[str, float] = defaultdict(float)
        """verb -> time from asking until the answer begins."""
        self.took: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS_S) + 1))
        """verb -> how many took at most so long: one for each bound, and one for longer."""
        self.renewed_credentials = 0
        self.in_flight = 0

    def answered(self, verb: str, code: int | str, seconds: float) -> None:
        self.requests[verb, str(code)] += 1
        self.seconds[verb] += seconds
        self.took[verb][bisect_left(BOUNDS_S, seconds)] += 1
