"""The routes: what can be asked over HTTP, and who may ask.

    GET    /v1/jobs                       POST /v1/submit            YAML or JSON: jobs, queues, pools
    GET    /v1/jobs/NS/NAME               DELETE /v1/jobs/NS/NAME    cancel
    GET    /v1/jobs/NS/NAME/logs          POST /v1/jobs/NS/NAME/suspend | resume | scale {"replicas": 4}
    GET    /v1/jobs/NS/NAME/events        GET  /v1/jobs/NS/NAME/document
    GET    /v1/queues | nodes | pools     GET  /v1/watch             changes as server-sent events
    GET    /v1/info  /healthz             GET  /v1/state             a copy of the engine, for explanations (msgpack)

Why: one API for the command line, the page, Python and scripts.
Owns: addresses, status codes, tokens. Errors are {"error": …, "code": …}.
Must not: hold anything but streams.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from optimus import __version__
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.web.logs import lines
from optimus.drivers.local.web.mirror import Mirror

STATUS = {"invalid": 422, "conflict": 409, "missing": 404, "unavailable": 503}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
MOST_BYTES = 16 << 20
HEARTBEAT_S = 15.0
MIRROR: web.AppKey[Mirror] = web.AppKey("mirror", Mirror)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(mirror: Mirror, store: Path, *, token: str = "") -> web.Application:
    app = web.Application(middlewares=[_errors, _guard(token)], client_max_size=MOST_BYTES)
    app[MIRROR] = mirror
    jobs = "/v1/jobs/{namespace}/{name}"
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/v1/info", _info),
            web.get("/v1/jobs", _jobs),
            web.get("/v1/queues", _list("queues")),
            web.get("/v1/nodes", _list("nodes")),
            web.get("/v1/pools", _list("pools")),
            web.get("/v1/watch", _watch),
            web.get("/v1/state", _state),
            web.post("/v1/submit", _submit),
            web.get(jobs, _job),
            web.delete(jobs, _verb("cancel")),
            web.post(f"{jobs}/suspend", _verb("suspend")),
            web.post(f"{jobs}/resume", _verb("resume")),
            web.post(f"{jobs}/scale", _scale),
            web.get(f"{jobs}/events", _verb("events")),
            web.get(f"{jobs}/document", _verb("document")),
            web.get(f"{jobs}/logs", _logs(store / "runs")),
        ]
    )

    async def connect(_app: web.Application) -> Any:
        task = asyncio.create_task(mirror.run())
        yield
        task.cancel()

    app.cleanup_ctx.append(connect)
    return app


def told(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RefusedError as error:
        return told({"error": str(error), "code": error.code}, STATUS.get(error.code, 500))
    except web.HTTPRequestEntityTooLarge:
        return told({"error": f"more than {MOST_BYTES >> 20} MiB at once: submit it in parts", "code": "invalid"}, 413)
    except web.HTTPException as error:
        return told({"error": f"{request.method} {request.path}: {error.reason}", "code": "missing"}, error.status)


def _guard(token: str) -> Any:
    """On loopback everybody of this machine may come, but no page of a stranger that a browser here has open. Elsewhere
    a token is needed."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), token.encode()):
                return told({"error": "a token is needed: set OPTIMUS_TOKEN", "code": "forbidden"}, 401)
        else:
            host = (
                request.host.rsplit(":", 1)[0] if not request.host.startswith("[") else request.host.split("]")[0] + "]"
            )
            if host not in LOOPBACK or request.headers.get("Origin", "").rstrip("/") not in (
                "",
                f"http://{request.host}",
            ):
                return told(
                    {"error": f"this API serves this machine only, not {request.host}", "code": "forbidden"}, 403
                )
        return await handler(request)

    return guard


async def _healthz(request: web.Request) -> web.Response:
    mirror = request.app[MIRROR]
    trouble = mirror.shown.get("trouble", "")
    if not mirror.connected.is_set():
        return told({"ok": False, "trouble": "the scheduler is not there"}, 503)
    return told({"ok": not trouble, "trouble": trouble}, 503 if trouble else 200)


