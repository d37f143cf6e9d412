"""Progress: what running jobs say of themselves in their status files.

Why: people want to see how far it is, and whoever is asked to leave loses only what was not saved.
Owns: reading those files, seldom and forgivingly.
Must not: trust them: a job writes what it likes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from optimus.drivers.local.body import Body
from optimus.model.jobs import job_of_workload
from optimus.model.observations import Checkpointed, SavesInTime
from optimus.model.progress import Remaining

LARGEST = 64 << 10
LONGEST_MS = 365 * 86_400_000
MARGIN = 2
"""Who says that it leaves in so many seconds is believed to do so in twice as many."""


class Pace(NamedTuple):
    """Where it was when it was first heard with so many replicas."""

    replicas: int
    fraction: float
    at_ms: int


class Progress:
    def __init__(self, body: Body) -> None:
        self._body = body
        self._seen: dict[str, float] = {}
        """By start: when its file was last written."""
        self._saved: dict[str, int] = {}
        """By start: its last checkpoint, as far as the brain knows."""
        self._paces: dict[str, Pace] = {}
        """By start, since it had as many replicas as now."""
        self._in_time: dict[str, bool] = {}
        """By start: whether it saves within its grace, as far as the brain knows."""

    def look(self) -> None:
        alive, speaking = set(), set()
        for workload, replicas in self._body.replicas.items():
            for start, replica in replicas.items():
                if replica.live and not replica.ordinal:  # the first speaks for all of them
                    alive.add(start)
                    speaking.add(workload)
                    self._look_at(workload, start)
        for workload in self._body.remaining.keys() - speaking:
            del self._body.remaining[workload]
        self._paces = {start: pace for start, pace in self._paces.items() if start in alive}
        self._seen = {start: at for start, at in self._seen.items() if start in alive}
        self._saved = {start: at for start, at in self._saved.items() if start in alive}
        self._in_time = {start: yes for start, yes in self._in_time.items() if start in alive}

    def _look_at(self, workload: str, start: str) -> None:
        file = self._body.folder_of(start) / "status.json"
        try:
            written = file.stat()
            if written.st_mtime == self._seen.get(start) or written.st_size > LARGEST:
                return
            told: Any = msgspec.json.decode(file.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return
        self._seen[start] = written.st_mtime
        if not isinstance(told, dict):
            return
        self._body.progress[workload] = told
        self._body.changed.add("/".join(workload.split("/")[:2]))
        self._measure(workload, start, told.get("fraction"), int(written.st_mtime * 1000))
        saved = told.get("last_checkpoint_ms")
        if isinstance(saved, int) and saved != self._saved.get(start):
            self._saved[start] = saved
            self._body.learned(Checkpointed(workload, saved))
        leaves_in = told.get("leaves_in_s")
        if isinstance(leaves_in, int | float):
            in_time = self._in_time_of(workload, leaves_in)
            if in_time != self._in_time.get(start):
                self._in_time[start] = in_time
                self._body.learned(SavesInTime(workload, in_time))

    def _measure(self, workload: str, start: str, fraction: object, at_ms: int) -> None:
        """Its pace since it was first heard, pauses for saving and evaluation included; another size, another pace."""
        if not isinstance(fraction, int | float) or not 0.0 <= fraction <= 1.0:
            return
        replicas = sum(replica.live for replica in self._body.replicas[workload].values())
        pace = self._paces.get(start)
        if pace is None or pace.replicas != replicas or fraction < pace.fraction:
            self._paces[start] = Pace(replicas, fraction, at_ms)
            return
        done, passed_ms = fraction - pace.fraction, at_ms - pace.at_ms
        if done > 0 and passed_ms > 0:
            left_ms = round(passed_ms * (1.0 - fraction) / done)
            told = Remaining(at_ms=at_ms, left_ms=min(left_ms, LONGEST_MS), measured_ms=passed_ms)
            self._body.remaining[workload] = told

    def _in_time_of(self, workload: str, leaves_in_s: float) -> bool:
        """It is asked by a signal, says that it will be quick, and has not been late before."""
        asked_by_signal = not self._body.jobs[job_of_workload(workload)].job.saving.command
        grace_ms = self._body.workload(workload).grace_ms
        return asked_by_signal and leaves_in_s * 1000 * MARGIN <= grace_ms and workload not in self._body.overdue
