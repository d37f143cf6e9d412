"""A thin client of the Kubernetes API: bytes out, bytes in, errors by name.

Why: on the hot path of a scheduler, typed models of every kind cost fifty times what is needed.
Owns: one HTTP session, how many requests are in flight, time-outs, the identity that is shown and renewed once on 401.
Must not: retry what changes something (whoever asked decides), know kinds, or interpret resource versions.

    async with Client(load()) as client:
        pod = await client.get(PODS, "web-0", Pod, namespace="default")
        found = await client.list(PODS, Pod, labels="app=web")

A *guard* is asked at the last moment: the connection stands, and nothing or not all of the request is on its way. A
server does not act on half a request, so a guard that says no means that nothing happens.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Generic, Self
from urllib.parse import urlencode

import msgspec

from optimus.kube.config import Cluster
from optimus.kube.counting import STOPPED, TERMINATING, TIMED_OUT, UNREACHABLE, Counters
from optimus.kube.credentials import Identity
from optimus.kube.decoding import S, T, Unreadable, decode, decode_page
from optimus.kube.errors import ConfigError, Expired, KubeError, NotSent, api_error
from optimus.kube.line import Guard, Line, Stopped
from optimus.kube.resources import Resource
from optimus.kube.switchboard import Answer, Switchboard, lines_of, words_of
from optimus.kube.trusting import tls_context

USER_AGENT = "optimus-scheduler"
IN_FLIGHT = 64
TIMEOUT_S = 30.0
PAGE = 500
WHOLE_AFTER = 3
"""A listing that expired so often between pages is asked for in one piece."""
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
WATCH = "watch"
_HARMLESS = ("GET", "HEAD")

Query = Mapping[str, str]


class Listing(msgspec.Struct, Generic[T], gc=False):
    items: list[T]
    unreadable: list[Unreadable]
    resource_version: str


class _Asked(msgspec.Struct, frozen=True):
    method: str
    target: str
    verb: str
    body: bytes | None = None
    content_type: str = JSON


class Client:
    def __init__(
        self,
        cluster: Cluster,
        *,
        user_agent: str = USER_AGENT,
        in_flight: int = IN_FLIGHT,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.cluster = cluster
        self.counters = Counters()
        self._timeout_s = timeout_s
        self._room = asyncio.Semaphore(in_flight)
        self._switchboard = Switchboard(cluster)
        always = [("Host", self._switchboard.host), ("User-Agent", user_agent), ("Accept", JSON)]
        always += [("Accept-Encoding", "identity"), *cluster.headers]
        self._always = "".join(_header(name, value, cluster.source) for name, value in always)
        self._shown: tuple[Identity, str, ssl.SSLContext | None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """No connection outlives it, whatever its server was doing."""
        self._switchboard.close()

    # -- reading --------------------------------------------------------------------------------------------------

    async def get(self, resource: Resource, name: str, kind: type[S], *, namespace: str = "") -> S:
        return decode(await self.request("GET", resource.path(namespace, name), verb="get"), kind)

    async def pages(
        self,
        resource: Resource,
        kind: type[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
    ) -> AsyncIterator[Listing[T]]:
        """All objects at one moment, page by page. Raises `Expired` if that moment is too long ago for the rest."""
        query = selecting(labels, fields)
        if limit:
            query["limit"] = str(limit)
        while True:
            raw = await self.request("GET", resource.path(namespace), query=query, verb="list")
            meta, items, unreadable = decode_page(raw, kind)
            del raw  # megabytes, while the caller works on the page
            yield Listing(items, unreadable, meta.resource_version)
            if not meta.continue_:
                return
            query["continue"] = meta.continue_

    async def listing(
        self, resource: Resource, kind: type[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        """All objects at one moment; begins again if that moment has passed."""
        for turn in range(WHOLE_AFTER + 1):
            whole: Listing[T] = Listing([], [], "")
            limit = PAGE if turn < WHOLE_AFTER else 0
            try:
                async for page in self.pages(
                    resource, kind, namespace=namespace, labels=labels, fields=fields, limit=limit
                ):
                    whole.items += page.items
                    whole.unreadable += page.unreadable
                    whole.resource_version = page.resource_version
            except Expired:
                if not limit:
                    raise
            else:
                return whole
        raise AssertionError("the last turn returns or raises")

    @asynccontextmanager
    async def watch(self, path: str, query: Query, *, quiet_s: float) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Lines as they come, several at a time. Ends when the server ends it; raises `NoAnswer` when it breaks off or
        nothing is heard for `quiet_s`."""
        async with self.stream(path, {**query, "watch": "true"}, quiet_s=quiet_s, verb=WATCH) as pieces:
            yield lines_of(pieces)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query, *, quiet_s: float, verb: str = "get"
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer as it comes, on a connection of its own and outside of what is in flight."""
        asked = _Asked("GET", _target(path, query), verb)
        begun = time.monotonic()
        for last in (False, True):
            identity = await self._identity()
            async with self._streaming(asked, identity, quiet_s) as line:
                if not last and line.status == 401 and await self._renewed(asked, identity, begun):
                    continue
                self.counters.answered(asked.verb, line.status, time.monotonic() - begun)
                if line.status >= 300:
                    raise api_error(line.status, await words_of(line, quiet_s), _retry_after(line.headers))
                async with aclosing(line.pieces(quiet_s)) as pieces:
                    yield pieces
                return

    # -- changing -------------------------------------------------------------------------------------------------

    async def create(
        self, resource: Resource, body: bytes, *, namespace: str = "", guard: Guard | None = None
    ) -> bytes:
        return await self.request("POST", resource.path(namespace), body=body, guard=guard, verb="create")

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: bytes,
        *,
        namespace: str = "",
        subresource: str = "",
        form: str = MERGE,
        manager: str = "",
        force: bool = False,
        guard: Guard | None = None,
    ) -> bytes:
        """`manager`: who owns the fields, needed for APPLY; `force`: take them from others."""
        query = {**({"fieldManager": manager} if manager else {}), **({"force": "true"} if force else {})}
        path = resource.path(namespace, name, subresource)
        return await self.request("PATCH", path, query=query, body=body, content_type=form, guard=guard, verb="patch")

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
        guard: Guard | None = None,
    ) -> bytes:
        """Only the object with this uid and version, where they are given."""
        body = msgspec.json.encode(delete_options(uid, resource_version, grace_s))
        return await self.request("DELETE", resource.path(namespace, name), body=body, guard=guard, verb="delete")

    # -- one request ----------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float | None = None,
        guard: Guard | None = None,
        verb: str = "",
    ) -> bytes:
        """The body of the answer; `KubeError` otherwise. Time counts from when there is room among those in flight."""
        asked = _Asked(method, _target(path, query), verb or method.lower(), body, content_type)
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        async with self._room:
            self.counters.in_flight += 1
            try:
                begun = time.monotonic()
                identity = await self._identity()
                answer = await self._ask(asked, identity, patience_s, guard)
                if answer.status == 401 and await self._renewed(asked, identity, begun):
                    answer = await self._ask(asked, await self._identity(), patience_s, guard)
                self.counters.answered(asked.verb, _code(answer), time.monotonic() - begun)
                if answer.status >= 300:
                    raise api_error(answer.status, answer.body, _retry_after(answer.headers))
                return answer.body
            finally:
                self.counters.in_flight -= 1

    async def _ask(self, asked: _Asked, identity: Identity, timeout_s: float, guard: Guard | None) -> Answer:
        begun = time.monotonic()
        request, tls = self._worded(asked, identity)
        try:
            return await self._switchboard.ask(
                request, tls, timeout_s=timeout_s, guard=guard, harmless=asked.method in _HARMLESS
            )
        except KubeError as error:
            self.counters.answered(asked.verb, _why(error), time.monotonic() - begun)
            raise

    @asynccontextmanager
    async def _streaming(self, asked: _Asked, identity: Identity, quiet_s: float) -> AsyncIterator[Line]:
        begun = time.monotonic()
        request, tls = self._worded(asked, identity)
        opened = False
        try:
            async with self._switchboard.stream(request, tls, quiet_s=quiet_s) as line:
                opened = True
                yield line
        except KubeError as error:
            if not opened:
                self.counters.answered(asked.verb, _why(error), time.monotonic() - begun)
            raise

    async def _renewed(self, asked: _Asked, identity: Identity, begun: float) -> bool:
        """Whether there is another identity to show after this one was refused."""
        if not await asyncio.to_thread(self.cluster.credentials.refused, identity):
            return False
        self.counters.renewed_credentials += 1
        self.counters.answered(asked.verb, 401, time.monotonic() - begun)
        return True

    def _worded(self, asked: _Asked, identity: Identity) -> tuple[bytes, ssl.SSLContext | None]:
        """The whole request, and TLS for whom it is sent as: one context as long as the certificate is the same."""
        if self._shown is None or self._shown[0] != identity:
            self._shown = self._showing(identity)
        _, shown, tls = self._shown
        head = f"{asked.method} {self._switchboard.prefix}{asked.target} HTTP/1.1\r\n{self._always}{shown}"
        if asked.body is None:
            return f"{head}\r\n".encode(), tls
        head = f"{head}Content-Type: {asked.content_type}\r\nContent-Length: {len(asked.body)}\r\n\r\n"
        return head.encode() + asked.body, tls

    def _showing(self, identity: Identity) -> tuple[Identity, str, ssl.SSLContext | None]:
        header = _header("Authorization", f"Bearer {identity.token}", self.cluster.source) if identity.token else ""
        before = self._shown
        same = before is not None and before[0].certificate == identity.certificate
        tls = before[2] if before is not None and same else tls_context(self.cluster, identity.certificate)
        return identity, header, tls

    async def _identity(self) -> Identity:
        credentials = self.cluster.credentials
        return credentials.current() if credentials.at_hand() else await asyncio.to_thread(credentials.current)


def _target(path: str, query: Query | None) -> str:
    assert path.isascii() and path.isprintable() and " " not in path, f"{path!r} is not quoted"
    return f"{path}?{urlencode(query)}" if query else path


def _header(name: str, value: str, source: str) -> str:
    if not (name + value).isprintable():
        raise ConfigError(f"{source}: {name} has characters in it that no header can have")
    return f"{name}: {value}\r\n"


def _retry_after(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(b"retry-after", b"").decode("latin-1")


def _code(answer: Answer) -> int | str:
    """As it is counted."""
    going = answer.status == 403 and b'"NamespaceTerminating"' in answer.body
    return TERMINATING if going else answer.status


def _why(error: KubeError) -> str:
    """No answer: whether anything can have reached the server is what matters."""
    if isinstance(error, Stopped):
        return STOPPED
    return UNREACHABLE if isinstance(error, NotSent) else TIMED_OUT


def selecting(labels: str, fields: str) -> dict[str, str]:
    return {**({"labelSelector": labels} if labels else {}), **({"fieldSelector": fields} if fields else {})}


def delete_options(uid: str = "", resource_version: str = "", grace_s: int | None = None) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid or resource_version:
        named = (("uid", uid), ("resourceVersion", resource_version))
        options["preconditions"] = {name: value for name, value in named if value}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    return options
