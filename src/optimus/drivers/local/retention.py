"""Retention: what is over is remembered for a while, and then cleared away.

Why: a machine that runs ten thousand jobs a day must not fill its disk with their names, nor with what they wrote.
Owns: when a job, its checkpoints, the folders of its starts and the middle of a long log are removed.
Must not: touch what is not over, but for the middle of a log that has no end; hold up a turn.

    jobs     forgotten when their time is over, or when there are too many of them or of their parts
    starts   a folder in `runs/` each: removed when there are too many that are over, or when they take too much room
    logs     of any start, also one that runs: the first and the last of it are kept (`keeping.cutting`)

The job that ended last is kept, however many parts it has: somebody wants to know what became of it. A folder whose
job nobody remembers is removed once its end is on record; should a kill come between the two, the next look finds it.
Checkpoints of a job are doomed in the moment in which it is forgotten, and removed in the next look, or in that after a
kill. No other job finds them meanwhile: each has a folder of its own, also under an old name.
"""

from __future__ import annotations

import os
import shutil
from itertools import islice
from pathlib import Path

from msgspec import Struct

from optimus.drivers.local.body import CHECKPOINTS, Body, checkpoints_of
from optimus.drivers.local.keeping.cutting import cut
from optimus.drivers.local.store import DOOMED, StoreError
from optimus.drivers.local.surroundings import from_where

KEEP_MS = 7 * 86_400_000
FORGOTTEN = "Forgotten"
"""All that is still known of a job: that it was there."""
AT_ONCE = 500
"""Removed in one look: clearing away must not hold up a turn. Where more is left, the next look comes soon."""


class Keep(Struct, frozen=True, kw_only=True):
    """How much of what is over."""

    jobs: int = 2_000
    parts: int = 20_000
    """Of all these jobs, and as many starts; a job that is no array is one part."""
    runs_mib: int = 2_048
    """That starts which are over take on the disk."""
    log_mib: int = 256
    """Of any single log."""


class Retention:
    def __init__(self, body: Body, keep: Keep) -> None:
        self._body = body
        self._keep = keep
        self._runs = body.store.folder / "runs"
        self._over: dict[str, int] = {}
        """Starts that are over, the oldest first, and the bytes of each: nobody writes there any more."""

    def look(self, now_ms: int) -> bool:
        """Clear away. Whether more is left to be."""
        if self._body.unwritten:  # an end that is not written down is known only by its folder
            return False
        more = self._forget(now_ms)
        more = self._remove_checkpoints() or more
        known = {one.uid: one.job.id for one in self._body.jobs.values()}
        for start in self._find(known, now_ms):
            self._cut(start)
        return self._clear(known) or more

    def _forget(self, now_ms: int) -> bool:
        """Jobs."""
        ended = self._body.store.ended()
        parts = sum(len(self._body.lives_of(job)) for job, _ in ended)
        jobs, old = len(ended), []
        for number, (job, at) in enumerate(ended, 1):
            too_many = (jobs > self._keep.jobs or parts > self._keep.parts) and number < len(ended)
            if too_many or at < now_ms - self._keep_ms(job):
                jobs, parts = jobs - 1, parts - len(self._body.lives_of(job))
                old.append(job)
        gone = [
            job for job in old if not any(self._body.replicas.get(life.workload) for life in self._body.lives_of(job))
        ]
        try:
            self._body.forget(gone[:AT_ONCE])
        except StoreError:
            return False
        for job in gone[:AT_ONCE]:
            self._body.happened(now_ms, job, FORGOTTEN, "")
        return len(gone) > AT_ONCE

    def _remove_checkpoints(self) -> bool:
        """Of jobs that are forgotten, by time or because another one has their name. Somebody may go on from there
        with a `checkpoint.path` of his own: then they stay until he is forgotten too."""
        store = self._body.store
        doomed = store.doomed()
        if not doomed:
            return False
        everything = store.folder / CHECKPOINTS
        used = [everything / checkpoints_of(one) for one in self._body.jobs.values()]
        used += [Path(path) for one in self._body.jobs.values() if (path := from_where(one, one.job.saving.path))]
        free = [name for name in doomed if not any(path.is_relative_to(everything / name) for path in used)]
        for name in free[:AT_ONCE]:
            shutil.rmtree(everything / name, ignore_errors=True)
        gone = [name for name in free[:AT_ONCE] if not (everything / name).exists()]
        try:
            with store.turn():
                for name in gone:
                    store.drop_thing(DOOMED, name)
        except StoreError:
            return False
        return len(free) > AT_ONCE

    def _find(self, known: dict[str, str], now_ms: int) -> list[str]:
        """Take note of starts that have ended since the last look. Returns those that have not."""
        try:
            there = {entry.name for entry in os.scandir(self._runs)}
        except OSError:
            return []
        self._over = {start: size for start, size in self._over.items() if start in there}
        running: list[str] = []
        new: list[str] = []
        for start in there - self._over.keys():
            over = not self._body.is_live(start) if _uid(start) in known else self._is_left(start, now_ms)
            (new if over else running).append(start)
        for start in sorted(new, key=_began):
            self._cut(start)
            self._over[start] = _bytes_of(self._runs / start)
        return running

    def _is_left(self, start: str, now_ms: int) -> bool:
        """Of a job that is forgotten: its end is on record, or nobody has written there for long."""
        folder = self._runs / start
        try:
            return (folder / "exit").exists() or folder.stat().st_mtime * 1000 < now_ms - KEEP_MS
        except OSError:
            return False

    def _clear(self, known: dict[str, str]) -> bool:
        """Starts."""
        doomed = [start for start in self._over if _uid(start) not in known]
        count, size = len(self._over) - len(doomed), sum(self._over.values())
        size -= sum(self._over[start] for start in doomed)
        for start in [start for start in self._over if _uid(start) in known]:
            if count <= self._keep.parts and size <= self._keep.runs_mib << 20:
                break
            doomed.append(start)
            count, size = count - 1, size - self._over[start]
        for start in islice(doomed, AT_ONCE):
            shutil.rmtree(self._runs / start, ignore_errors=True)
            if not (self._runs / start).exists():
                del self._over[start]
        return len(doomed) > AT_ONCE

    def _cut(self, start: str) -> None:
        cut(self._runs / start / "log", self._keep.log_mib << 20)

    def _keep_ms(self, job: str) -> int:
        one = self._body.jobs.get(job)
        return KEEP_MS if one is None or one.job.keep_ms is None else one.job.keep_ms


def _uid(start: str) -> str:
    return start.partition("-")[0]


def _began(start: str) -> int:
    last = start.rpartition("-")[2]
    return int(last) if last.isdigit() else 0


def _bytes_of(folder: Path) -> int:
    """On the disk: what was cut out of a log takes none."""
    try:
        with os.scandir(folder) as entries:
            inside = sum(entry.stat(follow_symlinks=False).st_blocks for entry in entries)
        return (inside + folder.stat().st_blocks) * 512
    except OSError:
        return 0
