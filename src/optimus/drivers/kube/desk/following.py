"""What changes, as it changes: by watches where everything may be seen, else by looking again.

Why: `get -w`, `run` and `top` show a cluster as it goes on; the reflectors of the controller tell what is new.
Owns: a thread with the watches, how often the brain is asked, and what of the views is different.
Must not: ask the server again and again where it can be told.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from optimus.client.connection import JobError
from optimus.drivers.kube.desk import views
from optimus.drivers.kube.desk.deciding import chosen
from optimus.drivers.kube.desk.refusing import in_words
from optimus.drivers.kube.desk.sight import Sight
from optimus.drivers.kube.grouping import Kinds
from optimus.drivers.kube.queues import watch_queues
from optimus.drivers.kube.watching import Watching
from optimus.kube import Client, Cluster, KubeError

PAUSE_S = 0.25
"""Changes that come close together are told together."""
TICK_S = 10.0
"""Reasons may change with time alone."""
POLL_S = 2.0
View = dict[str, Any]


def id_of(view: View) -> str:
    return f"{view['namespace']}/{view['name']}"


def asked_again(shown: Callable[[], dict[str, View]]) -> Iterator[View]:
    """Of one namespace."""
    before: View = {}
    while True:
        now: View = {"jobs": shown()}
        if told := _difference(before, now):
            yield told
        before = now
        time.sleep(POLL_S)


def watched(cluster: Cluster, kinds: Kinds, scheduler: str) -> Generator[View, None, None]:
    """Everything first, then what is different. Ends when nobody reads on."""
    came: queue.Queue[View | JobError] = queue.Queue(1)
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(cluster, kinds, scheduler, came, over), daemon=True)
    thread.start()
    before: View = {}
    try:
        while True:
            now = came.get()
            if isinstance(now, JobError):
                raise now
            if told := _difference(before, now):
                yield told
            before = now
    finally:
        over.set()
        with contextlib.suppress(queue.Empty):
            came.get_nowait()
        thread.join(5)


def _watch(
    cluster: Cluster, kinds: Kinds, scheduler: str, came: queue.Queue[View | JobError], over: threading.Event
) -> None:
    async def run() -> None:
        wake = asyncio.Event()
        sight = Sight(kinds, scheduler)
        async with Client(cluster, user_agent="optimus-cli") as client:
            watching = Watching(client, sight.mirror, kinds, wake.set)
            try:
                await watching.start(as_user=True)
                set_up = await watch_queues(watching, sight.mirror)
                watching.read_owners()
                facts = sight.mirror.everything()
                while not over.is_set():
                    statuses = (one.status for one in set_up.queues.values())
                    sight.decide_as(chosen(one for one in statuses if isinstance(one, dict)))
                    sight.take(facts, time.time_ns() // 1_000_000)
                    await asyncio.to_thread(_put, came, everything(sight), over)
                    facts = await _next(sight, watching, wake, over)
            finally:
                await watching.close()

    try:
        asyncio.run(run())
    except KubeError as error:
        _put(came, in_words(error), over)


async def _next(sight: Sight, watching: Watching, wake: asyncio.Event, over: threading.Event) -> list[Any]:
    until = time.monotonic() + TICK_S
    await asyncio.sleep(PAUSE_S)
    while time.monotonic() < until and not over.is_set():
        wake.clear()
        if facts := sight.mirror.news():
            return facts
        watching.read_owners()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await wake.wait()
    return []


def _put(came: queue.Queue[View | JobError], told: View | JobError, over: threading.Event) -> None:
    while not over.is_set():
        with contextlib.suppress(queue.Full):
            came.put(told, timeout=0.5)
            return


def everything(sight: Sight) -> View:
    jobs = views.job_views(sight)
    return {
        "jobs": jobs,
        "queues": views.queue_views(sight, jobs),
        "nodes": views.node_views(sight),
        "pools": views.pool_views(sight),
        "trouble": "",
    }


def _difference(before: View, now: View) -> View:
    """As `GET /v1/watch` tells it; empty if nothing is different."""
    if not before:
        return now
    old, new = before["jobs"], now["jobs"]
    jobs = {job: view for job, view in new.items() if old.get(job) != view}
    jobs |= {job: None for job in old if job not in new}
    rest: View = {}
    for kind in ("queues", "nodes", "pools"):
        if kind in now:
            rest[kind] = now[kind] if now[kind] != before.get(kind) else None
    return {"jobs": jobs, **rest, "trouble": now.get("trouble", "")} if jobs or any(rest.values()) else {}
