"""The mirror: what the engine's process shows, kept up to date by its news.

Why: a question is answered from memory here, and asked of the engine only where something shall change.
Owns: the copy, and the line to the engine. Whoever watches the copy is an `Audience`.
Must not: invent anything: after a lost line it is empty until the engine is back.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

from optimus.drivers.local import line
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.web.watching import Audience

ANSWER_S = 60.0


class Mirror:
    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self.audience = Audience()
        self.connected = asyncio.Event()
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._everything = 0
        """The number of the call whose answer is the whole state."""
        self._writer: asyncio.StreamWriter | None = None
        self._copying: asyncio.Task[bytes] | None = None

    async def run(self) -> None:
        """As long as the engine lives; comes back when it does."""
        while True:
            try:
                reader, self._writer = await asyncio.open_unix_connection(str(self._socket), limit=line.LONGEST)
            except OSError:
                await asyncio.sleep(0.2)
                continue
            reading = asyncio.create_task(self._read(reader))
            try:
                await self.call("everything")
                self.connected.set()
                await reading
            except RefusedError:
                await asyncio.sleep(0.2)
            finally:
                reading.cancel()
                self._lose()

    async def call(self, verb: str, **arguments: Any) -> Any:
        """The engine's answer; raises `RefusedError`."""
        if self._writer is None:
            raise RefusedError("unavailable", "the scheduler is not there (it may be starting): try again")
        number = next(self._numbers)
        if verb == "everything":
            self._everything = number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line.packed(line.Call(number, verb, arguments)))
            await self._writer.drain()
            return await asyncio.wait_for(answer, ANSWER_S)
        except (ConnectionError, TimeoutError) as error:
            raise RefusedError("unavailable", f"the scheduler did not answer: {error!r}") from error
        finally:
            self._answers.pop(number, None)

    async def snapshot(self) -> bytes:
        """A copy of the brain's state. Whoever asks while one is made gets the same one."""
        if self._copying is None or self._copying.done():
            self._copying = asyncio.create_task(self.call("snapshot"))
        return await asyncio.shield(self._copying)

    @property
    def shown(self) -> dict[str, Any]:
        return self.audience.shown

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while (frame := await line.received(reader)) is not None:
            if isinstance(frame, line.Answer):
                self._answered(frame)
            elif isinstance(frame, line.News):
                self.audience.take(frame)

    def _answered(self, frame: line.Answer) -> None:
        answer = self._answers.get(frame.number)
        if frame.number == self._everything and not frame.error:
            self.audience.begin(frame.value)  # at once: the next frame may be news that belong on top of it
        if answer is None or answer.done():
            return
        if frame.error:
            answer.set_exception(RefusedError(frame.code, frame.error))
        else:
            answer.set_result(frame.value)

    def _lose(self) -> None:
        self.connected.clear()
        if self._writer is not None:
            self._writer.close()
        self._writer = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(RefusedError("unavailable", "the scheduler went away before it answered"))
        self._answers.clear()
        self.audience.lose()
