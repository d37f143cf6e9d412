"""One connection to a server: HTTP/1.1 on a socket of its own, asked one thing at a time.

Why: a scheduler sends thousands of small requests in a row, and whatever stands between it and the socket is paid for
with each of them. One read takes many records of TLS, and nothing is handed through layers of an event loop.
Owns: the socket, TLS on it, what has been sent, and how answers are cut out of bytes (httptools).
Must not: know Kubernetes, judge a status, or try again.

    open_line ──► idle ── ask ──► asked ── whole answer ──► idle, or closed if the server will not go on
                    │               ├── begin: pieces as they come, until it is left ──► closed
                    │               └── broken, late, cancelled, the guard says no ──► closed
                    └── the server hangs up ──► closed
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import httptools

from optimus.kube.errors import NoAnswer, NotSent

Guard = Callable[[], bool]
_READ_AT_ONCE = 1 << 16
_RECORD = 1 << 14
"""The most that one record of TLS holds; more room would be allocated for each, and given back."""
_AGAIN = (BlockingIOError, InterruptedError)
_UNREAD_AT_MOST = 4 << 20
"""Of a stream that nobody takes from: the server is left waiting."""


class Stopped(NotSent):
    """A guard said no before the request was whole: a server does not act on half of one."""


class Line:
    def __init__(self, connected: socket.socket, sealed: Sealed | None = None) -> None:
        self.closed = False
        self.used = False
        """Was asked before: the server may be about to hang up."""
        self.idle_since = 0.0
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._socket = connected
        self._sealed = sealed
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
        self._deadline = 0.0
        self._alarm: asyncio.TimerHandle | None = None
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
        self._streams, self._guard = streams, guard
        self._left = memoryview(self._sealed.seal(request) if self._sealed is not None else request)
        self._send()

    async def _something(self, deadline: float) -> None:
        if self._why is not None:
            raise self._why
        waiter = self._waiter = self._loop.create_future()
        self._deadline = deadline
        if self._alarm is None or self._alarm.when() > deadline:
            self._set_alarm()
        try:
            await waiter
        except BaseException:
            self.close()  # an answer that comes now would be taken for that to the next question
            raise
        finally:
            self._waiter = None

    def _set_alarm(self) -> None:
        """One for many questions: it goes off early, and is set anew if something is still asked."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(self._deadline, self._alarmed)

    def _alarmed(self) -> None:
        self._alarm = None
        if self._waiter is None:
            return
        if self._loop.time() >= self._deadline:
            self._end(NoAnswer("the time was up"))
        else:
            self._set_alarm()

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
        except _AGAIN:
            self._loop.add_writer(self._socket.fileno(), self._writable)
        except OSError as error:
            self._end(NoAnswer(in_words(error)))

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._send()

    def _readable(self) -> None:
        try:
            come = self._socket.recv(_READ_AT_ONCE)
            if self._sealed is None:
                self._parser.feed_data(come)
            else:
                for piece in self._sealed.open(come):
                    self._parser.feed_data(piece)
                    if self.closed:
                        return
                self._left = self._sealed.with_answers(self._left)
        except _AGAIN:
            return
        except OSError as error:
            self._end(NoAnswer(in_words(error)))
            return
        except httptools.HttpParserError as error:
            self._end(NoAnswer(f"the answer is no HTTP: {error}"))
            return
        if not come:
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
        if self._alarm is not None:
            self._alarm.cancel()
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
                sealed = Sealed(tls, server_name) if tls is not None else None
                if sealed is not None:
                    await sealed.shake_hands(opened)
                return Line(opened, sealed)
            except OSError as error:
                opened.close()
                if isinstance(error, ssl.SSLError):
                    raise
                last = error
            except BaseException:
                opened.close()
                raise
        raise last


class Sealed:
    """TLS between two buffers. OpenSSL on the socket itself asks the system twice for each record, and servers send a
    record for each event of a watch."""

    def __init__(self, tls: ssl.SSLContext, server_name: str) -> None:
        self._come, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._come, self._goes, server_hostname=server_name)

    async def shake_hands(self, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await loop.sock_sendall(connected, self._goes.read())
                come = await loop.sock_recv(connected, _READ_AT_ONCE)
                if not come:
                    raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from None
                self._come.write(come)
            except ssl.SSLError:
                await loop.sock_sendall(connected, self._goes.read())  # the server is told why
                raise
            else:
                await loop.sock_sendall(connected, self._goes.read())
                return

    def seal(self, clear: bytes) -> bytes:
        self._tls.write(clear)
        return self._goes.read()

    def open(self, come: bytes) -> Iterator[bytes]:
        """What the bytes said; part of a record waits for the rest of it."""
        self._come.write(come)
        try:
            while self._come.pending or self._tls.pending():
                if not (clear := self._tls.read(_RECORD)):
                    return  # the server says that it was all
                yield clear
        except ssl.SSLWantReadError:
            return

    def with_answers(self, left: memoryview) -> memoryview:
        """Behind what is left to send: what TLS itself has to say to what has come (a change of keys)."""
        return memoryview(bytes(left) + self._goes.read()) if self._goes.pending else left


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
