"""The scheduler's line to its nursery: orders go out in batches without waiting, reports come in one by one.

Why: the scheduler's loop must not wait for a fork, and must hear at once when nobody is left to fork.
Owns: one nursery process, both sockets, and what could not be sent yet.
Must not: know attempts; what the end of a line means for them is the keeper's to find out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

from optimus.drivers.local.keeping import wire

_SOURCE = Path(__file__).parents[4]
_BEGIN = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from optimus.drivers.local.keeping.nursery import serve; serve(*map(int, sys.argv[2:]))"
)
_REPORTS_AT_ONCE = 64
"""Then others have their turn in the loop."""

Heard = Callable[[list[bytes], list[int]], None]
"""A report and the lifelines that came with it; they are the hearer's to close."""


class NurseryLine:
    def __init__(self, heard: Heard, ended: Callable[[], None], open_files: int) -> None:
        """OSError: no process could be started. `ended` is called once, when no report can come any more."""
        self._heard, self._ended = heard, ended
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._flushing = False
        self.over = asyncio.Event()
        self._orders, orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reports, reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.process = _begun(orders, reports, open_files)
        except OSError:
            self._orders.close()
            self._reports.close()
            raise
        finally:  # the ends of the nursery: as long as they are open here, the end of the line would not be seen
            orders.close()
            reports.close()
        self._orders.setblocking(False)
        self._reports.setblocking(False)
        self._loop.add_reader(self._reports, self._hear)

    def send(self, order: bytes) -> None:
        self._unsent += order
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    async def close(self, patience_s: float = 10.0) -> None:
        """Everything sent is still started and reported; then the nursery ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self._unsent and not self.over.is_set():
                    await asyncio.sleep(0.005)
                with contextlib.suppress(OSError):
                    self._orders.shutdown(socket.SHUT_WR)
                await self.over.wait()
        self._end()

    def _flush(self) -> None:
        self._loop.remove_writer(self._orders)
        if self.over.is_set():
            return
        try:
            while self._unsent:
                sent = self._orders.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._orders, self._flush)
            return
        except OSError:  # it is dead; reports end as well, and the keeper sends again what was not answered
            self._unsent.clear()
        self._flushing = False

    def _hear(self) -> None:
        for _ in range(_REPORTS_AT_ONCE):
            try:
                message, lifelines = _received(self._reports)
            except BlockingIOError:
                return
            except OSError:
                message, lifelines = b"", []
            if not message:
                self._end()
                self._ended()
                return
            self._heard(message.split(b"\0"), lifelines)
            if self.over.is_set():
                return

    def _end(self) -> None:
        if self.over.is_set():
            return
        self.over.set()
        self._unsent.clear()
        self._loop.remove_writer(self._orders)
        self._loop.remove_reader(self._reports)
        self._orders.close()
        self._reports.close()
        try:
            self.process.wait(timeout=1.0)  # its sockets closed because it ended: this takes no time
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _received(reports: socket.socket) -> tuple[bytes, list[int]]:
    """`socket.recv_fds` takes flags and forgets them (Python 3.11); without it, children would get the lifelines."""
    space = socket.CMSG_SPACE(wire.BATCH * array("i").itemsize)
    message, ancillary, _, _ = reports.recvmsg(wire.LARGEST_REPORT, space, socket.MSG_CMSG_CLOEXEC)
    lifelines = array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            lifelines.frombytes(data[: len(data) - len(data) % lifelines.itemsize])
    return message, list(lifelines)


def _begun(orders: socket.socket, reports: socket.socket, open_files: int) -> subprocess.Popen[bytes]:
    ends = (orders.fileno(), reports.fileno())
    words = [str(_SOURCE), *map(str, ends), str(open_files)]
    return subprocess.Popen(  # noqa: S603 - this interpreter, with words of our own
        [sys.executable, "-I", "-S", "-c", _BEGIN, *words],  # neither the user's settings nor site-packages
        pass_fds=ends,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",  # no file system stays busy because of it
        env=os.environ | {"LD_BIND_NOW": "1"},  # else every fork looks the same symbols up again
        start_new_session=True,
    )


def widen_open_files() -> int:
    """A lifeline for each replica: more than the usual 1024. What the limit was, for those we start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