async def _info(request: web.Request) -> web.Response:
    shown = request.app[MIRROR].shown
    counts: dict[str, int] = {}
    for job in shown.get("jobs", {}).values():
        counts[job["phase"]] = counts.get(job["phase"], 0) + 1
    return told(
        {"version": __version__, "turn": shown.get("version"), "jobs": counts, "trouble": shown.get("trouble", "")}
    )


async def _shown(request: web.Request) -> dict[str, Any]:
    mirror = request.app[MIRROR]
    try:
        await asyncio.wait_for(mirror.connected.wait(), 10)
    except TimeoutError:
        raise RefusedError("unavailable", "the scheduler is not there (it may be starting): try again") from None
    return mirror.shown


async def _jobs(request: web.Request) -> web.Response:
    jobs = (await _shown(request)).get("jobs", {}).values()
    wanted = {
        name: value for name, value in request.query.items() if name in ("namespace", "queue", "phase", "jobClass")
    }
    found = [job for job in jobs if all(str(job.get(name)) == value for name, value in wanted.items())]
    return told(sorted(found, key=lambda job: (job["submittedMs"], job["namespace"], job["name"])))


def _list(name: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return told((await _shown(request)).get(name, []))

    return handler


def _name(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


async def _job(request: web.Request) -> web.Response:
    job = (await _shown(request)).get("jobs", {}).get(_name(request))
    if job is None:
        raise RefusedError("missing", f"there is no job {_name(request)}")
    return told(job)


async def _submit(request: web.Request) -> web.Response:
    text = (await request.read()).decode(errors="replace")
    query = request.query
    where, source = query.get("where", ""), query.get("source", "submitted")
    return told(await request.app[MIRROR].call("submit", text=text, where=where, source=source), 201)


async def _state(request: web.Request) -> web.Response:
    copied = await request.app[MIRROR].snapshot()
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=copied, content_type="application/vnd.msgpack", headers=headers)


def _verb(verb: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return told(await request.app[MIRROR].call(verb, job=_name(request)))

    return handler


async def _scale(request: web.Request) -> web.Response:
    try:
        replicas = msgspec.json.decode(await request.read(), type=dict[str, int])["replicas"]
    except (msgspec.MsgspecError, KeyError) as error:
        raise RefusedError("invalid", 'say how many: {"replicas": 4}') from error
    return told(await request.app[MIRROR].call("scale", job=_name(request), replicas=replicas))


async def _watch(request: web.Request) -> web.StreamResponse:
    """First everything, then every change. One that does not keep up is ended, and may come again."""
    mirror = request.app[MIRROR]
    shown = await _shown(request)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    queue = mirror.watch()
    try:
        await response.write(b"event: everything\ndata: " + msgspec.json.encode(shown) + b"\n\n")
        while True:
            try:
                told_now = await asyncio.wait_for(queue.get(), HEARTBEAT_S)
            except TimeoutError:
                told_now = b": still there\n\n"
            if told_now is None:
                await response.write(b"event: behind\ndata: {}\n\n")
                return response
            await response.write(told_now)
    except ConnectionError:
        return response
    finally:
        mirror.watchers.discard(queue)


def _logs(runs: Path) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        job = (await _shown(request)).get("jobs", {}).get(_name(request))
        if job is None:
            raise RefusedError("missing", f"there is no job {_name(request)}")
        query, mirror = request.query, request.app[MIRROR]
        if "tail" in query and not query["tail"].isdigit():
            raise RefusedError("invalid", f"tail is a number of lines, not {query['tail']}")
        tail = int(query["tail"]) if "tail" in query else None

        def over() -> bool:
            now = mirror.shown.get("jobs", {}).get(_name(request))
            return now is None or bool(now["final"]) or now["uid"] != job["uid"]

        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        await response.prepare(request)
        found = lines(
            runs,
            job["uid"],
            replica=query.get("replica", ""),
            follow=query.get("follow", "") in ("1", "true"),
            tail=tail,
            over=over,
        )
        async for one in found:
            await response.write(msgspec.json.encode(one) + b"\n")
        return response

    return handler
