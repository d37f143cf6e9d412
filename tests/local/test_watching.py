"""Those who watch: many, slow and stuck ones. Each ends up with the same picture, and none of them costs the others."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from optimus.drivers.local.line import News
from optimus.drivers.local.web import server, watching
from optimus.drivers.local.web.mirror import Mirror
from optimus.drivers.local.web.watching import BEHIND, STILL_THERE, Audience
from tests.local.machines import PATIENCE_S, Up

CROWD = 50


def told(piece: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(piece.partition(b"data: ")[2])
    return found


def kind(piece: bytes) -> str:
    return piece.partition(b"\n")[0].decode().removeprefix("event: ")


async def soon(pieces: AsyncIterator[bytes]) -> bytes:
    return await asyncio.wait_for(anext(pieces), 20)


def begun(jobs: int = 2) -> Audience:
    audience = Audience()
    shown = {f"a/{number}": {"phase": "Running"} for number in range(jobs)}
    audience.begin({"jobs": shown, "queues": [], "nodes": [], "pools": [], "version": 1, "trouble": ""})
    return audience


def test_whoever_takes_long_is_told_once_what_is_different_by_then() -> None:
    async def story() -> None:
        audience = begun()
        async with aclosing(audience.watch()) as pieces:
            assert set(told(await soon(pieces))["jobs"]) == {"a/0", "a/1"}
            for version in range(2, 2000):
                audience.take(News(version, {"a/1": {"phase": f"number {version}"}}, nodes=[version]))
            audience.take(News(2000, {"a/0": None, "b/0": {"phase": "Pending"}}, trouble="the disk is full"))
            change = told(await soon(pieces))
        assert change["jobs"] == {"a/0": None, "a/1": {"phase": "number 1999"}, "b/0": {"phase": "Pending"}}
        assert (change["version"], change["trouble"]) == (2000, "the disk is full")
        assert change["nodes"] == [1999] and change["queues"] is None
        assert not audience.watchers

    asyncio.run(story())


def test_those_who_have_seen_as_much_are_told_the_same_bytes() -> None:
    async def story() -> None:
        audience = begun()
        crowd = [audience.watch() for _ in range(CROWD)]
        first = [await soon(pieces) for pieces in crowd]
        assert all(piece is first[0] for piece in first)
        waiting = [asyncio.create_task(soon(pieces)) for pieces in crowd]
        await asyncio.sleep(0)
        audience.take(News(2, {"a/0": {"phase": "Succeeded"}}))
        then = await asyncio.gather(*waiting)
        assert kind(then[0]) == "change" and all(piece is then[0] for piece in then)
        for pieces in crowd:
            await pieces.aclose()

    asyncio.run(story())


def test_who_watches_one_job_hears_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "HEARTBEAT_S", 0.2)

    async def story() -> None:
        audience = begun()
        async with aclosing(audience.watch("a/0")) as pieces:
            assert told(await soon(pieces)) == {"version": 1, "jobs": {"a/0": {"phase": "Running"}}, "trouble": ""}
            audience.take(News(2, {"a/1": {"phase": "Succeeded"}}, nodes=[1]))
            assert await soon(pieces) == STILL_THERE
            audience.take(News(3, {"a/0": {"phase": "Succeeded"}, "a/1": None}))
            while (piece := await soon(pieces)) == STILL_THERE:
                pass
            assert told(piece)["jobs"] == {"a/0": {"phase": "Succeeded"}}

    asyncio.run(story())


def test_what_is_gone_is_not_remembered_for_ever_and_who_slept_through_it_starts_afresh() -> None:
    async def story() -> None:
        audience = begun(jobs=1)
        async with aclosing(audience.watch()) as pieces:
            await soon(pieces)
            for number in range(5 * watching.GONE_KEPT):
                audience.take(News(number, {f"b/{number}": {"phase": "Pending"}}))
                audience.take(News(number, {f"b/{number}": None}))
            assert len(audience._changed) <= 2 * (watching.GONE_KEPT + 1)
            afresh = await soon(pieces)
            assert kind(afresh) == "everything" and set(told(afresh)["jobs"]) == {"a/0"}

    asyncio.run(story())


def test_every_watcher_is_sent_away_when_the_engine_goes_away() -> None:
    async def story() -> None:
        audience = begun()
        crowd = [audience.watch(), audience.watch("a/0"), audience.watch()]
        for pieces in crowd:
            await soon(pieces)
        last = [asyncio.create_task(soon(pieces)) for pieces in crowd[:2]]
        await asyncio.sleep(0)
        audience.lose()
        audience.begin({"jobs": {}, "version": 1, "trouble": ""})  # it is back: those of before come again
        assert await asyncio.gather(*last, soon(crowd[2])) == [BEHIND] * 3
        assert [piece for pieces in crowd async for piece in pieces] == []
        assert not audience.watchers
        audience.lose()
        async with aclosing(audience.watch()) as late:
            assert await soon(late) == BEHIND

    asyncio.run(story())


def test_one_who_takes_nothing_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STUCK_S", 0.2)

    async def story() -> None:
        mirror = Mirror(tmp_path / "nobody")
        mirror.audience.begin({"jobs": {"a/b": {"command": "x" * (64 << 20)}}, "version": 1, "trouble": ""})
        mirror.connected.set()
        runner = web.AppRunner(server.application(mirror, tmp_path))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(f"GET /v1/watch HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert b" 200 " in await reader.readline()
        assert mirror.audience.watchers == 1
        for _ in range(1000):
            if not mirror.audience.watchers:
                break
            await asyncio.sleep(0.02)
        assert not mirror.audience.watchers
        writer.close()
        await runner.cleanup()

    asyncio.run(story())


# -- on a real machine -------------------------------------------------------------------------------------------------


class Watcher:
    """A raw stream, read or not."""

    def __init__(self, up: Up) -> None:
        host, _, port = up.api.address.removeprefix("http://").rpartition(":")
        self.line = socket.socket()
        self.line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.line.connect((host, int(port)))
        self.line.settimeout(PATIENCE_S)
        self.line.sendall(f"GET /v1/watch HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        self._rest = b""

    def events(self) -> Iterator[bytes]:
        while data := self.line.recv(1 << 16):
            *whole, self._rest = (self._rest + data).split(b"\n\n")
            yield from (event for event in whole if b"event: change" in event)

    def saw_end(self, job: str) -> bool:
        for event in self.events():
            view = told(event)["jobs"].get(job)
            if view is not None and view["final"]:
                return True
        return False


def web_of(up: Up) -> int:
    assert up.process is not None
    children = Path(f"/proc/{up.process.pid}/task/{up.process.pid}/children").read_text().split()
    return next(int(pid) for pid in children if b"web.process" in Path(f"/proc/{pid}/cmdline").read_bytes())


def rss_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def test_fifty_see_the_end_beside_one_who_never_reads(tmp_path: Path) -> None:
    up = Up(tmp_path)
    try:
        stuck = Watcher(up)
        crowd = [Watcher(up) for _ in range(CROWD)]
        long = "x" * 20_000  # each view of this job is that long, so that what is not read would pile up
        up.cli("run", "-d", "--name", "loud", "--array", "60", "--", "/bin/true", long)
        up.cli("run", "-d", "--name", "last", "--gpus", "1", "--", "/bin/true")
        assert all(watcher.saw_end("default/last") for watcher in crowd)
        web = web_of(up)
        before = rss_kib(web)
        for number in range(30):
            up.api.post("/v1/submit", _job(f"more-{number}", long))
        up.reaches("more-29", "Succeeded")
        assert all(watcher.saw_end("default/more-29") for watcher in crowd)
        # 30 jobs, several views of each, for the stuck one: it is told at most what there is, once
        assert rss_kib(web) - before < 30 << 10
        for watcher in crowd:
            watcher.line.close()
        assert up.cli("run", "--name", "after", "--", "echo", "served").stdout == "served\n"
        stuck.line.close()
    finally:
        up.end()


def _job(name: str, long: str) -> bytes:
    return f"kind: UnifiedJob\nmetadata: {{name: {name}}}\nspec: {{command: [/bin/true, {long}], gpu: 1}}\n".encode()
