"""What a job says about itself: one line of JSON in the status file, at most once a second.

The line is written beside and renamed, so that a reader never sees half of it. Where the file is a mount of its own (a
termination message of a container) renaming is not possible: there it is written in place. It stays below 4,096
bytes, which is what such a message may have.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings

from optimus.inside import contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from optimus.inside.checkpoints import Checkpoint

SECONDS_BETWEEN = 1.0
SMOOTHING_SECONDS = 30.0
LONGEST = 4_000
WHOLE_BITS, DECIMAL_BITS = 63, 600
"""Of whole numbers: those that every reader of the file has, and those that are soon written in decimal."""


class Status:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As in a new process."""
        self.metrics: dict[str, Any] = {}
        self.epoch: Any | None = None
        self.loop = ""
        self.phase = "running"
        self.step: int | None = None
        self.total: int | None = None
        self.fraction: float | None = None
        self.rate: float | None = None
        self.checkpoint: dict[str, Any] | None = None
        self.problem: str | None = None
        self.leaves_in: float | None = None
        self.look: Callable[[float], None] | None = None
        """Brings all that is said of a loop up to date. Asked before every line, whoever makes it speak, so that a
        step costs nothing for it and progress is never older than the numbers beside it."""
        self.next_at = 0.0
        self._counted_at: float | None = None
        self._counted = 0
        self._reached_at = 0.0
        self._warned = False
        self._forget_the_end()

    def begin(self, loop: str, total: int | None) -> None:
        self.loop, self.total, self.phase = loop, total, "running"
        self.step, self.fraction, self.rate = None, None, None
        self._counted_at, self._counted = time.monotonic(), 0
        self._forget_the_end()

    def progress(self, step: int, fraction: float | None, counted: int, now: float) -> None:
        """`counted` steps were done in this attempt; the rate follows the last half minute."""
        if (step, fraction) != (self.step, self.fraction):
            self.step, self.fraction, self._reached_at = step, fraction, now
        self._foresee_the_end(fraction, now)
        if self._counted_at is None or counted < self._counted:  # where a loop of one's own begins, or begins again
            self._counted_at, self._counted = now, counted
            return
        passed = now - self._counted_at
        if passed <= 0 or counted == self._counted:
            return
        self.rate = smoothed(self.rate, (counted - self._counted) / passed, passed)
        self._counted_at, self._counted = now, counted

    def _forget_the_end(self) -> None:
        self.seconds_left: float | None = None
        self._ends_at: float | None = None
        self._seen: tuple[float, float] | None = None
        """A fraction, and when it was reached."""
        self._per_second: float | None = None

    def _foresee_the_end(self, fraction: float | None, now: float) -> None:
        """From what was done in this attempt: what an earlier one has done is where this one began."""
        if fraction is None or self._seen is None or fraction < self._seen[0]:
            self._forget_the_end()
            self._seen = None if fraction is None else (fraction, now)
            return
        passed, gained = now - self._seen[1], fraction - self._seen[0]
        if passed >= SECONDS_BETWEEN and gained:
            self._per_second = smoothed(self._per_second, gained / passed, passed)
            self._seen = fraction, now
            self._ends_at = now + max(1.0 - fraction, 0.0) / self._per_second
        if self._ends_at is not None:  # in the middle of a step the end comes nearer as well
            self.seconds_left = max(self._ends_at - now, 0.0)

    def saved(self, checkpoint: Checkpoint) -> None:
        self.saved_at(checkpoint.step, checkpoint.at_ms, checkpoint.path)

    def saved_at(self, step: int | None, at_ms: int, path: str | None = None) -> None:
        self.checkpoint = {"step": step, "at_ms": at_ms, "path": path}
        self.problem = None

    def write_if_due(self) -> None:
        if (now := time.monotonic()) >= self.next_at:
            self.write(now)

    def write(self, now: float) -> None:
        self.next_at = now + SECONDS_BETWEEN
        path = contract.status_file()
        if self.look is not None:
            self.look(now)
        if not path:
            return
        line = self.line()
        try:
            replace(path, line)
        except OSError as error:
            if self._warned:  # a full disk may have room again: it is tried again, and said once
                return
            self._warned = True
            warnings.warn(
                f"the status file {path} cannot be written: {error.strerror or error}. "
                "Training goes on; its progress is not seen.",
                contract.CheckpointWarning,
                stacklevel=2,
            )

    def line(self) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        content = {
            "version": 1,
            "attempt": contract.whole_number(contract.ATTEMPT, 1),
            "rank": contract.rank(),
            "phase": self.phase,
            "loop": self.loop,
            "step": self.step,
            "total": self.total,
            "fraction": None if self.fraction is None else round(self.fraction, 6),
            "steps_per_second": None if self.rate is None else float(f"{self.rate:.4g}"),
            "seconds_left": None if self.seconds_left is None else float(f"{self.seconds_left:.3g}"),
            "epoch": plain(self.epoch),
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
            "last_checkpoint_ms": self.checkpoint and self.checkpoint["at_ms"],
            "checkpoint": self.checkpoint,
            "leaves_in_s": None if self.leaves_in is None else float(f"{self.leaves_in:.3g}"),
            "problem": self.problem and self.problem[:500],
            "reached_ms": None if self.step is None else now_ms - round((time.monotonic() - self._reached_at) * 1000),
            "updated_ms": now_ms,
        }
        line = encoded(content)
        if len(line) > LONGEST:
            line = encoded({**content, "metrics": {}})
        return line


def smoothed(before: float | None, rate: float, passed: float) -> float:
    """The rate of the last half minute, roughly, after one more look."""
    if before is None:
        return rate
    return before + (1.0 - math.exp(-passed / SMOOTHING_SECONDS)) * (rate - before)


def encoded(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b"\n"


def replace(path: str, line: bytes) -> None:
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "wb") as file:
            file.write(line)
        os.replace(beside, path)
    except OSError:
        if os.path.exists(beside):
            os.unlink(beside)
        with open(path, "r+b", buffering=0) as file:
            file.write(line)
            file.truncate()


def light(value: Any) -> Any:
    """A tensor without what it was computed from, which would stay in memory until the value is written."""
    detach = getattr(value, "detach", None)
    return detach() if callable(detach) else value


def plain(value: Any) -> Any:
    """A number or a word that every reader has; not-a-number and what is beyond 64 bits are said as words."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= WHOLE_BITS:
            return value
        return str(value) if value.bit_length() <= DECIMAL_BITS else f"{value:#x}"[:200]
    if isinstance(value, str):
        return value[:200]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)[:200]
    return number if math.isfinite(number) else str(number)


STATUS = Status()
"""One process, one status."""
