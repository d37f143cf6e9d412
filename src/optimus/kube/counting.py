"""What a client has done so far, as plain numbers that only grow. Whoever exports metrics reads them."""

from __future__ import annotations

from collections import defaultdict

TIMED_OUT, UNREACHABLE, STOPPED = "no answer", "unreachable", "guard"


class Counters:
    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = defaultdict(int)
        """(verb, code) -> count; the code is an HTTP status, or why there is none."""
        self.seconds: dict[str, float] = defaultdict(float)
        """verb -> time from asking until the answer begins."""
        self.renewed_credentials = 0
        self.in_flight = 0

    def answered(self, verb: str, code: int | str, seconds: float) -> None:
        self.requests[verb, str(code)] += 1
        self.seconds[verb] += seconds
