"""One scheduler behind one address.

Why: requests, streams of lines and streams of events, each with an error that says what to do.
Owns: the wire.
Must not: retry what changes something: whoever asked decides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

DEFAULT_PORT = 6900
DEFAULT_ADDRESS = f"http://127.0.0.1:{DEFAULT_PORT}"
ADDRESS_FILE = "address"
TIMEOUT_S = 75.0


class ApiError(Exception):
    """The scheduler says no."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class Unreachable(Exception):  # noqa: N818 - a state, and its text is the message
    """Nobody answers at the address."""


def store_folder() -> Path:
    """Where one machine keeps what it must not forget: OPTIMUS_STORE, or the user's data folder."""
    named = os.environ.get("OPTIMUS_STORE")
    if named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "optimus"


def find_address(given: str = "") -> str:
    """The given one, OPTIMUS_ADDRESS, what `optimus up` of this user has written down, or the usual one."""
    if given or os.environ.get("OPTIMUS_ADDRESS"):
        return given or os.environ["OPTIMUS_ADDRESS"]
    try:
        return (store_folder() / ADDRESS_FILE).read_text(encoding="utf-8").strip() or DEFAULT_ADDRESS
    except OSError:
        return DEFAULT_ADDRESS


class Connection:
    def __init__(self, address: str = "", token: str = "") -> None:
        self.address = find_address(address)
        self._token = token or os.environ.get("OPTIMUS_TOKEN", "")

    def get(self, path: str, **query: Any) -> Any:
        return self._json("GET", path, query)

    def post(self, path: str, body: bytes = b"", **query: Any) -> Any:
        return self._json("POST", path, query, body)

    def delete(self, path: str) -> Any:
        return self._json("DELETE", path, {})

    def raw(self, path: str, **query: Any) -> bytes:
        """The body as it is."""
        with self._asked("GET", path, query) as response:
            return response.read()

    def lines(self, path: str, **query: Any) -> Iterator[Any]:
        """A stream of JSON lines, as they come."""
        with self._asked("GET", path, query, timeout=None) as response:
            while raw := response.readline():
                yield json.loads(raw)

    def events(self, path: str = "/v1/watch") -> Iterator[tuple[str, Any]]:
        """(event, data) of server-sent events."""
        name = ""
        with self._asked("GET", path, {}, timeout=60) as response:
            while raw := response.readline():
                text = raw.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text[7:]
                elif text.startswith("data: "):
                    yield name, json.loads(text[6:])

    def _json(self, method: str, path: str, query: dict[str, Any], body: bytes = b"") -> Any:
        with self._asked(method, path, query, body) as response:
            return json.loads(response.read() or b"null")

    @contextmanager
    def _asked(
        self, method: str, path: str, query: dict[str, Any], body: bytes = b"", timeout: float | None = TIMEOUT_S
    ) -> Iterator[HTTPResponse]:
        parts = urlsplit(self.address if "//" in self.address else f"http://{self.address}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Unreachable(f"{self.address} is no address: write http://HOST:PORT")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        wanted = urlencode({name: value for name, value in query.items() if value not in (None, "")})
        target = quote(path) + (f"?{wanted}" if wanted else "")
        connection = kind(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80), timeout=timeout)
        with closing(connection):
            try:
                connection.request(method, target, body or None, headers)
                response = connection.getresponse()
            except (OSError, HTTPException, ValueError) as error:
                raise Unreachable(
                    f"nobody answers at {self.address} ({error}): start it with `optimus up`, "
                    "or name another address (--address, OPTIMUS_ADDRESS)"
                ) from error
            with closing(response):
                if response.status >= 400:
                    raise _refusal(response)
                try:
                    yield response
                except (OSError, HTTPException, ValueError) as error:
                    raise Unreachable(f"what {self.address} said broke off, or cannot be read: {error}") from error


def _refusal(response: HTTPResponse) -> ApiError:
    raw = response.read()
    try:
        told = json.loads(raw)
        return ApiError(response.status, str(told.get("code", "")), str(told["error"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ApiError(response.status, "", f"answered {response.status}: {raw[:200].decode(errors='replace')}")
