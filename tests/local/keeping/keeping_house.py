"""A keeper in a test: what it told, in order, and waiting for what it will tell."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from optimus.drivers.local.keeping.events import Event, Exited, Limits, Lost, Refused, Request, Started
from optimus.drivers.local.keeping.keeper import Keeper
from optimus.drivers.local.keeping.limiting import Limiting

PATIENCE_S = 20.0
A = TypeVar("A")
E = TypeVar("E", Started, Exited, Refused, Lost)


def request(
    attempt: str, *argv: str, workdir: str = "/", limits: Limits | None = None, job: str = "", **env: str
) -> Request:
    return Request(attempt, argv, {"PATH": os.environ["PATH"], **env}, workdir, limits, job)


def script(attempt: str, text: str, job: str = "", limits: Limits | None = None) -> Request:
    return request(attempt, "/bin/sh", "-c", text, job=job, limits=limits)


def record_of(folder: Path) -> dict[str, Any]:
    """What `started` says, all its lines."""
    fields: dict[str, Any] = {}
    for line in (folder / "started").read_text().splitlines():
        fields |= json.loads(line)
    return fields


class House:
    """A keeper and everything it told."""

    def __init__(self, runs: Path, *, limiting: Limiting | None = None) -> None:
        self.runs = runs
        self.told: list[Event] = []
        self._news = asyncio.Event()
        self.keeper = Keeper(runs, self._hear, limiting=limiting)

    def _hear(self, event: Event) -> None:
        self.told.append(event)
        self._news.set()

    def of(self, attempt: str) -> list[Event]:
        return [event for event in self.told if event.attempt == attempt]

    async def hears(self, kind: type[E], attempt: str) -> E:
        def found() -> E | None:
            return next((event for event in self.of(attempt) if isinstance(event, kind)), None)

        return await self._waited_for(found)

    async def hears_the_end_of(self, attempt: str) -> Event:
        def found() -> Event | None:
            return next((event for event in self.of(attempt) if not isinstance(event, Started)), None)

        return await self._waited_for(found)

    async def _waited_for(self, found: Callable[[], A | None]) -> A:
        async with asyncio.timeout(PATIENCE_S):
            while (it := found()) is None:
                self._news.clear()
                await self._news.wait()
        return it

    async def runs_to_its_end(self, request: Request) -> Exited:
        self.keeper.spawn(request)
        return await self.hears(Exited, request.attempt)

    def log_of(self, attempt: str) -> str:
        return (self.runs / attempt / "log").read_text()


@asynccontextmanager
async def house(runs: Path, *, limiting: Limiting | None = None) -> AsyncIterator[House]:
    it = House(runs, limiting=limiting)
    await it.keeper.start()
    try:
        yield it
    finally:
        for attempt in list(it.keeper._kept):
            it.keeper.kill(attempt)
        await it.keeper.close()


def played(story: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        await story()

    asyncio.run(play())


async def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, f"waited in vain until {what}"
        await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


async def number_in(path: Path) -> int:
    """A process number that a replica writes down when it gets there."""
    await until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} is written")
    return int(path.read_text())
