"""One connection to a server: HTTP/1.1 on a socket of its own, asked one thing at a time.

Why: a scheduler sends thousands of small requests in a row, and whatever stands between it and the socket is paid for
with each of them. OpenSSL reads and writes the socket itself, without copies through a buffer of the event loop.
Owns: the socket, TLS on it, what has been sent, and how answers are cut out of bytes (httptools).
Must not: know Kubernetes, judge a status, or try again.

    open_line ──► idle ── ask ──► asked ── whole answer ──► idle, or closed if the server will not go on
                    │               ├── begin: pieces as they come, until it is left ──► closed
                    │               └── broken, late, cancelled, the guard says no ──► closed
                    └── the server hangs up ──► closed
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httptools

from optimus.kube.errors import NoAnswer, NotSent

Guard = Callable[[], bool]
_READ_AT_ONCE = 1 << 18
_AGAIN = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError, InterruptedError)
_IN_A_ROW = 32
"""Reads of one stream before others have their turn."""
_UNREAD_AT_MOST = 4 << 20
"""Of a stream that nobody takes from: the server is left waiting."""


class Stopped(NotSent):
    """A guard said no before the request was whole: a server does not act on half of one."""


class Line:
    def __init__(self, connected: socket.socket) -> None:
        self.closed = False
        self.used = False
        """Was asked before: the server may be about to hang up."""
        self.idle_since = 0.0
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._socket = connected
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._left = memoryview(b"")
        self._guard: Guard | None = None
        self._sent = False
        self._asked = self._begun = self._over = False
        """Something was asked; the head of its answer is here; all of it is."""
        self._pieces: list[bytes] = []
        self._unread = 0
        self._deaf = False
        self._goes_on = False
        self._waiter: asyncio.Future[None] | None = None
        self._streams = False
        self._why: Exception | None = None
        self._loop.add_reader(connected.fileno(), self._readable)

    @property
    def untouched(self) -> bool:
        """Nothing of the request has left."""
        return not self._sent

    @property
    def silent(self) -> bool:
        """Nothing of the answer has come."""
        return not self._begun

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, request: bytes, deadline: float, guard: Guard | None) -> bytes:
        """The body of the answer; `status` and `headers` belong to it until the next."""
        self._ask(request, guard, streams=False)
        while not self._over:
            await self._something(deadline)
        self._rest()
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    async def begin(self, request: bytes, deadline: float) -> None:
        """Until the head of the answer is here."""
        self._ask(request, None, streams=True)
        while not self._begun:
            await self._something(deadline)

    async def pieces(self, quiet_s: float) -> AsyncGenerator[bytes, None]:
        """Of an answer that has begun, until it ends; `NoAnswer` if it breaks off or nothing comes for so long."""
        while True:
            if self._pieces:
                come, self._pieces, self._unread = self._pieces, [], 0
                if self._deaf and not self.closed:
                    self._deaf = False
                    self._loop.add_reader(self._socket.fileno(), self._readable)
                yield come[0] if len(come) == 1 else b"".join(come)
            elif self._over:
                return
            else:
                await self._something(self._loop.time() + quiet_s)

    def _ask(self, request: bytes, guard: Guard | None, *, streams: bool) -> None:
        assert not self._asked
        self.status, self.headers, self._pieces = 0, {}, []
        self._asked, self._begun, self._over, self._sent = True, False, False, False
        self._streams, self._guard, self._left = streams, guard, memoryview(request)
        self._send()

    async def _something(self, deadline: float) -> None:
        if self._why is not None:
            raise self._why
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._end, NoAnswer("the time was up"))
        try:
            await waiter
        except BaseException:
            self.close()  # an answer that comes now would be taken for that to the next question
            raise
        finally:
            timer.cancel()
            self._waiter = None

    def _rest(self) -> None:
        """Between two questions."""
        self._asked = False
        self.used, self.idle_since, self._guard = True, self._loop.time(), None
        if not self._goes_on:
            self.close()

    # -- the socket ---------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        try:
            while self._left:
                if self._guard is not None and not self._guard():
                    self._end(Stopped("the guard said no"))
                    return
                count = self._socket.send(self._left)
                self._sent = True
                self._left = self._left[count:]
        except ssl.SSLWantReadError:
            pass  # goes on when something has been read
        except _AGAIN:
            self._loop.add_writer(self._socket.fileno(), self._writable)
        except OSError as error:
            self._end(NoAnswer(in_words(error)))

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._send()

    def _readable(self) -> None:
        try:
            piece = self._socket.recv(_READ_AT_ONCE)
            self._parser.feed_data(piece)
            turns = _IN_A_ROW if self._streams else 1
            while piece and not self.closed and ((turns := turns - 1) > 0 or _pending(self._socket)):
                piece = self._socket.recv(_READ_AT_ONCE)
                self._parser.feed_data(piece)
        except _AGAIN:
            piece = b"-"
        except OSError as error:
            self._end(NoAnswer(in_words(error)))
            return
        except httptools.HttpParserError as error:
            self._end(NoAnswer(f"the answer is no HTTP: {error}"))
            return
        if not piece:
            self._hung_up()
        elif self._over or (self._streams and self._begun):
            self._wake()
        if self._left and not self.closed:
            self._send()

    def _hung_up(self) -> None:
        if self._begun and not self._over and b"content-length" not in self.headers and not self._chunked():
            self._over = True  # such an answer ends with its connection
            self._wake()
            self.close()
        else:
            self._end(NoAnswer("the connection broke off"))

    def _chunked(self) -> bool:
        return b"chunked" in self.headers.get(b"transfer-encoding", b"").lower()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, why: Exception) -> None:
        self._why = self._why or why
        self.close()

    def close(self) -> None:
        """At once and without a last word: whoever hears none within half a minute would keep a loop waiting. What has
        come of a stream is still given out."""
        if self.closed:
            return
        self.closed = True
        self._why = self._why or NoAnswer("the connection was closed")
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._wake()

    # -- told by the parser -------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._over or not self._asked:
            raise ValueError("nobody asked for it")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._begun = self.status >= 200

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._unread += len(piece)
        if self._streams and self._unread > _UNREAD_AT_MOST and not self._deaf:
            self._deaf = True
            self._loop.remove_reader(self._socket.fileno())

    def on_message_complete(self) -> None:
        if self._begun:
            self._over, self._goes_on = True, self._parser.should_keep_alive()
        else:  # 100 Continue and the like; the answer comes after it
            self.headers = {}


def _pending(connected: socket.socket) -> int:
    """Decrypted and not read yet: the event loop does not see it."""
    return connected.pending() if isinstance(connected, ssl.SSLSocket) else 0


# -- opening ------------------------------------------------------------------------------------------------------


async def open_line(host: str, port: int, tls: ssl.SSLContext | None, server_name: str, deadline: float) -> Line:
    """Raises OSError, of which a `TimeoutError` and ssl's errors are some."""
    async with asyncio.timeout_at(deadline):
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        last: OSError = OSError(f"nothing is known of {host}")
        for address in found:
            opened = lively_socket(address)
            try:
                await loop.sock_connect(opened, address[4])
                if tls is not None:
                    opened = tls.wrap_socket(opened, server_hostname=server_name, do_handshake_on_connect=False)
                    await _shake_hands(opened)
                return Line(opened)
            except OSError as error:
                opened.close()
                if isinstance(error, ssl.SSLError):
                    raise
                last = error
            except BaseException:
                opened.close()
                raise
        raise last


async def _shake_hands(opened: ssl.SSLSocket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            opened.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(loop.add_reader, loop.remove_reader, opened)
        except ssl.SSLWantWriteError:
            await _ready(loop.add_writer, loop.remove_writer, opened)
        else:
            return


async def _ready(add: Callable[..., Any], remove: Callable[..., Any], opened: socket.socket) -> None:
    ready = asyncio.get_running_loop().create_future()
    add(opened.fileno(), lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(opened.fileno())


def lively_socket(address: tuple[Any, ...]) -> socket.socket:
    """A peer that vanished without a word (a node that lost its power) is noticed within half a minute."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        if hasattr(socket, option):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def in_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    if isinstance(error, TimeoutError) and not error.errno:
        return "the time was up"
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    number = error.errno if isinstance(error, OSError) else None  # what the event loop says of it is for programmers
    return os.strerror(number) if number else str(error) or type(error).__name__
