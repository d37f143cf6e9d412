"""Output that is followed: one open answer for each container, gathered by a thread.

Why: a line is shown when it is written, and a log of gigabytes is not fetched again to see whether it has grown.
Owns: the thread, how far each container has been read, and beginning again where an answer broke off.
Must not: lose or repeat a line: lines carry the time at which they were written, and the same time is counted.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future

from msgspec import Struct

from optimus.drivers.kube.desk.refusing import in_words
from optimus.drivers.kube.objects import Pod
from optimus.kube import Client, Cluster
from optimus.kube.errors import ApiError, Forbidden, KubeError, NotFound, Unauthorized
from optimus.kube.resources import PODS

QUIET_S = 3_600.0
"""Work may be silent for long; then the answer is asked for anew."""
AGAIN_S = 1.0
"""After one that broke off, or a container that has not started."""
NOT_STARTED = 400
"""What a server says of a container that does not run yet."""
KEPT = 10_000
"""Lines that nobody has taken yet; then the servers wait."""


class Written(Struct, frozen=True):
    uid: str
    number: int
    text: str


class Read:
    """How far one container has been read."""

    def __init__(self) -> None:
        self.last = ""
        """Time of the last line."""
        self.number = 0
        self._same = 0
        """Lines with that time."""
        self._met = 0

    def begin(self) -> None:
        """From the start or from `last`: what has been told comes again first."""
        self._met = 0

    def new(self, line: str) -> str | None:
        """Its words, if it has not been told yet."""
        at, _, words = line.partition(" ")
        if not at or at < self.last:
            return None
        if at == self.last:
            self._met += 1
            if self._met <= self._same:
                return None
            self._same += 1
        else:
            self.last, self._same, self._met = at, 1, 1
        self.number += 1
        return words


class Tails:
    def __init__(self, cluster: Cluster, agent: str) -> None:
        self._cluster, self._agent = cluster, agent
        self._came: queue.Queue[Written | Exception] = queue.Queue(KEPT)
        self._read: dict[str, Read] = {}
        self._open: dict[str, Future[None]] = {}
        self._settled: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._client: Client
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True, name="tails")
        self._thread.start()
        ready.wait()

    def follow(self, pod: Pod, tail: int | None) -> None:
        """From the beginning, or its last lines. Called again and again: a container that was started anew goes on
        where the last one ended."""
        uid = pod.metadata.uid
        if uid in self._settled or (uid in self._open and not self._open[uid].done()):
            return
        if pod.over:  # what is asked for now is all there will be
            self._settled.add(uid)
        work = self._follow(pod, self._read.setdefault(uid, Read()), tail)
        self._open[uid] = asyncio.run_coroutine_threadsafe(work, self._loop)

    def goes_on(self) -> bool:
        """Whether anything may still come."""
        return any(not one.done() for one in self._open.values()) or not self._came.empty()

    def take(self, patience_s: float) -> Iterator[Written]:
        """What has come; waits so long for the first."""
        try:
            while True:
                found = self._came.get(timeout=patience_s)
                if isinstance(found, Exception):
                    raise found
                yield found
                patience_s = 0.0
        except queue.Empty:
            return

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        while self._thread.is_alive():
            try:
                self._came.get(timeout=0.05)  # whoever waits to put something goes
            except queue.Empty:
                self._thread.join(0.05)

    # -- in the thread ------------------------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        async def serve() -> None:
            async with Client(self._cluster, user_agent=self._agent) as self._client:
                ready.set()
                await self._over.wait()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # whoever still reads then is cancelled
            runner.run(serve())

    async def _follow(self, pod: Pod, read: Read, tail: int | None) -> None:
        while True:
            try:
                await self._once(pod, read, None if read.last else tail)
            except NotFound:  # it went, with what it had to say
                return
            except (Forbidden, Unauthorized) as error:
                await self._put(in_words(error))
                return
            except ApiError as error:
                if error.status != NOT_STARTED:
                    await self._put(in_words(silent(pod, error)))
                    return
            except KubeError:
                pass  # it broke off: what is missing is asked for
            else:
                return
            await asyncio.sleep(AGAIN_S)

    async def _once(self, pod: Pod, read: Read, tail: int | None) -> None:
        """Until the container ends."""
        path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
        read.begin()
        query = {**query_of(pod, tail), "follow": "true", **({"sinceTime": read.last} if read.last else {})}
        async with self._client.stream(path, query, quiet_s=QUIET_S) as pieces:
            async for line in _lines(pieces):
                if (words := read.new(line)) is not None:
                    await self._put(Written(pod.metadata.uid, read.number, words))

    async def _put(self, found: Written | Exception) -> None:
        while self._came.full():
            await asyncio.sleep(0.01)
        self._came.put_nowait(found)


def silent(pod: Pod, error: ApiError) -> ApiError:
    where = f"{pod.metadata.name} on node {pod.spec.node_name}"
    return type(error)(error.status, error.reason, f"{where} does not tell its output: {error.message}")


def query_of(pod: Pod, tail: int | None) -> dict[str, str]:
    return {
        "timestamps": "true",
        **({"tailLines": str(tail)} if tail is not None else {}),
        **({"container": pod.spec.containers[0].name} if len(pod.spec.containers) > 1 else {}),
    }


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The last one also without an end: a program may stop in the middle of a line."""
    begun = b""
    async for piece in pieces:
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if begun:
        yield begun.decode(errors="replace")
