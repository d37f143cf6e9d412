"""Between a client and a real server: passes bytes on, until it is told to cut, to freeze or to refuse."""

from __future__ import annotations

import asyncio
from typing import Self
from urllib.parse import urlsplit

import msgspec

from optimus.kube import Cluster


class CuttingProxy:
    def __init__(self, cluster: Cluster) -> None:
        parts = urlsplit(cluster.server)
        self._cluster = cluster
        self._behind = (parts.hostname or "", parts.port or 443)
        self._open: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._there, self._back = asyncio.Event(), asyncio.Event()
        self.go_on()
        self.refuses = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.refuses = True
        await asyncio.sleep(0.01)  # those that were accepted begin, and are refused
        self.go_on()
        while self._passing:
            self.cut()
            await asyncio.wait(self._passing, timeout=0.05)
        await asyncio.sleep(0)  # what was cut is closed in the next turn

    @property
    def cluster(self) -> Cluster:
        port = self._server.sockets[0].getsockname()[1]
        return msgspec.structs.replace(self._cluster, server=f"https://127.0.0.1:{port}")

    def cut(self) -> None:
        """All connections, in the middle of whatever is on its way."""
        for writer in list(self._open):
            writer.transport.abort()
        self._open.clear()

    def freeze(self) -> None:
        """Nothing passes in either direction, and nobody is told."""
        self._there.clear()
        self._back.clear()

    def freeze_answers(self) -> None:
        """What is asked arrives; what is answered does not."""
        self._back.clear()

    def go_on(self) -> None:
        self._there.set()
        self._back.set()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)
        there_writer: asyncio.StreamWriter | None = None
        try:
            if self.refuses:
                return
            there_reader, there_writer = await asyncio.open_connection(*self._behind)
            self._open |= {writer, there_writer}
            await asyncio.gather(
                self._pump(reader, there_writer, self._there), self._pump(there_reader, writer, self._back)
            )
        except OSError:
            pass
        finally:
            for one in (writer, there_writer):
                if one is not None:
                    self._open.discard(one)
                    one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event) -> None:
        try:
            while piece := await reader.read(1 << 16):
                await flows.wait()
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()
