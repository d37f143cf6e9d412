"""A server that misbehaves on purpose, for what a real one cannot be made to do.

It plays a script: one answer for each request, in order; the last one again and again. It notes what it was asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Self

import msgspec
from aiohttp import web

from optimus.kube import Cluster
from optimus.kube.credentials import Fixed, Identity


class Answer(msgspec.Struct, frozen=True):
    """`lines` are sent one by one; then it ends, breaks off, or says no more."""

    status: int = 200
    lines: tuple[bytes, ...] = ()
    headers: dict[str, str] = {}
    then: str = "end"


class RudeServer:
    def __init__(self, script: Sequence[Answer]) -> None:
        self._script = list(script)
        self.asked: list[dict[str, str]] = []
        self._done = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await self._site.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._done.set()
        await self._runner.cleanup()

    @property
    def cluster(self) -> Cluster:
        port = self._runner.addresses[0][1]
        return Cluster(server=f"http://127.0.0.1:{port}", credentials=Fixed(Identity()))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        played = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        response = web.StreamResponse(status=played.status, headers=played.headers)
        await response.prepare(request)
        for line in played.lines:
            await response.write(line)
        if played.then == "break":
            assert request.transport is not None
            request.transport.abort()
        elif played.then == "stay":
            await self._done.wait()
        return response


def json_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def thing(name: str, version: int, uid: str = "", **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "data": data}


def event(kind: str, content: dict[str, Any]) -> bytes:
    return json_line({"type": kind, "object": content})


def bookmark(version: int, *, ends_the_beginning: bool = False) -> bytes:
    notes = {"k8s.io/initial-events-end": "true"} if ends_the_beginning else {}
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": notes}})


def status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": f"{reason}, for reasons"}


def page(version: int, *things: dict[str, Any] | None, more: str = "", null: bool = False) -> bytes:
    meta = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return json_line({"metadata": meta, "items": None if null else list(things)})
