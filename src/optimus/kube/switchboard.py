"""All connections of one client to its server: opened when they are needed, used again, closed together.

Why: opening one costs ten requests, and one that idled too long may be dead without a sign.
Owns: who is idle, and what may be asked a second time because certainly nothing came of the first.
Must not: count what is in flight (`client` does), or know what is asked.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

import msgspec

from optimus.kube.config import Cluster
from optimus.kube.decoding import Lines
from optimus.kube.errors import ConfigError, NoAnswer, NotSent
from optimus.kube.line import Guard, Line, Stopped, in_words, open_line

CONNECT_S = 5.0
IDLE_S = 15.0
"""One that has idled longer is not used again: somewhere between here and there it may have been forgotten."""
_PORTS = {"http": 80, "https": 443}


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[bytes, bytes]
    body: bytes


class Switchboard:
    def __init__(self, cluster: Cluster) -> None:
        parts = urlsplit(cluster.server)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ConfigError(f"{cluster.source}: {cluster.server!r} is no address of a server: https://HOST:PORT")
        self.prefix = parts.path.rstrip("/")
        """Of every path: some servers are one of many behind an address."""
        self.host = parts.netloc.rpartition("@")[2]
        self._address = (parts.hostname, parts.port or _PORTS[parts.scheme])
        self._server_name = cluster.server_name or parts.hostname
        self._server, self._source = cluster.server, cluster.source
        self._idle: list[tuple[Line, ssl.SSLContext | None]] = []
        self._open: set[Line] = set()

    async def ask(
        self, request: bytes, tls: ssl.SSLContext | None, *, timeout_s: float, guard: Guard | None, harmless: bool
    ) -> Answer:
        """`harmless`: may be asked twice."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            line = self._idle_one(tls) or await self._new(tls, deadline)
            try:
                body = await line.ask(request, deadline, guard)
            except Stopped:
                raise
            except NoAnswer as error:
                if line.used and line.silent and (harmless or line.untouched) and _before(deadline):
                    continue  # it idled, and the server hung up just now
                what = "no answer" if line.silent else "the answer"
                raise NoAnswer(f"{what} of {self._server}{'' if line.silent else ' broke off'}: {error}") from None
            finally:
                self._open.discard(line)
            if not line.closed:
                self._open.add(line)
                self._idle.append((line, tls))
            return Answer(line.status, line.headers, body)

    @asynccontextmanager
    async def stream(self, request: bytes, tls: ssl.SSLContext | None, *, quiet_s: float) -> AsyncIterator[Line]:
        """One that has begun to answer; on a connection of its own, which ends with it."""
        deadline = asyncio.get_running_loop().time() + quiet_s
        line = await self._new(tls, deadline)
        try:
            try:
                await line.begin(request, deadline)
            except NoAnswer as error:
                raise NoAnswer(f"no answer of {self._server}: {error}") from None
            yield line
        finally:
            line.close()
            self._open.discard(line)

    def close(self) -> None:
        """At once; whoever still waits for an answer is told that there will be none."""
        for line in list(self._open):
            line.close()
        self._open.clear()
        self._idle.clear()

    def _idle_one(self, tls: ssl.SSLContext | None) -> Line | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            line, shown = self._idle.pop()  # the one that idled least
            if not line.closed and shown is tls and now - line.idle_since < IDLE_S:
                return line
            line.close()
            self._open.discard(line)
        return None

    async def _new(self, tls: ssl.SSLContext | None, deadline: float) -> Line:
        soon = min(deadline, asyncio.get_running_loop().time() + CONNECT_S)
        try:
            line = await open_line(*self._address, tls, self._server_name, soon)
        except ssl.SSLCertVerificationError as error:
            look = f"look at certificate-authority and tls-server-name of {self._source}"
            raise NotSent(f"{self._server} is not trusted ({error.verify_message}): {look}") from None
        except (OSError, UnicodeError) as error:
            raise NotSent(f"nobody answers at {self._server}: {in_words(error)}") from None
        self._open.add(line)
        return line


def _before(deadline: float) -> bool:
    return asyncio.get_running_loop().time() < deadline


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Several at a time, as they come."""
    lines = Lines()
    try:
        async for piece in pieces:
            if complete := lines.feed(piece):
                yield complete
    except NoAnswer as error:
        raise type(error)(f"the watch broke off: {error}") from None


async def words_of(line: Line, quiet_s: float) -> bytes:
    """Of a refusal, which counts also if its words break off."""
    words = bytearray()
    try:
        async with aclosing(line.pieces(quiet_s)) as pieces:
            async for piece in pieces:
                words += piece
    except NoAnswer:
        pass
    return bytes(words)
