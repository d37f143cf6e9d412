"""Logs: what the replicas of a job have written, line by line, while they write it.

Why: `optimus logs -f` of eight replicas is one stream, in which every line says whose it is.
Owns: finding the files of a job's starts, and following them.
Must not: keep a file open that nobody reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

LOOK_S = 0.15
CHUNK = 256 << 10


class Line(Struct, frozen=True, kw_only=True, rename="camel"):
    replica: str
    start: str
    text: str


@dataclass
class Reading:
    path: Path
    replica: str
    start: str
    at: int = 0
    rest: bytes = b""
    lines: list[str] = field(default_factory=list)

    def more(self, *, last: bool = False) -> list[str]:
        """Whole lines that have come since; the unfinished one too, when nothing more will come."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.at)
                new = file.read(CHUNK)
        except FileNotFoundError:
            return []
        self.at += len(new)
        *whole, self.rest = (self.rest + new).split(b"\n")
        if last and not new and self.rest:
            whole, self.rest = [*whole, self.rest], b""
        return [text.decode(errors="replace") for text in whole]


def starts_of(runs: Path, uid: str, replica: str = "") -> list[Reading]:
    """Every start of a job, the oldest first; of one replica (`worker-0`, of an array `3-worker-0`) if it is named."""
    found = []
    for folder in runs.glob(f"{uid}-*"):
        name = replica_of(folder.name, uid)
        if replica in ("", name):
            found.append((folder.stat().st_mtime, Reading(folder / "log", name, folder.name)))
    return [reading for _, reading in sorted(found, key=lambda pair: (_began(pair[1].start), pair[1].start))]


def replica_of(start: str, uid: str) -> str:
    """`uid-[part-]attempt-role-ordinal-ms` -> `[part-]role-ordinal`."""
    words = start.removeprefix(f"{uid}-").split("-")
    part = f"{words[0]}-" if len(words) > 4 and words[1].isdigit() else ""
    rest = words[2:] if part else words[1:]
    return part + "-".join(rest[:-1])


async def lines(
    runs: Path, uid: str, *, replica: str, follow: bool, tail: int | None, over: Callable[[], bool]
) -> AsyncIterator[Line]:
    """`over`: whether nothing more will be written."""
    known: dict[str, Reading] = {}
    first = True
    while True:
        finished = over()
        for reading in starts_of(runs, uid, replica):
            known.setdefault(reading.start, reading)
        told = 0
        for reading in known.values():
            while found := reading.more(last=finished or not follow):
                shown = found[-tail:] if first and tail is not None else found
                for text in shown:
                    told += 1
                    yield Line(replica=reading.replica, start=reading.start, text=text)
        if (finished or not follow) and not told:
            return
        first = False
        if not told:
            await asyncio.sleep(LOOK_S)


def _began(start: str) -> int:
    last = start.rsplit("-", 1)[-1]
    return int(last) if last.isdigit() else 0
