"""Logs: what the replicas of a job have written, line by line, while they write it.

Why: `optimus logs -f` of eight replicas is one stream, in which every line says whose it is.
Owns: finding the files of a job's starts, and following them.
Must not: keep a file open that nobody reads; take millions of lines one by one for whoever takes them together.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

LOOK_S = 0.15
CHUNK = 256 << 10
AT_ONCE = 2_000
"""Records that are made before others have their turn."""
GAP = b"\0" * 64
HOLE = re.compile(GAP + rb"\0*")
"""What is left of a part that was cut out, at its edges."""


class Line(Struct, frozen=True, kw_only=True, rename="camel"):
    replica: str
    start: str
    number: int
    """From 1, in what this start has written and is still there."""
    at: int
    """Where it begins, in bytes; the same also after something before it was cut out."""
    end: int
    """Where the next one begins."""
    text: str
    """Without its end; of several lines in one record, with the ends between them."""


class Block(NamedTuple):
    """Whole lines that were read together, or at last one that has no end."""

    at: int
    """Where the first one begins."""
    end: int
    number: int
    """Of the first one."""
    raw: bytes

    @property
    def lines(self) -> int:
        return self.raw.count(b"\n") + (not self.raw.endswith(b"\n"))

    def last(self, lines: int) -> Block:
        """Without those before."""
        beyond = self.lines - lines
        if beyond <= 0:
            return self
        kept = self.raw.split(b"\n", beyond)[beyond]
        return Block(self.end - len(kept), self.end, self.number + beyond, kept)


@dataclass
class Reading:
    path: Path
    replica: str
    start: str
    attempt: int
    part: int | None = None
    """Of an array."""
    at: int = 0
    number: int = 0
    begun: int = 0
    """Where the line that is read next begins."""
    rest: list[bytes] = field(default_factory=list)
    """Pieces of a line that has no end yet."""

    def more(self, *, last: bool = False) -> Block | None:
        """Whole lines of what has come since, the unfinished one too when nothing more will come; None: nothing new."""
        try:
            with self.path.open("rb") as file:
                self.at = max(self.at, _data_from(file.fileno(), self.at))
                file.seek(self.at)
                read = file.read(CHUNK)
        except OSError:
            return None
        if not any(piece.strip(b"\0") for piece in self.rest):
            self.rest, self.begun = [], self.at
        self.at += len(read)
        whole = read.rfind(b"\n") + 1
        if whole:
            found = self._taken(read[:whole], self.at - len(read) + whole)
            self.rest = [read[whole:]]
            return found
        if read:
            self.rest.append(read)
            return Block(self.begun, self.begun, self.number + 1, b"")
        return self._taken(b"", self.at) if last and any(self.rest) else None

    def _taken(self, piece: bytes, end: int) -> Block:
        found = Block(self.begun, end, self.number + 1, b"".join((*self.rest, piece)))
        self.number += found.lines
        self.rest, self.begun = [], end
        return found

    def records(self, block: Block, *, together: bool) -> Iterator[Line]:
        """One for each line or, where they are wanted `together`, one for all of them: if its text is what was written,
        byte by byte, so that whoever was cut off can tell what of it he has."""
        if not block.raw:
            return
        if together and GAP not in block.raw and len(block.raw) == block.end - block.at:
            try:
                text = block.raw.removesuffix(b"\n").decode()
            except UnicodeDecodeError:
                pass
            else:
                yield self._line(block.number, block.at, block.end, text)
                return
        at, end = block.at, block.end - len(block.raw)
        for number, raw in enumerate(block.raw.removesuffix(b"\n").split(b"\n"), block.number):
            end = min(end + len(raw) + 1, block.end)
            at += len(raw) - len(raw.lstrip(b"\0"))  # a line whose beginning was cut out
            yield self._line(number, at, end, HOLE.sub(b"", raw).decode(errors="replace"))
            at = end

    def _line(self, number: int, at: int, end: int, text: str) -> Line:
        return Line(replica=self.replica, start=self.start, number=number, at=at, end=end, text=text)


class Chosen(Struct, frozen=True, kw_only=True):
    """Which starts of a job; all, if nothing is said."""

    replica: str = ""
    """`worker-0`, of an array `3-worker-0`."""
    attempt: int | None = None
    part: int | None = None
    """Of an array."""

    def takes(self, one: Reading) -> bool:
        return (
            self.replica in ("", one.replica) and self.attempt in (None, one.attempt) and self.part in (None, one.part)
        )


def starts_of(runs: Path, uid: str, chosen: Chosen = Chosen()) -> list[Reading]:  # noqa: B008 - frozen
    """The starts of a job: part by part, and the oldest first."""
    found = []
    for folder in runs.glob(f"{uid}-*"):
        replica, attempt, part = named(folder.name, uid)
        found.append(Reading(folder / "log", replica, folder.name, attempt, part))
    return sorted(filter(chosen.takes, found), key=_in_turn)


def _in_turn(one: Reading) -> tuple[int, int, list[tuple[int, str]]]:
    return -1 if one.part is None else one.part, _began(one.start), in_order(one.start)


def named(start: str, uid: str) -> tuple[str, int, int | None]:
    """`uid-[part-]attempt-role-ordinal-ms` -> `[part-]role-ordinal`, attempt, part."""
    words = start.removeprefix(f"{uid}-").split("-")
    part = int(words[0]) if len(words) > 4 and words[0].isdigit() and words[1].isdigit() else None
    number, *rest = words[1:] if part is not None else words
    replica = "-".join(rest[:-1] if part is None else (words[0], *rest[:-1]))
    return replica, int(number) if number.isdigit() else 0, part


def in_order(name: str) -> list[tuple[int, str]]:
    """To sort by: part 10 comes after part 9."""
    return [(int(word), "") if word.isascii() and word.isdigit() else (-1, word) for word in name.split("-")]


def split_name(replica: str, *, array: bool) -> tuple[int | None, str, int]:
    """`[part-]role-ordinal`; -1 for an ordinal that is none, and for the part of an array that is not named."""
    part, _, rest = replica.partition("-") if array else ("", "", replica)
    role, _, ordinal = rest.rpartition("-")
    return (_number(part) if array else None), role, _number(ordinal)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and text == str(int(text)) else -1


def _data_from(fd: int, at: int) -> int:
    """Behind a hole, if there is one (`keeping.cutting`)."""
    try:
        return os.lseek(fd, at, os.SEEK_DATA)
    except OSError:  # at its end
        return at


async def lines(
    runs: Path,
    uid: str,
    chosen: Chosen,
    *,
    follow: bool,
    tail: int | None,
    over: Callable[[], bool],
    together: bool = False,
) -> AsyncIterator[list[Line]]:
    """What there is at a time. `over`: whether nothing more will be written. `tail`: of what is there already, the last
    lines of every replica, replica by replica, over all its starts. `together`: lines of one start that are there at a
    time are one record."""
    known: dict[str, Reading] = {}
    first = True
    while True:
        finished = over()
        for reading in starts_of(runs, uid, chosen):
            known.setdefault(reading.start, reading)
        came = False
        ended = first and tail is not None
        for starts in _by_replica(known.values()) if ended else [[one] for one in known.values()]:
            kept = _Tail(tail) if ended and tail is not None else None
            for reading in starts:
                while (block := reading.more(last=finished or not follow)) is not None:
                    came = True
                    if kept is not None:
                        kept.take(reading, block)
                    else:
                        for several in _portions(reading.records(block, together=together)):
                            yield several
                    await asyncio.sleep(0)  # a long log is no reason for others to wait
            for reading, block in kept.blocks if kept is not None else ():
                for several in _portions(reading.records(block, together=together)):
                    yield several
        if (finished or not follow) and not came:
            return
        first = False
        if not came:
            await asyncio.sleep(LOOK_S)


def _by_replica(readings: Iterable[Reading]) -> list[list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for one in readings:
        found.setdefault(one.replica, []).append(one)
    return list(found.values())


class _Tail:
    """The last lines of what it takes."""

    def __init__(self, lines: int) -> None:
        self.blocks: deque[tuple[Reading, Block]] = deque()
        self._wanted = lines
        self._there = 0

    def take(self, reading: Reading, block: Block) -> None:
        if not block.raw:
            return
        self.blocks.append((reading, block))
        self._there += block.lines
        while self.blocks and self._there - self.blocks[0][1].lines >= self._wanted:
            self._there -= self.blocks.popleft()[1].lines
        if self.blocks and self._there > self._wanted:
            oldest, first = self.blocks[0]
            self.blocks[0] = oldest, first.last(self._wanted - self._there + first.lines)
            self._there = self._wanted


def _portions(records: Iterator[Line]) -> Iterator[list[Line]]:
    while several := list(islice(records, AT_ONCE)):
        yield several


def _began(start: str) -> int:
    last = start.rsplit("-", 1)[-1]
    return int(last) if last.isdigit() else 0
