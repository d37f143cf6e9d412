"""The routes: what can be asked over HTTP, and who may ask.

    GET    /v1/jobs                       POST /v1/submit            YAML or JSON: jobs, queues, pools
    GET    /v1/jobs/NS/NAME               DELETE /v1/jobs/NS/NAME    cancel
    GET    /v1/jobs/NS/NAME/logs          POST /v1/jobs/NS/NAME/suspend | resume | scale {"replicas": 4}
    GET    /v1/jobs/NS/NAME/events        GET  /v1/jobs/NS/NAME/document
    GET    /v1/jobs/NS/NAME/explain       why it waits, what would start it, and when it starts
    GET    /v1/queues | nodes | pools     DELETE /v1/queues/NAME | pools/NAME
    GET    /v1/watch                      changes as server-sent events
    GET    /v1/info  /healthz             GET  /v1/state             a copy of the engine, for explanations (msgpack)
    GET    /v1/past                       who came lately, by the journal, for forecasts (msgpack)
    GET    /openapi.json                  all of this for programs

Why: one API for the command line, the page, Python and scripts.
Owns: addresses, status codes, tokens. Errors are {"error": …, "code": …}.
Must not: hold anything but streams.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

from optimus import __version__
from optimus.client.connection import MISDIRECTED, STORE_HEADER
from optimus.drivers.local.journaling import FOLDER
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.web import openapi
from optimus.drivers.local.web.explanations import MOST_SAMPLES, MOST_SECONDS, Explanations, Wish
from optimus.drivers.local.web.logs import Chosen, in_order, lines, split_name, starts_of
from optimus.drivers.local.web.mirror import Mirror
from optimus.drivers.local.web.remembering import Remembered
from optimus.lives import JobPhase

LOG = logging.getLogger(__name__)
CLEARED = "too much was written since (`--keep-runs` and `--keep-parts` of `optimus up`)"
STATUS = {"invalid": 422, "conflict": 409, "missing": 404, "unavailable": 503}
PHASES = tuple(phase.value for phase in JobPhase)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
MOST_BYTES = 16 << 20
PIECE = 1 << 16
STUCK_S = 30.0
"""A watcher that has not taken one piece in this time is sent away."""
MOST_LINES = 1_000_000
Number = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=1 << 31)]
FLAGS = {"1": True, "true": True, "0": False, "false": False, "": False}
ENCODER = msgspec.json.Encoder()
MIRROR: web.AppKey[Mirror] = web.AppKey("mirror", Mirror)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(mirror: Mirror, store: Path, *, token: str = "", explainer: Sequence[str] = ()) -> web.Application:
    """`explainer`: the command that explains (`explanations`)."""
    remembered = Remembered(store / FOLDER)
    explanations = Explanations(explainer, mirror.snapshot, remembered.past)
    app = web.Application(middlewares=[_errors, _same_store(store), _guard(token)], client_max_size=MOST_BYTES)
    app[MIRROR] = mirror
    jobs = "/v1/jobs/{namespace}/{name}"
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/openapi.json", _openapi),
            web.get("/v1/info", _info),
            web.get("/v1/jobs", _jobs),
            web.get("/v1/queues", _list("queues")),
            web.delete("/v1/queues/{name}", _delete("delete_queue")),
            web.get("/v1/nodes", _list("nodes")),
            web.get("/v1/pools", _list("pools")),
            web.delete("/v1/pools/{name}", _delete("delete_pool")),
            web.get("/v1/watch", _watch),
            web.get("/v1/state", _state),
            web.get("/v1/past", _past(remembered)),
            web.post("/v1/submit", _submit),
            web.get(jobs, _job),
            web.delete(jobs, _verb("cancel")),
            web.post(f"{jobs}/suspend", _verb("suspend")),
            web.post(f"{jobs}/resume", _verb("resume")),
            web.post(f"{jobs}/scale", _scale),
            web.get(f"{jobs}/events", _verb("events")),
            web.get(f"{jobs}/document", _verb("document")),
            web.get(f"{jobs}/explain", _explain(explanations)),
            web.get(f"{jobs}/logs", _logs(store / "runs")),
        ]
    )

    async def connect(_app: web.Application) -> Any:
        task = asyncio.create_task(mirror.run())
        yield
        task.cancel()
        await explanations.close()

    app.cleanup_ctx.append(connect)
    return app


def told(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def refused(code: str, text: str, status: int = 0) -> web.Response:
    """What was asked may be part of the text, so it is made text that can be written."""
    clean = text.encode(errors="replace").decode()
    return told({"error": clean, "code": code}, status or STATUS.get(code, 500))


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RefusedError as error:
        return refused(error.code, str(error))
    except web.HTTPNotFound:
        return refused("missing", f"there is nothing at {request.path}: /openapi.json lists what there is")
    except web.HTTPMethodNotAllowed as error:
        allowed = sorted(error.allowed_methods)
        answer = refused("invalid", f"{request.path} takes {', '.join(allowed)}, not {request.method}", 405)
        answer.headers["Allow"] = ", ".join(allowed)
        return answer
    except web.HTTPRequestEntityTooLarge:
        return refused("invalid", f"more than {MOST_BYTES >> 20} MiB at once: submit it in parts", 413)
    except web.HTTPException as error:
        return refused("invalid", f"{request.method} {request.path}: {error.reason}", error.status)
    except ConnectionError:  # whoever asked has gone
        raise
    except Exception as error:
        LOG.exception("%s %s failed", request.method, request.path)
        return refused("internal", f"{request.method} {request.path} failed inside: {error!r}")


def _guard(token: str) -> Any:
    """On loopback everybody of this machine may come, but no page of a stranger that a browser here has open. Elsewhere
    a token is needed."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode()):
                wrong = "this is not its token" if given else "a token is needed"
                return refused("forbidden", f"{wrong}: set OPTIMUS_TOKEN to what the file token in its store says", 401)
        elif (stranger := _stranger(request)) is not None:
            return refused("forbidden", f"this API serves this machine only, not {stranger}", 403)
        return await handler(request)

    return guard


