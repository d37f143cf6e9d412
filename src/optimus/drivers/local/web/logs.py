"""Logs: what the replicas of a job have written, line by line, while they write it.

Why: `optimus logs -f` of eight replicas is one stream, in which every line says whose it is.
Owns: finding the files of a job's starts, and following them.
Must not: keep a file open that nobody reads.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

LOOK_S = 0.15
CHUNK = 256 << 10
HOLE = re.compile(rb"\0{64,}")
"""What is left of a part that was cut out, at its edges."""


class Line(Struct, frozen=True, kw_only=True, rename="camel"):
    replica: str
    start: str
    number: int
    """From 1, in what this start has written."""
    text: str


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
    rest: list[bytes] = field(default_factory=list)
    """Pieces of a line that has no end yet."""

    def more(self, *, last: bool = False) -> list[Line] | None:
        """Whole lines of what has come since, the unfinished one too when nothing more will come; None: nothing new."""
        try:
            with self.path.open("rb") as file:
                self.at = max(self.at, _data_from(file.fileno(), self.at))
                file.seek(self.at)
                read = file.read(CHUNK)
        except OSError:
            return None
        self.at += len(read)
        new = HOLE.sub(b"", read)
        first, *others = new.split(b"\n")
        self.rest.append(first)
        whole = []
        if others:
            whole, self.rest = [b"".join(self.rest), *others[:-1]], [others[-1]]
        if last and not read and any(self.rest):
            whole, self.rest = [b"".join(self.rest)], []
        return list(map(self._line, whole)) if read or whole else None

    def _line(self, raw: bytes) -> Line:
        self.number += 1
        text = raw.decode(errors="replace")
        return Line(replica=self.replica, start=self.start, number=self.number, text=text)


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
    runs: Path, uid: str, chosen: Chosen, *, follow: bool, tail: int | None, over: Callable[[], bool]
) -> AsyncIterator[Line]:
    """`over`: whether nothing more will be written. `tail`: the last lines of every start that is there already."""
    known: dict[str, Reading] = {}
    first = True
    while True:
        finished = over()
        for reading in starts_of(runs, uid, chosen):
            known.setdefault(reading.start, reading)
        came = False
        for reading in known.values():
            kept: deque[Line] = deque(maxlen=tail if first else 0)
            while (found := reading.more(last=finished or not follow)) is not None:
                came = True
                if first and tail is not None:
                    kept.extend(found)
                else:
                    for one in found:
                        yield one
                await asyncio.sleep(0)  # a long log is no reason for others to wait
            for one in kept:
                yield one
        if (finished or not follow) and not came:
            return
        first = False
        if not came:
            await asyncio.sleep(LOOK_S)


def _began(start: str) -> int:
    last = start.rsplit("-", 1)[-1]
    return int(last) if last.isdigit() else 0
