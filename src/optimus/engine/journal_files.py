"""The files of a journal: names, the writer's lock, and one segment that is being appended to.

    <folder>/00000000000000000000.journal    first cycle 0
             00000000000000001000.journal    first cycle 1000
             00000000000000002000.journal    the one being written
             …2000.journal.part              a segment being begun; becomes visible whole, by a rename
             …0500.journal.unreadable        set aside: not even its first record could be read
             writer.lock                     held by the one process that writes

Why: everything that can fail with an OSError on the way down is in one place.
Owns: descriptors, short writes, fsync, the lock.
Must not: decide when to rotate or delete, or know what a record means.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from optimus.engine.journal_records import JournalError

SUFFIX = ".journal"
PART_SUFFIX = ".journal.part"
ASIDE_SUFFIX = ".unreadable"
LOCK_NAME = "writer.lock"


class Segment(Struct, frozen=True):
    path: Path
    first_sequence: int


def segment_path(folder: Path, first_sequence: int) -> Path:
    return folder / f"{first_sequence:020d}{SUFFIX}"


def list_segments(folder: Path) -> list[Segment]:
    """By first sequence. Files with other names are not ours and are left alone."""
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(folder):
            number = entry.name.removesuffix(SUFFIX)
            if number != entry.name and number.isascii() and number.isdigit():
                found.append(Segment(Path(entry.path), int(number)))
    return sorted(found, key=lambda segment: segment.first_sequence)


def lock_folder(folder: Path) -> int:
    """Take the writer's lock; closing the descriptor (or dying) gives it back."""
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise JournalError(f"another process writes the journal in {folder}; give each engine its own folder") from None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_parts(folder: Path) -> None:
    """Segments that were being begun when the writer died: nothing was recorded in them."""
    for path in folder.glob(f"*{PART_SUFFIX}"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SegmentFile:
    """A segment open for appending. After an OSError it is closed, and holds whole frames only if at all possible."""

    def __init__(self, folder: Path, first_sequence: int, head: Sequence[bytes], *, durable: bool) -> None:
        """`head` (Opened and Keyframe) is on disk before the segment gets its name."""
        self.path = segment_path(folder, first_sequence)
        self.bytes = 0
        part = folder / (self.path.name.removesuffix(SUFFIX) + PART_SUFFIX)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(part, flags, 0o644)
        visible = part
        try:
            for piece in head:
                self._write(piece)
            if durable:
                os.fsync(self._descriptor)
            os.replace(part, self.path)
            visible = self.path
            if durable:
                sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                self.close()
            with suppress(OSError):
                visible.unlink(missing_ok=True)
            raise
        self.head_bytes = self.bytes

    def append(self, frame: bytes) -> None:
        try:
            self._write(frame)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.bytes)
            with suppress(OSError):
                self.close()
            raise

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _write(self, data: bytes) -> None:
        """All of it or an OSError; a full disk takes a part first and refuses the rest."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.bytes += len(data)
