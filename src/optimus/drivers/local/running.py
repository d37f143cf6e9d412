"""The engine's process: the body's turns, the processes it keeps, and a line for those who serve people.

Why: one loop in which everything happens; nothing in it waits for a person, a disk full of logs or a slow reader.
Owns: when a turn is due, and telling listeners what has changed.
Must not: serve people itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from optimus.drivers.local import line, views
from optimus.drivers.local.body import Body
from optimus.drivers.local.clusters import DEFAULT_QUEUE, Cluster, differences, remembered
from optimus.drivers.local.desk import Desk
from optimus.drivers.local.journaling import Recalled
from optimus.drivers.local.keeping.limiting import limiting_here
from optimus.drivers.local.machine import what_is_here
from optimus.drivers.local.progress import Progress
from optimus.drivers.local.real_hands import RealHands
from optimus.drivers.local.retention import Keep, Retention
from optimus.drivers.local.store import Store, StoreError
from optimus.engine.engine import Engine
from optimus.lives import Ended
from optimus.model.nodes import Node
from optimus.model.reasons import Code, named, reason

LOG = logging.getLogger(__name__)
SOCKET = "engine.sock"
GATHER_S = 0.002
"""News that come together are taken together: for half as long as a turn takes, since more will come meanwhile."""
GATHER_MOST_S = 0.05
PROGRESS_S = 1.0
"""How often progress is read, which is how often jobs write it: who is asked to leave depends on who has just saved."""
CLEAR_S = 5.0
"""How often what is over is cleared away."""
SOON_S = 0.5
"""How often, while there is more than one look can clear away."""
TELL_S = 0.1
"""What changes all the time is told so often; what somebody asked for, at once."""
SELDOM = 9
"""Telling takes at most a tenth of the time: an array of ten thousand parts is not looked through at every start. The
same holds for reading progress."""
WELL_S = 3.0
"""So long nothing may be wrong before a trouble is over."""
READING = ("everything", "events", "document", "snapshot")
LISTENERS_BEHIND = 64 << 20
"""Bytes that a listener may be behind before it is cut off."""


class Running:
    def __init__(
        self,
        store: Store,
        engine: Engine,
        nodes: tuple[Node, ...],
        tell: Callable[[str], None] = lambda _text: None,
        keep: Keep = Keep(),  # noqa: B008 - frozen
    ) -> None:
        """`tell`: whoever sits in front of it. `keep`: how much of what is over."""
        self._tell_person = tell
        self._troubled = False
        """Somebody was told of a trouble that is not over."""
        self._well_at = 0.0
        self.store = store
        self.limiting = limiting_here(store.folder)
        self.hands = RealHands(store.folder / "runs", self._started, self._ended, self._not_saved, self.limiting)
        self.body = Body(store, engine, self.hands, nodes)
        self.body.limits = self.limiting.told()
        self.desk = Desk(self.body)
        self._progress = Progress(self.body)
        self._retention = Retention(self.body, keep)
        self._wake = asyncio.Event()
        self._listeners: set[asyncio.StreamWriter] = set()
        self._told: dict[str, Any] = {}
        self._tell_at = 0.0
        self._turn_s = 0.0

    async def open(self, cluster: Cluster, recalled: Recalled | None = None) -> list[str]:
        """Take over what is there; queues and pools that are not known yet are added. `recalled`: from the journal.
        Returns what people have to know of it: what is another cluster than before, and what that means."""
        await self.hands.keeper.start()
        self.body.machine = what_is_here() if cluster.virtual else ""
        unfinished = self.body.open()
        for pool in cluster.pools:
            if self.body.pools.get(pool.name) != pool:
                self.body.put_pool(pool)
        told = []
        for queue in cluster.queues:
            if queue.name not in self.body.queues:
                self.body.put_queue(queue)
            elif self.body.queues[queue.name] != queue and queue != DEFAULT_QUEUE:
                told.append(f"queue {queue.name} stays as the store has it: submit it to change it (`optimus submit`)")
        await self.hands.adopt(unfinished)
        self._progress.recall()
        self.body.stand_again(recalled)
        told = [*self._remember(cluster), *told]
        socket = self.store.folder / SOCKET
        socket.unlink(missing_ok=True)
        await asyncio.start_unix_server(self._serve, str(socket), limit=line.LONGEST)
        os.chmod(socket, 0o600)
        return told

    def _remember(self, cluster: Cluster) -> list[str]:
        """The cluster, for the next start. Returns what is another one than at the last."""
        body, known = self.body, self.store.cluster()
        told = differences(known.nodes, body.cluster) if known is not None else []
        told = [f"the cluster has changed: {'; '.join(told)}"] if told else []
        there = [body.nodes[name] for name in body.gone]
        for life in body.lives.values():
            if where := body.left_behind(life):
                left = reason(Code.LEFT_BEHIND, where=named(where))
                told.append(f"{life.workload.removeprefix('default/')} {left.text()}")
                body.happened(now_ms(), life.workload, str(left.code), left.text())
        new = remembered(structs.replace(cluster, nodes=body.cluster), known, there)
        if new != known:
            with contextlib.suppress(StoreError), self.store.turn():  # on a full disk, at another start
                self.store.put_cluster(new)
        return told

    async def run(self, stop: asyncio.Event) -> None:
        look_at = clear_at = 0.0
        while not stop.is_set():
            self._turn()
            now = time.monotonic()
            self._mention_trouble(now)
            if now >= self._tell_at:
                self._tell()
            if now >= clear_at:
                clear_at = now + (SOON_S if self._retention.look(now_ms()) else CLEAR_S)
                self.store.keep_room()
            if now >= look_at:
                self._progress.look()
                look_at = now + max(PROGRESS_S, (time.monotonic() - now) * SELDOM)
            due_s = max(self.body.next_turn_ms() - now_ms(), 0) / 1000
            untold_s = max(self._tell_at - now, 0.0) if self.body.changed else due_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), min(due_s, untold_s, look_at - now))
                await asyncio.sleep(max(GATHER_S, min(self._turn_s / 2, GATHER_MOST_S)))
            self._wake.clear()

    async def close(self) -> None:
        """Leaves everything running."""
        self._turn()
        await self.hands.keeper.close()
        with contextlib.suppress(OSError):
            (self.store.folder / SOCKET).unlink(missing_ok=True)
        self.store.close()

    def _mention_trouble(self, now: float) -> None:
        """Once when it begins, once when it is over: not every time that a disk is full to the brim and then not."""
        if self.body.trouble:
            self._well_at = now + WELL_S
            if not self._troubled:
                self._troubled = True
                self._tell_person(self.body.trouble)
        elif self._troubled and now >= self._well_at:
            self._troubled = False
            self._tell_person(f"{self.store.folder} can be written again: all is recorded, and new work starts again")

    def _turn(self) -> None:
        begun = time.monotonic()
        self.body.turn(now_ms())
        self._turn_s = time.monotonic() - begun
        while self.body.restless and not self.body.trouble:
            self.body.turn(now_ms())

    # -- what happens -------------------------------------------------------------------------------------------------

    def _started(self, start: str, at_ms: int, unlimited: str) -> None:
        self.body.saw_start(start, at_ms, unlimited)
        self._wake.set()

    def _ended(self, start: str, ended: Ended) -> None:
        self._progress.last_words(start)
        self.body.saw_end(start, ended)
        self._wake.set()

    def _not_saved(self, start: str, text: str) -> None:
        self.body.saw_trouble_saving(start, now_ms(), text)
        self._wake.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while isinstance(call := await line.received(reader), line.Call):
                writer.write(line.packed(self._answer(call)))
                if call.verb == "everything":
                    self._listeners.add(writer)
                self._wake.set()
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):  # they have gone, or we go: nothing that a person must read
            pass
        finally:
            self._listeners.discard(writer)
            writer.close()

    def _answer(self, call: line.Call) -> line.Answer:
        try:
            value = self.desk.answer(call.verb, call.arguments)
        except line.RefusedError as error:
            return line.Answer(call.number, None, str(error) or "refused", error.code)
        except Exception as error:  # one question that nobody thought of must not cost the others their line
            LOG.exception("%s failed", call.verb)
            return line.Answer(call.number, None, f"{call.verb} failed inside the scheduler: {error!r}", "internal")
        if call.verb not in READING:
            self._turn()  # what is promised is written down, and shown, before the answer is given
            self._tell()
            if self.body.unwritten:
                later = f"{self.body.trouble}; what was asked for is done as soon as it can be written down"
                return line.Answer(call.number, None, later, "unavailable")
        return line.Answer(call.number, value)

    def _tell(self) -> None:
        begun = time.monotonic()
        self._tell_changes()
        now = time.monotonic()
        self._tell_at = now + max(TELL_S, (now - begun) * SELDOM)

    def _tell_changes(self) -> None:
        changed, self.body.changed = self.body.changed, set()
        if not self._listeners:
            return
        queues = msgspec.to_builtins(views.queue_views(self.body))
        nodes = msgspec.to_builtins(views.node_views(self.body))
        pools = msgspec.to_builtins([views.pool_view(pool) for pool in self.body.pools.values()])
        seen = {"queues": queues, "nodes": nodes, "pools": pools, "trouble": self.body.trouble}
        if not changed and seen == self._told:
            return
        jobs = {
            job: msgspec.to_builtins(views.job_view(self.body, job)) if job in self.body.jobs else None
            for job in sorted(changed)
        }
        news = line.News(
            self.body.version,
            jobs,
            queues if queues != self._told.get("queues") else None,
            nodes if nodes != self._told.get("nodes") else None,
            pools if pools != self._told.get("pools") else None,
            self.body.trouble,
        )
        self._told = seen
        frame = line.packed(news)
        for writer in list(self._listeners):
            if writer.transport.get_write_buffer_size() > LISTENERS_BEHIND:
                self._listeners.discard(writer)
                writer.transport.abort()
            else:
                writer.write(frame)


def address_file(store: Path) -> Path:
    return store / "address"


def now_ms() -> int:
    return time.time_ns() // 1_000_000