def _same_store(store: Path) -> Any:
    """Whoever found this address in a store wants the scheduler of that store, and no other that got its port."""

    @web.middleware
    async def same_store(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = unquote(request.headers.get(STORE_HEADER, ""))
        if asked and asked != os.path.realpath(store):
            return refused("missing", "this is the scheduler of another store", MISDIRECTED)
        return await handler(request)

    return same_store


def _stranger(request: web.Request) -> str | None:
    """Whoever the request is for or from, if that is not this machine."""
    host = request.host.lower()
    name = host.split("]")[0] + "]" if host.startswith("[") else host.rsplit(":", 1)[0]
    if name not in LOOPBACK:
        return request.host
    origin = request.headers.get("Origin", "")
    return None if origin.lower().rstrip("/") in ("", f"http://{host}") else origin


async def _healthz(request: web.Request) -> web.Response:
    mirror = request.app[MIRROR]
    trouble = mirror.shown.get("trouble", "")
    if not mirror.connected.is_set():
        trouble = "the scheduler is not there"
    if trouble:
        return told({"ok": False, "trouble": trouble, "error": trouble, "code": "unavailable"}, 503)
    return told({"ok": True, "trouble": ""})


async def _openapi(request: web.Request) -> web.Response:  # noqa: ARG001 - the signature is aiohttp's
    return told(openapi.document())


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
    wanted = _asked(request, "namespace", "queue", "phase", "jobClass")
    if wanted.get("phase") not in (None, *PHASES):
        raise RefusedError("invalid", f"there is no phase {wanted['phase']}; known are {', '.join(PHASES)}")
    jobs = (await _shown(request)).get("jobs", {}).values()
    found = [job for job in jobs if all(str(job.get(name)) == value for name, value in wanted.items())]
    return told(sorted(found, key=lambda job: (job["submittedMs"], job["namespace"], job["name"])))


def _asked(request: web.Request, *known: str) -> dict[str, str]:
    """The parameters of the address; a name that is not known would else be a wish that nobody hears."""
    for name in request.query:
        if name not in known:
            raise RefusedError("invalid", f"unknown parameter {name}; known are {', '.join(known)}")
    return dict(request.query)


def _flag(query: dict[str, str], name: str) -> bool:
    wanted = FLAGS.get(query.get(name, "").lower())
    if wanted is None:
        raise RefusedError("invalid", f"{name} is 1 or 0, not {query[name]}")
    return wanted


def _list(name: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return told((await _shown(request)).get(name, []))

    return handler


def _delete(verb: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return told(await request.app[MIRROR].call(verb, name=request.match_info["name"]))

    return handler


def _name(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


async def _job(request: web.Request) -> web.Response:
    return told(await _found(request))


async def _found(request: web.Request) -> dict[str, Any]:
    job: dict[str, Any] | None = (await _shown(request)).get("jobs", {}).get(_name(request))
    if job is None:
        await request.app[MIRROR].call("events", job=_name(request))  # refused, and says whether it was ever there
        raise RefusedError("missing", f"there is no job {_name(request)}")
    return job


async def _submit(request: web.Request) -> web.Response:
    query = _asked(request, "where", "source", "fresh")
    where, source = query.get("where", ""), query.get("source", "submitted")
    try:
        text = (await request.read()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedError("invalid", f"{source} is not UTF-8 text (byte {error.start})") from None
    if "\0" in where or (where and not where.startswith("/")):
        raise RefusedError("invalid", "where is the folder that jobs start in: its whole path")
    fresh = _flag(query, "fresh")
    return told(await request.app[MIRROR].call("submit", text=text, where=where, source=source, fresh=fresh), 201)


async def _state(request: web.Request) -> web.Response:
    copied = await request.app[MIRROR].snapshot()
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=copied, content_type="application/vnd.msgpack", headers=headers)


def _past(remembered: Remembered) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        _asked(request)
        headers = {"Cache-Control": "no-store"}
        return web.Response(body=await remembered.past(), content_type="application/vnd.msgpack", headers=headers)

    return handler


def _explain(explanations: Explanations) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        job, query = await _found(request), _asked(request, "samples", "seconds", "forecast", "page")
        wish = Wish(
            samples=_count(query, "samples", MOST_SAMPLES) or Wish().samples,
            seconds=_count(query, "seconds", MOST_SECONDS) or Wish().seconds,
            forecast=_flag(query, "forecast") if "forecast" in query else True,
            page=_flag(query, "page"),
        )
        headers = {"Cache-Control": "no-store"}
        return web.Response(body=await explanations.of(job, wish), content_type="application/json", headers=headers)

    return handler


def _count(query: dict[str, str], name: str, most: int) -> int:
    """0: nothing is said."""
    text = query.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise RefusedError("invalid", f"{name} is a number from 1 to {most:,}, not {text[:40]}")
    return int(text or 0)


def _verb(verb: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return told(await request.app[MIRROR].call(verb, job=_name(request)))

    return handler


async def _scale(request: web.Request) -> web.Response:
    try:
        replicas = msgspec.json.decode(await request.read(), type=dict[str, Number])["replicas"]
    except (msgspec.MsgspecError, KeyError) as error:
        raise RefusedError("invalid", 'say how many: {"replicas": 4}') from error
    return told(await request.app[MIRROR].call("scale", job=_name(request), replicas=replicas))


async def _watch(request: web.Request) -> web.StreamResponse:
    """First everything, then what changes. One that takes nothing for too long is sent away, and may come again."""
    job, mirror = _asked(request, "job").get("job", ""), request.app[MIRROR]
    await _shown(request)
    async with _stream(request, "text/event-stream") as response, aclosing(mirror.audience.watch(job)) as pieces:
        async for told_now in pieces:
            for at in range(0, len(told_now), PIECE):  # what it has not taken is not copied for it
                async with asyncio.timeout(STUCK_S):
                    await response.write(told_now[at : at + PIECE])
    return response


@asynccontextmanager
async def _stream(request: web.Request, kind: str) -> AsyncIterator[web.StreamResponse]:
    """An answer that is written bit by bit. One that fails breaks off, so that nobody takes it for whole."""
    response = web.StreamResponse(headers={"Content-Type": kind, "Cache-Control": "no-store"})
    await response.prepare(request)
    try:
        yield response
    except ConnectionError:  # whoever asked has gone
        pass
    except Exception as error:
        if not isinstance(error, TimeoutError):  # that is one who is there and does not read
            LOG.exception("%s %s failed", request.method, request.path)
        if request.transport is not None:
            request.transport.abort()


def _logs(runs: Path) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        job = await _found(request)
        query, mirror = _asked(request, "follow", "tail", "replica", "attempt", "part", "together"), request.app[MIRROR]
        tail = _lines(query["tail"]) if "tail" in query else None
        follow, together = _flag(query, "follow"), _flag(query, "together")
        chosen = _chosen(query, job, _name(request))
        if follow and not job["final"]:
            _demand_possible(runs, job, _name(request), chosen)
        else:
            _demand_starts(runs, job, _name(request), chosen)

        def over() -> bool:
            if request.transport is None:
                return True
            if not mirror.connected.is_set():
                return False  # nobody knows; the scheduler may be back soon
            now = mirror.shown.get("jobs", {}).get(_name(request))
            return now is None or bool(now["final"]) or now["uid"] != job["uid"]

        async with _stream(request, "application/x-ndjson") as response:
            found = lines(runs, job["uid"], chosen, follow=follow, tail=tail, over=over, together=together)
            async for several in found:
                await response.write(ENCODER.encode_lines(several))
        return response

    return handler


def _chosen(query: dict[str, str], job: dict[str, Any], name: str) -> Chosen:
    """A replica of an array that is only a number is a part."""
    parts, replica, part = sum(job["counts"].values()), query.get("replica", ""), query.get("part", "")
    if parts and not part and replica.isascii() and replica.isdigit():
        replica, part = "", replica
    if part and not parts:
        raise RefusedError("invalid", f"{name} is no array: it has no parts")
    if part and not (part.isascii() and part.isdigit() and len(part) < 10 and int(part) < parts):
        raise RefusedError("missing", f"{name} has no part {part[:40]}; its parts are 0 to {parts - 1}")
    return Chosen(replica=replica, attempt=_attempt(query.get("attempt", "")), part=int(part) if part else None)


def _demand_starts(runs: Path, view: dict[str, Any], job: str, chosen: Chosen) -> None:
    """Nothing, because of a wrong letter or because it is gone, would be a wrong answer."""
    everything = starts_of(runs, view["uid"])
    if not everything and view["startedMs"] is not None:
        raise RefusedError("missing", f"what {job} has written is cleared away: {CLEARED}")
    if chosen == Chosen() or not everything or any(chosen.takes(one) for one in everything):
        return
    if chosen.attempt is not None and all(one.attempt != chosen.attempt for one in everything):
        known = sorted({one.attempt for one in everything})
        raise RefusedError("missing", f"{job} has no output of attempt {chosen.attempt}; known are {_few(known)}")
    if chosen.part is not None and not chosen.replica:
        raise RefusedError(
            "missing", f"there is no output of part {chosen.part} of {job}: it has not run, or {CLEARED}"
        )
    names = sorted({one.replica for one in everything if chosen.attempt in (None, one.attempt)}, key=in_order)
    raise RefusedError("missing", f"{job} has no replica {chosen.replica}; known are {_few(names)}")


def _demand_possible(runs: Path, job: dict[str, Any], name: str, chosen: Chosen) -> None:
    """Whoever follows may wait for a replica, or for the next attempt, but not for one that never comes."""
    last = max((one.attempt for one in starts_of(runs, job["uid"])), default=0)
    if chosen.attempt is not None and chosen.attempt > max(last, job["attempt"]) + 1:
        raise RefusedError("missing", f"{name} has no attempt {chosen.attempt}; it has had {max(last, job['attempt'])}")
    if not chosen.replica or any(chosen.replica == one.replica for one in starts_of(runs, job["uid"])):
        return
    parts = sum(job["counts"].values())
    part, role, ordinal = split_name(chosen.replica, array=bool(parts))
    if (part is None or 0 <= part < parts) and 0 <= ordinal < job["roles"].get(role, 0):
        return
    first = "0-" if parts else ""
    names = [f"{first}{role}-0" + (f" to {role}-{most - 1}" if most > 1 else "") for role, most in job["roles"].items()]
    raise RefusedError("missing", f"{name} has no replica {chosen.replica}; it can have {_few(names)}")


def _few(names: list[Any]) -> str:
    return ", ".join(map(str, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _attempt(text: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise RefusedError("invalid", f"attempt is a number from 1, not {text[:40]}")
    return int(text) if text else None


def _lines(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= MOST_LINES):
        raise RefusedError("invalid", f"tail is a number of lines, at most {MOST_LINES:,}, not {text[:40]}")
    return int(text)
