"""Between a controller and a real API server, on the level of requests: slows, holds, fails or cuts what it is told to.

    with Front(plane) as front:
        stand.start(front.option)
        front.trouble[BIND] = Trouble(delay_s=(0.0, 0.5), fails=0.3)
        front.trouble[SUSPEND] = Trouble(cuts=1.0, times=2)       # done, twice, and the connection is cut

A request that fails here may have been done (`after`, `cuts`): the answer is what is lost. A bind that is held stays on
its way when its sender dies, as on a network. What a request is about (`VERBS`) is read from its method and path.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

import aiohttp
from aiohttp import web
from msgspec import Struct, structs

from hack.controlplane import ControlPlane
from optimus.kube.line import lively_socket

_NUMBERS = itertools.count(1)
_PASSED_ON = ("Authorization", "Content-Type", "Accept", "User-Agent")
_AWAY_S = 60.0


BIND, EVICT, SUSPEND, CLAIM, LEASE, LIST, STATUS = "bind", "evict", "suspend", "claim", "lease", "list", "status"
VERBS = (BIND, EVICT, SUSPEND, CLAIM, LEASE, LIST, STATUS)
"""`suspend`: a change to an owner, either way. `claim`: to a claim or a volume. `list`: what is read, watches too."""
_CLAIMS = ("persistentvolumeclaims", "persistentvolumes")


def verb_of(method: str, path: str) -> str:
    words = path.strip("/").split("/")
    if "leases" in words:
        return LEASE
    if method == "GET":
        return LIST
    if method == "POST":
        return {"binding": BIND, "eviction": EVICT}.get(words[-1], "other")
    if method == "PATCH" and words[-1] == "status":
        return STATUS
    if method == "PATCH":
        return CLAIM if words[-2] in _CLAIMS else "other" if words[-2] == "events" else SUSPEND
    return "other"


class Trouble(Struct, frozen=True, kw_only=True):
    delay_s: tuple[float, float] = (0.0, 0.0)
    """Before it is passed on: a random time between these."""
    fails: float = 0.0
    """How often it is answered with an error instead of being passed on."""
    after: float = 0.0
    """How often it is passed on, and answered with an error."""
    cuts: float = 0.0
    """How often it is passed on, and the connection is cut instead of an answer."""
    times: int | None = None
    """After so many that went wrong, all is well again."""
    status: int = 500
    retry_after_s: int | None = None
    dies_with_caller: bool = False
    """What is delayed, and whose sender is dead by then, is lost."""


class Front:
    def __init__(self, plane: ControlPlane, seed: int = 0) -> None:
        self.trouble: dict[str, Trouble] = {}
        """By verb."""
        self.asked: Counter[str] = Counter()
        self.passed: Counter[str] = Counter()
        """Requests that the server has answered."""
        self.failed: Counter[str] = Counter()
        self.lost = 0
        self.watches = 0
        self.refuses = False
        self._plane, self._luck = plane, random.Random(seed)
        self._held: list[asyncio.Future[bool]] = []
        """True: they may go on."""
        self._holds, self._free = "", 0
        self._open: set[asyncio.Task[None]] = set()
        self._carried: set[asyncio.Future[web.Response]] = set()
        self._callers: WeakSet[asyncio.Transport] = WeakSet()
        self._made: WeakSet[socket.socket] = WeakSet()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="front")
        self._over = asyncio.Event()
        self.option = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30), "the front does not come up"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    # -- what it is told ----------------------------------------------------------------------------------------------

    def hold_binds(self, after: int = 0) -> None:
        """From now on they arrive here, and stay; but for the first so many."""
        self.hold(BIND, after)

    def hold(self, verb: str, after: int = 0) -> None:
        self._do(lambda: self._hold(verb, after))

    def hold_no_more(self) -> None:
        """Those that come now are passed on; those that are held stay."""
        self._do(lambda: setattr(self, "_holds", ""))

    def let_go(self, count: int | None = None) -> None:
        """Those that were held are passed on, whoever sent them; or so many of them."""
        self._do(lambda: self._release(count))

    def lose_held(self) -> None:
        """Those that were held never arrive."""
        self._do(lambda: self._release(None, arrive=False))

    @property
    def held(self) -> int:
        return len(self._held)

    def cut_watches(self) -> None:
        self._do(self._cut)

    def _do(self, what: Callable[[], object]) -> None:
        done = threading.Event()

        def step() -> None:
            what()
            done.set()

        self._loop.call_soon_threadsafe(step)
        assert done.wait(30)

    def _hold(self, verb: str, after: int) -> None:
        self._holds, self._free = verb, after

    def _release(self, count: int | None, *, arrive: bool = True) -> None:
        self._holds = "" if count is None else self._holds
        for one in self._held[:count]:
            one.set_result(arrive)
        del self._held[:count]

    def _cut(self) -> None:
        for one in list(self._open):
            one.cancel()

    # -- what it does -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # whatever is under way then is cancelled
            runner.run(self._serve())

    async def _serve(self) -> None:
        trusted = ssl.create_default_context(cafile=str(self._plane.credentials.certificate))
        connector = aiohttp.TCPConnector(limit=0, ssl=trusted, socket_factory=self._socket)
        async with aiohttp.ClientSession(connector=connector) as self._session:
            app = web.Application(client_max_size=1 << 26)
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, shutdown_timeout=0.2, handler_cancellation=False)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            self.option = f"--kubeconfig={self._kubeconfig(port)}"
            self._ready.set()
            await self._over.wait()
            self._release(None)
            self._cut()
            for task in self._carried:
                task.cancel()
            await asyncio.gather(*self._carried, return_exceptions=True)
            await runner.cleanup()
        for transport in self._callers:
            transport.abort()
        for one in self._made:
            with contextlib.suppress(OSError):  # a polite end of TLS would wait half a minute for a word of the server
                one.shutdown(socket.SHUT_RDWR)
        await asyncio.sleep(0.05)  # what was aborted is closed in the next turns

    def _socket(self, address: tuple[Any, ...]) -> socket.socket:
        made = lively_socket(address)
        self._made.add(made)
        return made

    def _kubeconfig(self, port: int) -> Path:
        path = self._plane.folder / f"front-{next(_NUMBERS)}.kubeconfig"
        config = json.loads(self._plane.kubeconfig().read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self._callers.add(request.transport)
        if self.refuses:
            return _status(503, "the front refuses")
        verb = verb_of(request.method, request.path)
        self.asked[verb] += 1
        if request.query.get("watch") in ("true", "1"):
            return self._told_to_fail(verb, request) or await self._watch(request)
        try:
            body = await request.read()
        except ConnectionError:  # whoever asks is dead
            return _status(500, "nobody hears this")
        # A handler ends with its connection; what is on its way does not.
        carried = asyncio.ensure_future(self._carry(verb, request, body))
        self._carried.add(carried)
        carried.add_done_callback(self._carried.discard)
        return await asyncio.shield(carried)

    def _happens(self, verb: str, how_often: float) -> bool:
        trouble = self.trouble.get(verb, Trouble())
        if trouble.times == 0 or self._luck.random() >= how_often:
            return False
        self.failed[verb] += 1
        if trouble.times is not None:
            self.trouble[verb] = structs.replace(trouble, times=trouble.times - 1)
        return True

    def _told_to_fail(self, verb: str, request: web.Request) -> web.Response | None:
        trouble = self.trouble.get(verb, Trouble())
        watches = "watch" in request.query  # whose answer never ends: it is lost as it begins
        if self._happens(verb, trouble.fails) or (watches and self._happens(verb, trouble.after)):
            return _status(trouble.status, "told to fail", trouble.retry_after_s)
        if watches and self._happens(verb, trouble.cuts):
            _abort(request)
            return _status(500, "nobody hears this")
        return None

    async def _carry(self, verb: str, request: web.Request, body: bytes) -> web.Response:
        trouble = self.trouble.get(verb, Trouble())
        await asyncio.sleep(self._luck.uniform(*trouble.delay_s))
        if trouble.dies_with_caller and (request.transport is None or request.transport.is_closing()):
            self.lost += 1
            return _status(500, "nobody hears this")
        if verb == self._holds and self._free:
            self._free -= 1
        elif verb == self._holds:
            self._held.append(arrives := asyncio.get_running_loop().create_future())
            if not await arrives:
                self.lost += 1
                return _status(500, "nobody hears this")
        if failure := self._told_to_fail(verb, request):
            return failure
        answer = await self._pass_on(request, body)
        self.passed[verb] += 1
        if self._happens(verb, trouble.after):
            return _status(trouble.status, "told to lose the answer", trouble.retry_after_s)
        if self._happens(verb, trouble.cuts):
            _abort(request)
        return answer

    async def _pass_on(self, request: web.Request, body: bytes) -> web.Response:
        try:
            async with self._session.request(
                request.method,
                self._plane.address + request.raw_path,
                data=body or None,
                headers=_headers(request),
                timeout=aiohttp.ClientTimeout(total=_AWAY_S),
            ) as response:
                kept = {"Content-Type": response.headers.get("Content-Type", "application/json")}
                return web.Response(status=response.status, body=await response.read(), headers=kept)
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            return _status(503, f"nobody answers behind the front: {error}")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self.watches += 1
        answer = web.StreamResponse()
        self._open.add(task)
        try:
            async with self._session.get(
                self._plane.address + request.raw_path,
                headers=_headers(request),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
            ) as response:
                if response.status != 200:
                    return web.Response(status=response.status, body=await response.read())
                await answer.prepare(request)
                async for piece in response.content.iter_any():
                    await answer.write(piece)
                return answer
        except (OSError, aiohttp.ClientError):
            if not answer.prepared:
                return _status(503, "nobody answers behind the front")
            _abort(request)
            return answer
        except asyncio.CancelledError:
            _abort(request)
            raise
        finally:
            self._open.discard(task)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _headers(request: web.Request) -> dict[str, str]:
    return {name: request.headers[name] for name in _PASSED_ON if name in request.headers}


def _status(code: int, message: str, retry_after_s: int | None = None) -> web.Response:
    reasons = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
    reason = reasons.get(code, "Unknown")
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)
