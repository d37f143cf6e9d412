"""What goes over one connection: sockets that notice death, bodies that ask before they leave, lines as they come.

The side of the client that knows aiohttp by heart, so that `client` reads like what it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from optimus.kube.decoding import Lines
from optimus.kube.errors import NoAnswer, NotSent

BROKEN = (aiohttp.ClientError, OSError, TimeoutError)
"""Whatever aiohttp raises when it does not get on."""

Guard = Callable[[], bool]


class GuardedBody(aiohttp.BytesPayload):
    """Asks when the connection stands and the head is written, before any of the body is."""

    def __init__(self, body: bytes, guard: Guard) -> None:
        super().__init__(body, content_type="application/json")
        self._guard = guard
        self.stopped = False

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if not self._guard():
            self.stopped = True
            raise NotSent("the guard said no")
        await super().write_with_length(writer, content_length)


async def lines_of(response: aiohttp.ClientResponse) -> AsyncGenerator[list[bytes], None]:
    lines = Lines()
    try:
        while piece := await response.content.readany():
            if complete := lines.feed(piece):
                yield complete
    except BROKEN as error:
        raise NoAnswer(f"the watch broke off: {in_words(error)}") from None


async def words_of(response: aiohttp.ClientResponse) -> bytes:
    """Of a refusal, which counts also if its words break off."""
    try:
        return await response.read()
    except BROKEN:
        return b""


def hang_up(response: aiohttp.ClientResponse) -> None:
    """A watch that is left has more to come, so its connection is of no more use; nor is a polite end of TLS."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def in_words(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return str(error) or ("the time was up" if isinstance(error, TimeoutError) else type(error).__name__)


class Sockets:
    """All that one client has made, so that none of them outlives it.

    A request that was given up leaves a connection that ends TLS politely: it waits half a minute for a word of the
    server, and no pool knows it any more. A loop that ends meanwhile would leave it open."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        made = lively_socket(address)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """Whoever reads from one reads its end, and closes it: in the next turn of the loop, or in a few."""
        for turn in range(_TURNS):
            left = [one for one in self._made if one.fileno() >= 0]
            if not left:
                return
            for one in left:
                with contextlib.suppress(OSError):  # it is not connected yet, or not any more
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0 if turn < _QUICK_TURNS else 0.01)


_QUICK_TURNS, _TURNS = 10, 100
"""What is still open then belongs to a request that somebody has not given up, though its client is closed."""


def lively_socket(address: tuple[Any, ...]) -> socket.socket:
    """A peer that vanished without a word (a node that lost its power) is noticed within half a minute."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        if hasattr(socket, option):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
