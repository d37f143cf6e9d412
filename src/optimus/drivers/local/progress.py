"""Progress: what running jobs say of themselves in their status files.

Why: people want to see how far it is, and whoever is asked to leave loses only what was not saved.
Owns: looking at those files (`saying` reads them), seldom and forgivingly, once more when a replica has ended and once
after a restart; and what of them the brain is told.
Must not: trust them: a job writes what it likes, and what is wrong with it is told as an event of that job, once.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, NamedTuple

from optimus.drivers.local import saying
from optimus.drivers.local.body import Body
from optimus.model.jobs import job_of_workload
from optimus.model.observations import Checkpointed, SavesInTime
from optimus.model.progress import Remaining

STATUS_FILE = "status.json"
LONGEST_MS = 365 * 86_400_000
MARGIN = 2
"""Who says that it leaves in so many seconds is believed to do so in twice as many."""
PATIENCE = 2
"""A file that is being written may look broken once."""
MOST_NAMED = 3


class Pace(NamedTuple):
    """Where it was when it was first heard with so many replicas."""

    replicas: int
    fraction: float
    at_ms: int


class Progress:
    def __init__(self, body: Body) -> None:
        self._body = body
        self._seen: dict[str, int] = {}
        """By start: when its file was last written, in nanoseconds."""
        self._broken: dict[str, int] = {}
        """By start: how often in a row its file could not be read."""
        self._complained: set[str] = set()
        """Starts of which something wrong was told."""
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
        self._broken = {start: times for start, times in self._broken.items() if start in alive}
        self._complained &= alive
        self._saved = {start: at for start, at in self._saved.items() if start in alive}
        self._in_time = {start: yes for start, yes in self._in_time.items() if start in alive}

    def last_words(self, start: str) -> None:
        """Of a replica whose end is about to be told: what it wrote at its exit is its last checkpoint, as a rule."""
        found = self._body.speaker(start)
        if found is not None:
            self._look_at(found, start)

    def recall(self) -> None:
        """After a restart: what those said at last who do not run. Of arrays nothing is shown, so none is read."""
        silent = {
            one.uid: one.job.id
            for one in self._body.jobs.values()
            if not one.job.array and one.job.id not in self._body.progress
        }
        spoken: dict[str, list[tuple[int, str]]] = {}
        with contextlib.suppress(OSError), os.scandir(self._body.store.folder / "runs") as runs:
            for run in runs:
                uid, _, rest = run.name.partition("-")
                ordinal, _, began = rest.rpartition("-")
                if uid in silent and ordinal.endswith("-0") and began.isdigit():
                    spoken.setdefault(uid, []).append((int(began), run.name))
        for uid, starts in spoken.items():
            for _, start in sorted(starts, reverse=True):
                with contextlib.suppress(saying.UnreadableError):
                    said = saying.read(self._body.folder_of(start) / STATUS_FILE)
                    if said is not None:
                        self._body.progress[silent[uid]] = said.words
                        break

    def _look_at(self, workload: str, start: str) -> None:
        try:
            said = saying.read(self._body.folder_of(start) / STATUS_FILE, self._seen.get(start))
        except saying.UnreadableError as error:
            self._broken[start] = times = self._broken.get(start, 0) + 1
            if times == PATIENCE:
                self._complain(workload, start, f"what it says of itself (OPTIMUS_STATUS_FILE) is not read: {error}")
            return
        if said is None:
            return
        self._seen[start] = said.written_ns
        self._broken.pop(start, None)
        if said.left_out:
            names = ", ".join(name or "something" for name in dict.fromkeys(said.left_out[:MOST_NAMED]))
            text = f"left out of what it says of itself: {names}: a number beyond 64 bits, or nested too deep"
            self._complain(workload, start, text)
        self._body.progress[workload] = said.words
        self._body.changed.add(job_of_workload(workload))
        self._take(workload, start, said.words, min(max(said.written_ns // 1_000_000, 0), _now_ms()))

    def _complain(self, workload: str, start: str, text: str) -> None:
        """Once for each start: it may go on like this for days."""
        if start not in self._complained:
            self._complained.add(start)
            self._body.happened(_now_ms(), workload, "StatusIgnored", text)

    def _take(self, workload: str, start: str, told: dict[str, Any], at_ms: int) -> None:
        reached = told.get(
            "reached_ms"
        )  # a step may have taken long since, and whatever it says beside is written anew
        when_ms = min(reached, at_ms) if isinstance(reached, int) and reached > 0 else at_ms
        self._measure(workload, start, told.get("fraction"), when_ms)
        saved = told.get("last_checkpoint_ms")
        if isinstance(saved, int) and 0 <= saved <= _now_ms() and saved != self._saved.get(start):
            self._saved[start] = saved
            self._body.learned(Checkpointed(workload, saved))
        leaves_in = told.get("leaves_in_s")
        if isinstance(leaves_in, int | float) and leaves_in >= 0:
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
            left_ms = round(min(passed_ms * (1.0 - fraction) / done, LONGEST_MS))  # `done` may be next to nothing
            told = Remaining(at_ms=at_ms, left_ms=left_ms, measured_ms=passed_ms)
            self._body.remaining[workload] = told

    def _in_time_of(self, workload: str, leaves_in_s: float) -> bool:
        """It is asked by a signal, says that it will be quick, and has not been late before."""
        asked_by_signal = not self._body.jobs[job_of_workload(workload)].job.saving.command
        grace_ms = self._body.workload(workload).grace_ms
        return asked_by_signal and leaves_in_s * 1000 * MARGIN <= grace_ms and workload not in self._body.overdue


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
