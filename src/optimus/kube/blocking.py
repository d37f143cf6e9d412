"""One request after the other over one connection, without an event loop: for a thread that must not depend on one.

The same cluster, credentials and errors as `Client`, a few requests a minute, and no more features than a Lease needs.
"""

from __future__ import annotations

import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from optimus.kube.config import Cluster
from optimus.kube.counting import TIMED_OUT, UNREACHABLE, Counters
from optimus.kube.credentials import Certificate, Identity
from optimus.kube.errors import NoAnswer, NotSent, api_error
from optimus.kube.trusting import tls_context

_VERBS = {"POST": "create"}


class BlockingClient:
    def __init__(self, cluster: Cluster, user_agent: str) -> None:
        self.counters = Counters()
        self._cluster = cluster
        self._agent = user_agent
        self._connection: HTTPConnection | None = None
        self._shown: Certificate | None = None

    def ask(self, method: str, path: str, body: bytes = b"", *, form: str, timeout_s: float) -> bytes:
        """The body of the answer; `KubeError` otherwise. Each step on the way has `timeout_s` at most."""
        credentials = self._cluster.credentials
        identity = credentials.current()
        status, raw, after = self._once(method, path, body, form, timeout_s, identity)
        if status == 401 and credentials.refused(identity):
            status, raw, after = self._once(method, path, body, form, timeout_s, credentials.current())
        if status >= 300:
            raise api_error(status, raw, after)
        return raw

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(
        self, method: str, path: str, body: bytes, form: str, timeout_s: float, identity: Identity
    ) -> tuple[int, bytes, str]:
        begun, code = time.monotonic(), TIMED_OUT
        try:
            answer = self._send(method, path, body, form, timeout_s, identity)
        except NotSent:
            code = UNREACHABLE
            raise
        else:
            code = str(answer[0])
            return answer
        finally:
            self.counters.answered(_VERBS.get(method, method.lower()), code, time.monotonic() - begun)

    def _send(
        self, method: str, path: str, body: bytes, form: str, timeout_s: float, identity: Identity
    ) -> tuple[int, bytes, str]:
        until = time.monotonic() + timeout_s
        connection = self._connected(identity, timeout_s)
        try:
            assert connection.sock is not None
            connection.sock.settimeout(max(until - time.monotonic(), 0.01))
            connection.putrequest(method, path)
            for name, value in self._headers(identity, body, form):
                connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            raw = response.read()
            return response.status, raw, response.getheader("Retry-After", "") or ""
        except (OSError, HTTPException) as error:
            self.close()
            raise NoAnswer(f"no answer of {self._cluster.server}: {str(error) or type(error).__name__}") from None

    def _connected(self, identity: Identity, timeout_s: float) -> HTTPConnection:
        if self._connection is not None and self._shown == identity.certificate and self._connection.sock is not None:
            return self._connection
        self.close()
        parts = urlsplit(self._cluster.server)
        assert parts.hostname is not None
        context = tls_context(self._cluster, identity.certificate)
        made: HTTPConnection
        if context is None:
            made = HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout_s)
        else:
            made = HTTPSConnection(parts.hostname, parts.port or 443, timeout=timeout_s, context=context)
        try:
            if context is not None and self._cluster.server_name:
                HTTPConnection.connect(made)
                made.sock = context.wrap_socket(made.sock, server_hostname=self._cluster.server_name)
            else:
                made.connect()
        except OSError as error:
            made.close()
            raise NotSent(f"nobody answers at {self._cluster.server}: {error}") from None
        self._connection, self._shown = made, identity.certificate
        return made

    def _headers(self, identity: Identity, body: bytes, form: str) -> list[tuple[str, str]]:
        headers = [("User-Agent", self._agent), ("Accept", "application/json"), *self._cluster.headers]
        if identity.token:
            headers.append(("Authorization", f"Bearer {identity.token}"))
        if body:
            headers += [("Content-Type", form), ("Content-Length", str(len(body)))]
        return headers
