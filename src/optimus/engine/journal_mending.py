"""Mending: what a writer does with the end of a journal whose last writer may have died in mid-write.

Why: a torn tail is normal after a crash and must cost nothing but itself.
Owns: cutting a torn tail, setting aside what cannot be understood, and the number of the next cycle.
Must not: cut anything after which a whole frame follows, or delete bytes that may mean something to another version.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from optimus.engine.journal_files import ASIDE_SUFFIX, Segment, list_segments
from optimus.engine.journal_frames import HEADER_BYTES, BadFrame, find, walk
from optimus.engine.journal_records import Cycle, Flaw, FlawKind, decode


class Mended(Struct, frozen=True):
    next_sequence: int
    flaws: tuple[Flaw, ...]


class _Found(Struct):
    """What whole frames say about the numbers already used. Only the last is looked into: numbers ascend."""

    first_sequence: int
    frames: int = 0
    last: bytes = b""

    def take(self, payload: bytes) -> None:
        self.frames += 1
        self.last = payload

    @property
    def next_sequence(self) -> int:
        if not self.frames:
            return self.first_sequence
        try:
            record = decode(self.last)
        except msgspec.MsgspecError:  # of another version: every frame may be a cycle
            return self.first_sequence + self.frames
        return record.sequence + 1 if isinstance(record, Cycle) else self.first_sequence


def mend(folder: Path) -> Mended:
    """Mend from the newest segment backwards until one is whole; usually that is the first looked at."""
    next_sequence = 0
    flaws: list[Flaw] = []
    for segment in reversed(list_segments(folder)):
        found = _Found(segment.first_sequence)
        flaw = _mend_segment(segment, found)
        next_sequence = max(next_sequence, found.next_sequence)
        if flaw is None:
            break
        flaws.append(flaw)
    return Mended(next_sequence, tuple(flaws))


def _mend_segment(segment: Segment, found: _Found) -> Flaw | None:
    path = segment.path
    if path.stat().st_size == 0:
        return _set_aside(path, BadFrame(0, "", torn=True), blank=True)
    with path.open("rb") as file:
        for frame in walk(file):
            if isinstance(frame, BadFrame):
                bad = frame
                break
            found.take(frame.payload)
        else:
            return None
        file.seek(bad.offset)
        rest = file.read()
    if _take_later_frames(rest, found):
        message = f"{bad.message}; whole frames follow, so nothing is cut off"
        return Flaw(FlawKind.DAMAGED, path.name, bad.offset, message)
    if bad.offset == 0:
        return _set_aside(path, bad, blank=not rest.strip(b"\0"))
    with path.open("rb+") as file:
        file.truncate(bad.offset)
        os.fsync(file.fileno())
    message = f"{bad.message}; cut off {len(rest)} bytes, kept everything before cycle {found.next_sequence}"
    return Flaw(FlawKind.TORN, path.name, bad.offset, message)


def _take_later_frames(rest: bytes, found: _Found) -> bool:
    any_found = False
    start = 1
    while (frame := find(rest, start)) is not None:
        found.take(frame.payload)
        any_found = True
        start = frame.offset + HEADER_BYTES + len(frame.payload)
    return any_found


def _set_aside(path: Path, bad: BadFrame, *, blank: bool) -> Flaw:
    """Not even the first record can be read: a name given before the content was on disk, or a file not of ours."""
    if blank:
        path.unlink()
        return Flaw(FlawKind.TORN, path.name, 0, "the segment was blank; removed")
    aside = path.with_name(path.name + ASIDE_SUFFIX)
    path.rename(aside)
    return Flaw(FlawKind.TORN, path.name, 0, f"{bad.message}; set aside as {aside.name}")
