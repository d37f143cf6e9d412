"""Explanations over HTTP: each is worked out in a process of its own, of low priority, and few of them at a time.

Why: a page wants to know why a job waits and when it starts, and cannot decide and forecast by itself as the command
line does. Neither the scheduler nor whoever watches it may be slower for that.
Owns: the question that such a process gets, how many there are, and their end.
Must not: explain: the command that does is given by whoever starts all this.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from optimus.drivers.local.line import RefusedError

AT_ONCE = 1
"""Two cores have other things to do."""
MOST = 8
"""Questions that wait for their turn, the one that is worked on among them."""
MOST_SAMPLES = 1_000
MOST_SECONDS = 60
AROUND_S = 60.0
"""Beside its futures: the process begins, and every suggestion is tried."""


class Wish(Struct, frozen=True, kw_only=True):
    samples: int = 40
    seconds: int = 30
    """Then the futures that are done have to do."""
    forecast: bool = True
    page: bool = False
    """As text, too."""


class Question(Struct, frozen=True, kw_only=True):
    """What the process is told, as msgpack on its standard input."""

    job: dict[str, Any]
    """As it is shown."""
    wish: Wish
    now_ms: int
    copied: bytes = b""
    """The engine; empty: the job is over, and nothing has to be tried."""
    past: bytes = b""


class Explanations:
    def __init__(
        self, command: Sequence[str], copied: Callable[[], Awaitable[bytes]], past: Callable[[], Awaitable[bytes]]
    ) -> None:
        """`command`: reads a `Question` and writes the explanation as JSON; nothing: nobody explains here."""
        self._command, self._copied, self._past = command, copied, past
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._asked: dict[tuple[str, Wish], asyncio.Task[bytes]] = {}

    async def of(self, job: dict[str, Any], wish: Wish) -> bytes:
        """JSON. Whoever asks the same while it is worked out gets the same."""
        if not self._command:
            raise RefusedError("unavailable", "nobody explains here: `optimus explain` does, from anywhere")
        key = job["uid"], wish
        asked = self._asked.get(key)
        if asked is None:
            if len(self._asked) >= MOST:
                raise RefusedError("unavailable", f"{MOST} explanations are being worked out: ask again soon")
            asked = self._asked[key] = asyncio.create_task(self._explained(job, wish))
            asked.add_done_callback(lambda _done: self._asked.pop(key, None))
        return await asyncio.shield(asked)

    async def close(self) -> None:
        """Nobody is there any more to hear them."""
        for asked in self._asked.values():
            asked.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    async def _explained(self, job: dict[str, Any], wish: Wish) -> bytes:
        async with self._turns:
            copied = b"" if job["final"] else await self._copied()
            past = await self._past() if copied and wish.forecast else b""
            now_ms = time.time_ns() // 1_000_000
            question = Question(job=job, wish=wish, now_ms=now_ms, copied=copied, past=past)
            return await self._answer(msgspec.msgpack.encode(question), wish.seconds + AROUND_S)

    async def _answer(self, question: bytes, seconds: float) -> bytes:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        try:
            async with asyncio.timeout(seconds):
                answer, said = await process.communicate(question)
        except TimeoutError:
            raise RefusedError("unavailable", f"it took longer than {seconds:.0f} s: ask again") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and the process that plays its futures
                await process.wait()
        if process.returncode:
            why = said.decode(errors="replace").strip().rpartition("\n")[2] or f"it ended with {process.returncode}"
            raise RefusedError("internal", f"it cannot be explained: {why}")
        return answer
