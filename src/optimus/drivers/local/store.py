"""The store: what must not be forgotten, in one SQLite file.

Why: `kill -9` and a pulled plug must lose nothing that somebody was told is done.
Owns: jobs, their lives and replicas, the cluster, queues and pools, run times to learn from, and what happened.
Must not: interpret any of it.

A turn of the body is one transaction: everything or nothing. The log is written through to the disk before a commit
returns (WAL, synchronous=FULL): the turn is what amortises it. One body at a time holds the lock file.

Room is kept inside the file for a time when the disk has none: pages that are free, and a log that is as long. What
is written goes there first, so that ends and cancellations can be written down on a full disk for a while.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from optimus.client.connection import LOCK_FILE
from optimus.drivers.local import disk
from optimus.drivers.local.clusters import Known
from optimus.lives import Life, Replica
from optimus.model.jobs import Job
from optimus.model.pools import NodePool
from optimus.model.queues import Queue

FORMAT = 1
DOOMED = "doomed"
KEPT_ROOM = 2 << 20
LONGEST_LOG = 16 << 20
"""Of SQLite, after a turn that was very long."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS things (kind TEXT, name TEXT, body BLOB NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, body BLOB NOT NULL, ended_ms INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS jobs_ended ON jobs (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS lives (workload TEXT PRIMARY KEY, job TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lives_of_job ON lives (job);
CREATE TABLE IF NOT EXISTS replicas (start TEXT PRIMARY KEY, workload TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replicas_of_workload ON replicas (workload);
CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, queue TEXT, family TEXT, run_ms INTEGER, work_ms INTEGER);
CREATE TABLE IF NOT EXISTS happenings (id INTEGER PRIMARY KEY, at_ms INTEGER, object TEXT, code TEXT, text TEXT);
CREATE INDEX IF NOT EXISTS happenings_of_object ON happenings (object);
"""


class StoreError(Exception):
    """It cannot be opened or written; the text says why and what to do."""


class StoreInUseError(StoreError):
    """Another process holds it."""


class Submitted(Struct, frozen=True, kw_only=True):
    """A job as it was accepted."""

    job: Job
    uid: str
    """Never given twice, also when a job of the same name comes again."""
    submitted_ms: int
    where: str = ""
    """The folder it was submitted from."""
    checkpoints: str = ""
    """Its own folder below that of all checkpoints: with its uid, so that no other job of its name finds them. Empty:
    it is called as the job, as in stores of earlier versions."""
    written: bytes = b""
    """The document as it came, as JSON."""


class Happening(Struct, frozen=True):
    at_ms: int
    object: str
    code: str
    text: str
    part: str = ""
    """Of an array; the last one, where it happened to several."""
    parts: int = 1
    """To how many of them."""


class Run(Struct, frozen=True):
    queue: str
    family: str
    run_ms: int
    work_ms: int


class Kept(Struct, frozen=True, kw_only=True):
    """Everything that a body needs to go on."""

    queues: tuple[Queue, ...]
    pools: tuple[NodePool, ...]
    jobs: tuple[Submitted, ...]
    lives: tuple[Life, ...]
    replicas: tuple[tuple[str, Replica], ...]
    """(workload, replica)."""
    runs: tuple[Run, ...]
    cluster: Known | None = None
    """That it was started with at last."""


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._failed = ""
        """Why the last turn could not be written, if it could not."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / LOCK_FILE)
            self._db = sqlite3.connect(folder / "optimus.db", isolation_level=None)
            # ours alone: the index of the log is then in memory, and no file for it has to be made on a full disk
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(f"PRAGMA journal_size_limit={LONGEST_LOG}")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_SCHEMA)
            self._check_format()
            self._add_parts()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(disk.advice(folder, error)) from error
        self.keep_room()

    def _check_format(self) -> None:
        found = self._db.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
        if found is None:
            self._db.execute("INSERT INTO facts VALUES ('format', ?)", (str(FORMAT),))
        elif int(found[0]) > FORMAT:
            raise StoreError(
                f"the store in {self.folder} was written by a newer version (format {found[0]}, this one knows "
                f"{FORMAT}): use that version, or another folder (--store)"
            )

    def _add_parts(self) -> None:
        """To a store from before happenings named the part."""
        if "part" not in [row[1] for row in self._db.execute("PRAGMA table_info(happenings)")]:
            self._db.execute("ALTER TABLE happenings ADD COLUMN part TEXT NOT NULL DEFAULT ''")

    def keep_room(self) -> None:
        """See to it that there are free pages; where that fails, it is tried again another time."""
        pages, size = (self._number(f"PRAGMA {name}") for name in ("freelist_count", "page_size"))
        if pages * size >= KEPT_ROOM // 2 or self.trouble():
            return
        with suppress(StoreError):  # in two turns: pages that are freed in the turn that made them are never written
            with self.turn():
                self._db.execute("INSERT OR REPLACE INTO things VALUES ('room', '', zeroblob(?))", (KEPT_ROOM,))
            with self.turn():
                self.drop_thing("room", "")

    def trouble(self) -> str:
        """Why nothing new should be begun; empty if it may. After a failure it is tried whether it is over."""
        found = disk.trouble(self.folder)
        if not found and self._failed:
            with suppress(StoreError), self.turn():
                self._db.execute("INSERT OR REPLACE INTO facts VALUES ('tried', '')")
        return found or self._failed

    def close(self) -> None:
        self._db.close()
        os.close(self._lock)

    # -- writing ------------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Everything written inside is kept, or nothing of it."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
            self._failed = ""
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    # the log may have come to its end while what it holds has a place: then the next turn begins anew
                    self._db.execute("PRAGMA wal_checkpoint(RESTART)")
            if isinstance(error, sqlite3.Error):
                self._failed = disk.advice(self.folder, error)
                raise StoreError(self._failed) from error
            raise

    def put_cluster(self, known: Known) -> None:
        self._put_thing("cluster", "", known)

    def put_queue(self, queue: Queue) -> None:
        self._put_thing("queue", queue.name, queue)

    def put_pool(self, pool: NodePool) -> None:
        self._put_thing("pool", pool.name, pool)

    def drop_thing(self, kind: str, name: str) -> None:
        self._db.execute("DELETE FROM things WHERE kind = ? AND name = ?", (kind, name))

    def put_jobs(self, jobs: Iterable[tuple[Submitted, int | None]]) -> None:
        """With the time at which each ended, if it has."""
        rows = [(one.job.id, msgspec.msgpack.encode(one), ended_ms) for one, ended_ms in jobs]
        self._db.executemany("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)", rows)

    def put_lives(self, lives: Iterable[tuple[str, Life]]) -> None:
        """By the job they belong to."""
        rows = [(life.workload, job, msgspec.msgpack.encode(life)) for job, life in lives]
        self._db.executemany("INSERT OR REPLACE INTO lives VALUES (?, ?, ?)", rows)

    def put_replicas(self, replicas: Iterable[tuple[str, Replica]]) -> None:
        rows = [(replica.start, workload, msgspec.msgpack.encode(replica)) for workload, replica in replicas]
        self._db.executemany("INSERT OR REPLACE INTO replicas VALUES (?, ?, ?)", rows)

    def drop_replicas(self, starts: Iterable[str]) -> None:
        self._db.executemany("DELETE FROM replicas WHERE start = ?", [(start,) for start in starts])

    def drop_job(self, job: str, checkpoints: str) -> None:
        """What it has saved is then `doomed`: whoever removes it says so, and a kill between the two loses nothing."""
        mine = "(SELECT workload FROM lives WHERE job = ?)"
        self._db.execute(f"DELETE FROM replicas WHERE workload IN {mine}", (job,))  # noqa: S608 - no input in it
        self._db.execute("DELETE FROM lives WHERE job = ?", (job,))
        self._db.execute("DELETE FROM happenings WHERE object = ?", (job,))
        self._db.execute("DELETE FROM jobs WHERE id = ?", (job,))
        self._db.execute("INSERT OR REPLACE INTO things VALUES (?, ?, ?)", (DOOMED, checkpoints, b""))

    def remember(self, runs: Iterable[Run], *, at_most: int) -> None:
        """Run times to learn from; the oldest are forgotten."""
        rows = [(run.queue, run.family, run.run_ms, run.work_ms) for run in runs]
        self._db.executemany("INSERT INTO runs (queue, family, run_ms, work_ms) VALUES (?, ?, ?, ?)", rows)
        if rows:
            self._db.execute("DELETE FROM runs WHERE id <= (SELECT max(id) FROM runs) - ?", (at_most,))

    def tell(self, happenings: Iterable[Happening], *, at_most: int) -> None:
        rows = [(one.at_ms, one.object, one.code, one.text, one.part) for one in happenings]
        self._db.executemany("INSERT INTO happenings (at_ms, object, code, text, part) VALUES (?, ?, ?, ?, ?)", rows)
        if rows:
            self._db.execute("DELETE FROM happenings WHERE id <= (SELECT max(id) FROM happenings) - ?", (at_most,))

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self) -> Kept:
        return Kept(
            queues=tuple(self._things("queue", Queue)),
            pools=tuple(self._things("pool", NodePool)),
            jobs=tuple(self._bodies("SELECT body FROM jobs", Submitted)),
            lives=tuple(self._bodies("SELECT body FROM lives", Life)),
            replicas=tuple(
                (workload, msgspec.msgpack.decode(body, type=Replica))
                for workload, body in self._db.execute("SELECT workload, body FROM replicas")
            ),
            runs=tuple(
                Run(*row) for row in self._db.execute("SELECT queue, family, run_ms, work_ms FROM runs ORDER BY id")
            ),
            cluster=self.cluster(),
        )

    def cluster(self) -> Known | None:
        return next(self._things("cluster", Known), None)

    def happenings(self, name: str, at_most: int = 200) -> list[Happening]:
        """In order. What happened to several parts in the same words is one of them, at the time of the last."""
        rows = self._db.execute(
            "SELECT at_ms, object, code, text, part, count(DISTINCT part), max(id) AS last FROM happenings "
            "WHERE object = ? GROUP BY code, text, CASE part WHEN '' THEN id ELSE -1 END ORDER BY last DESC LIMIT ?",
            (name, at_most),
        )
        return [Happening(*row[:-1]) for row in rows][::-1]

    def ended(self) -> list[tuple[str, int]]:
        """Jobs that are over, the oldest end first."""
        rows = self._db.execute("SELECT id, ended_ms FROM jobs WHERE ended_ms IS NOT NULL ORDER BY ended_ms, id")
        return [(str(job), int(at)) for job, at in rows]

    def doomed(self) -> list[str]:
        """Folders of checkpoints whose job is not remembered any longer."""
        rows = self._db.execute("SELECT name FROM things WHERE kind = ? ORDER BY name", (DOOMED,))
        return [str(name) for (name,) in rows]

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _put_thing(self, kind: str, name: str, thing: Struct) -> None:
        self._db.execute("INSERT OR REPLACE INTO things VALUES (?, ?, ?)", (kind, name, msgspec.msgpack.encode(thing)))

    def _things(self, kind: str, type_: type[Any]) -> Iterator[Any]:
        for (body,) in self._db.execute("SELECT body FROM things WHERE kind = ? ORDER BY name", (kind,)):
            yield msgspec.msgpack.decode(body, type=type_)

    def _bodies(self, query: str, type_: type[Any]) -> Iterator[Any]:
        for (body,) in self._db.execute(query):
            yield msgspec.msgpack.decode(body, type=type_)


def _locked(path: Path) -> int:
    """Held as long as this process lives, however it ends."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for _ in range(2):  # a command may just look whether anybody is up (`client.connection`)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.05)
    else:
        holder = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise StoreInUseError(
            f"the store in {path.parent} is in use by process {holder}: stop it, or name another folder (--store)"
        )
    with suppress(OSError):  # in place and of one length, so that it needs no room that it does not have already
        os.pwrite(lock, f"{os.getpid():<15}\n".encode(), 0)
    return lock
