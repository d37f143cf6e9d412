"""A thin client of the Kubernetes API: bytes out, bytes in, errors by name.

Why: on the hot path of a scheduler, typed models of every kind cost fifty times what is needed.
Owns: one HTTP session, how many requests are in flight, time-outs, the identity that is shown and renewed once on 401.
Must not: retry what changes something (whoever asked decides), know kinds, or interpret resource versions.

    async with Client(load()) as client:
        pod = await client.get(PODS, "web-0", Pod, namespace="default")
        found = await client.list(PODS, Pod, labels="app=web")

A *guard* is asked at the last moment: the connection stands, the head of the request may be on its way, the body is
not. A server does not act on half a request, so a guard that says no means that nothing happens.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Generic, Self

import aiohttp
import msgspec
from yarl import URL

from optimus.kube.config import Cluster
from optimus.kube.counting import STOPPED, TIMED_OUT, UNREACHABLE, Counters
from optimus.kube.credentials import Certificate, Identity
from optimus.kube.decoding import S, T, Unreadable, decode, decode_page
from optimus.kube.errors import Expired, KubeError, NoAnswer, NotSent, api_error
from optimus.kube.resources import Resource
from optimus.kube.trusting import tls_context
from optimus.kube.wire import BROKEN, Guard, GuardedBody, Sockets, hang_up, in_words, lines_of, words_of

USER_AGENT = "optimus-scheduler"
IN_FLIGHT = 64
TIMEOUT_S = 30.0
CONNECT_S = 5.0
PAGE = 500
WHOLE_AFTER = 3
"""A listing that expired so often between pages is asked for in one piece."""
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
WATCH = "watch"
_READ_AT_ONCE = 1 << 18

Query = Mapping[str, str]


class Listing(msgspec.Struct, Generic[T], gc=False):
    items: list[T]
    unreadable: list[Unreadable]
    resource_version: str


class _Asked(msgspec.Struct, frozen=True):
    method: str
    url: URL
    timeout: aiohttp.ClientTimeout
    verb: str
    body: bytes | None = None
    content_type: str = JSON
    guard: Guard | None = None


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
        self._agent = user_agent
        self._open: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        self._shown: tuple[Certificate | None, ssl.SSLContext | None] | None = None

    async def __aenter__(self) -> Self:
        # What limits is `in_flight`; watches stay open and must not take a place.
        connector = aiohttp.TCPConnector(limit=0, socket_factory=self._sockets.make)
        headers = [("User-Agent", self._agent), ("Accept", JSON), ("Accept-Encoding", "identity")]
        self._open = aiohttp.ClientSession(
            connector=connector,
            headers=[*headers, *self.cluster.headers],
            read_bufsize=_READ_AT_ONCE,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._open is not None:
            await self._open.close()
            await self._sockets.close()

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
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=quiet_s)
        asked = _Asked("GET", self._url(path, {**query, "watch": "true"}), timeout, WATCH)
        async with self._answer(asked) as response, aclosing(lines_of(response)) as lines:
            yield lines

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
        assert guard is None or body, "a guard is asked between head and body"
        total = self._timeout_s if timeout_s is None else timeout_s
        timeout = aiohttp.ClientTimeout(total=total, sock_connect=min(CONNECT_S, total))
        asked = _Asked(method, self._url(path, query), timeout, verb or method.lower(), body, content_type, guard)
        async with self._room:
            self.counters.in_flight += 1
            try:
                async with self._answer(asked) as response:
                    return await response.read()
            except BROKEN as error:  # while the answer was read
                raise NoAnswer(f"the answer of {self.cluster.server} broke off: {in_words(error)}") from None
            finally:
                self.counters.in_flight -= 1

    @asynccontextmanager
    async def _answer(self, asked: _Asked) -> AsyncIterator[aiohttp.ClientResponse]:
        """One that is a success; with a fresh identity if the first was refused."""
        begun = time.monotonic()
        identity = await self._identity()
        response = await self._send(asked, identity)
        if response.status == 401 and await asyncio.to_thread(self.cluster.credentials.refused, identity):
            response.release()
            self.counters.renewed_credentials += 1
            self.counters.answered(asked.verb, 401, time.monotonic() - begun)
            response = await self._send(asked, await self._identity())
        self.counters.answered(asked.verb, response.status, time.monotonic() - begun)
        try:
            if response.status >= 300:
                raise api_error(response.status, await words_of(response), response.headers.get("Retry-After", ""))
            yield response
        finally:
            hang_up(response) if asked.verb == WATCH else response.release()

    async def _send(self, asked: _Asked, identity: Identity) -> aiohttp.ClientResponse:
        assert self._open is not None, "use it as `async with Client(…) as client`"
        headers = {"Authorization": f"Bearer {identity.token}"} if identity.token else {}
        body: bytes | GuardedBody | None = asked.body
        if asked.body is not None:
            headers["Content-Type"] = asked.content_type
            if asked.guard is not None:
                body = GuardedBody(asked.body, asked.guard)
        begun = time.monotonic()
        try:
            return await self._open.request(
                asked.method,
                asked.url,
                data=body,
                headers=headers,
                timeout=asked.timeout,
                ssl=self._tls(identity.certificate) or True,
                server_hostname=self.cluster.server_name or None,
                allow_redirects=False,
            )
        except BROKEN as error:
            why, told = self._failed(error, stopped=isinstance(body, GuardedBody) and body.stopped)
            self.counters.answered(asked.verb, why, time.monotonic() - begun)
            raise told from None

    def _failed(self, error: Exception, *, stopped: bool) -> tuple[str, KubeError]:
        """Whether anything can have reached the server is what matters."""
        if stopped:
            return STOPPED, NotSent("the guard said no")
        server, source = self.cluster.server, self.cluster.source
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            look = f"look at certificate-authority and tls-server-name of {source}"
            return UNREACHABLE, NotSent(f"{server} is not trusted ({error.certificate_error}): {look}")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return UNREACHABLE, NotSent(f"nobody answers at {server}: {in_words(error)}")
        return TIMED_OUT, NoAnswer(f"no answer of {server}: {in_words(error)}")

    def _url(self, path: str, query: Query | None = None) -> URL:
        url = URL(self.cluster.server + path, encoded=True)
        return url.with_query(query) if query else url

    async def _identity(self) -> Identity:
        credentials = self.cluster.credentials
        return credentials.current() if credentials.at_hand() else await asyncio.to_thread(credentials.current)

    def _tls(self, certificate: Certificate | None) -> ssl.SSLContext | None:
        """One context as long as the certificate is the same, so that connections are used again."""
        if self._shown is None or self._shown[0] != certificate:
            self._shown = (certificate, tls_context(self.cluster, certificate))
        return self._shown[1]


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
