"""A crowd that watches a scheduler, cheap enough to stand beside it: raw sockets in one loop, in a process of its own.

    python -m benchmarks.crowd ADDRESS READERS STUCK SLOW

Readers read everything and note which jobs they have seen end. Stuck ones ask and never read. Slow ones read one byte
a second. It says `there` once the first event has reached every reader, and then answers each line of its input, the
name of a job, with how many readers have seen it end, how many streams are still open, and how many events came.

It stands in for people elsewhere, so it takes only CPU that nobody else wants.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from urllib.parse import urlsplit

SLOW_S = 1.0
AT_ONCE = 100
SMALL = 4096
"""Of the buffers of those who do not read: the kernel must not read for them."""


class Reader(asyncio.Protocol):
    def __init__(self) -> None:
        self.events = 0
        self.ended: set[str] = set()
        self.open = True
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            self.events += b"event: " in event
            if b'"final":true' in event and b"event: change" in event:
                self._look(event)

    def _look(self, event: bytes) -> None:
        told = json.loads(event.partition(b"data: ")[2])
        self.ended |= {name for name, view in told["jobs"].items() if view is not None and view["final"]}

    def connection_lost(self, _exc: Exception | None) -> None:
        self.open = False


async def asked(host: str, port: int, *, small: bool) -> socket.socket:
    line = socket.socket()
    line.setblocking(False)
    if small:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, (host, port))
    # 1.0: no chunks to be taken apart
    await loop.sock_sendall(line, f"GET /v1/watch HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
    return line


async def slowly(line: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(line, 1):
        await asyncio.sleep(SLOW_S)


async def stand(address: str, readers: int, stuck: int, slow: int) -> None:
    parts, loop = urlsplit(address), asyncio.get_running_loop()
    host, port = str(parts.hostname), int(parts.port or 80)
    those: list[Reader] = []
    while len(those) < readers:
        lines = [asked(host, port, small=False) for _ in range(min(AT_ONCE, readers - len(those)))]
        those += [(await loop.create_connection(Reader, sock=line))[1] for line in await asyncio.gather(*lines)]
    silent = [await asked(host, port, small=True) for _ in range(stuck)]
    dripping = [asyncio.create_task(slowly(await asked(host, port, small=True))) for _ in range(slow)]
    while not all(reader.events for reader in those):
        await asyncio.sleep(0.05)
    print("there", flush=True)
    while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
        seen = sum(name in reader.ended for reader in those)
        still = sum(reader.open for reader in those)
        print(json.dumps({"seen": seen, "open": still, "events": sum(one.events for one in those)}), flush=True)
    for task in dripping:
        task.cancel()
    for quiet in silent:
        quiet.close()


if __name__ == "__main__":
    os.nice(19)
    asyncio.run(stand(sys.argv[1], *map(int, sys.argv[2:])))
