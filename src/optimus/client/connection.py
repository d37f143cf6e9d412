"""One scheduler behind one address.

Why: requests, streams of lines and streams of events, each with an error that says what to do.
Owns: the wire.
Must not: retry what changes something: whoever asked decides.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import socket
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

DEFAULT_PORT = 6900
HERE = "here"
"""As an address: whatever `optimus up` of this user has written down, also where a variable names another one."""
ADDRESS_FILE = "address"
TOKEN_FILE = "token"  # noqa: S105 - the name of a file
LOCK_FILE = "lock"
STORE_HEADER = "Optimus-Store"
"""Whose address was asked for: a port outlives whoever wrote it down, and may belong to another one by now."""
MISDIRECTED = 421
OTHERWISE = "or name another target (--target, OPTIMUS_TARGET)"
FORMS = f"{HERE} (this machine) or http://HOST:PORT"
"""What an address looks like."""
TIMEOUT_S = 75.0
QUIET_S = 40.0
"""A stream of events says something every 15 seconds; one that is quiet for so long is dead."""


class JobError(Exception):
    """What was asked cannot be had; the text says why, in the words of the command line.

    try:
        optimus.submit("python train.py", queue="nowhere")
    except optimus.JobError as error:
        print(error, error.code)
    """

    code = ""


class ApiError(JobError):
    """The scheduler says no."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class Unreachable(JobError):  # noqa: N818 - a state, and its text is the message
    """Nobody answers at the address."""

    code = "unreachable"


def settings_file() -> Path | None:
    """Where the file of settings is, or would be; None where there is no home folder either."""
    if named := os.environ.get("OPTIMUS_CONFIG"):
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(folder) if folder else Path.home() / ".config") / "optimus" / "config.toml"
    except RuntimeError:
        return None


def _named_store() -> str:
    """Where `optimus up` keeps everything if nothing is typed is where all others look for it. Of a file that cannot be
    read the command line speaks."""
    if named := os.environ.get("OPTIMUS_UP_STORE") or os.environ.get("OPTIMUS_STORE"):
        return named
    file = settings_file()
    try:
        up = tomllib.loads(file.read_text(encoding="utf-8")).get("up") if file is not None else None
    except (OSError, ValueError):
        return ""
    found = up.get("store") if isinstance(up, dict) else None
    return found if isinstance(found, str) else ""


def store_folder() -> Path:
    """Where one machine keeps what it must not forget: OPTIMUS_STORE, `store` of `[up]` in the file of settings, or the
    user's data folder."""
    if named := _named_store():
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(data) if data else Path.home() / ".local" / "share") / "optimus"
    except RuntimeError:  # no HOME, and nobody knows this user
        raise JobError("there is no home folder to keep anything in: name a folder (--store, OPTIMUS_STORE)") from None


def find_name(given: str = "") -> str:
    """How the scheduler is named: as given, OPTIMUS_TARGET, OPTIMUS_ADDRESS, or here."""
    return given or os.environ.get("OPTIMUS_TARGET") or os.environ.get("OPTIMUS_ADDRESS") or HERE


def find_address(given: str = "") -> str:
    """The one that is named; here: what `optimus up` has written down in the store. Empty if none is up."""
    named = find_name(given)
    return named if named != HERE else _kept(ADDRESS_FILE)


def find_token(address: str, given: str = "") -> str:
    """The given one, OPTIMUS_TOKEN, or that of `optimus up` of this user, if it is the one at the address."""
    found = given or os.environ.get("OPTIMUS_TOKEN", "")
    return found or (_kept(TOKEN_FILE) if address == _kept(ADDRESS_FILE) and _is_up() else "")


def _is_up() -> bool:
    """Whether somebody holds the store: a port that was left may be anybody's, and he would be told the token."""
    try:
        lock = os.open(store_folder() / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, JobError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def _kept(name: str) -> str:
    """What `optimus up` of this user has written down; nothing if it is not up."""
    try:
        return (store_folder() / name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError, JobError):
        return ""


class Connection:
    def __init__(self, address: str = "", token: str = "", timeout: float = TIMEOUT_S) -> None:
        self._given = address, token
        self._timeout = timeout
        self.address = find_address(address)
        self.token = find_token(self.address, token)
        self._here = find_name(address) == HERE
        self._wire: socket.socket | None = None
        """Of the last stream."""

    def look_again(self) -> None:
        """After a restart it may be elsewhere."""
        address, token = self._given
        self.address = find_address(address)
        self.token = find_token(self.address, token)

    def check_address(self, forms: str = FORMS) -> None:
        """Raises `Unreachable` if nobody can ever answer there. `forms`: what can be written instead."""
        if self.address:
            self._where(forms)

    def hang_up(self) -> None:
        """Ends the stream that another thread reads; there it is `Unreachable`."""
        if self._wire is not None:
            with suppress(OSError):
                self._wire.shutdown(socket.SHUT_RDWR)

    def get(self, path: str, **query: Any) -> Any:
        return self._json("GET", path, query)

    def work_out(self, path: str, **query: Any) -> Any:
        """What takes its time: as long as that is."""
        with self._asked("GET", path, query, timeout=None) as response:
            return json.loads(response.read())

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

    def events(self, path: str = "/v1/watch", until: float | None = None, **query: Any) -> Iterator[tuple[str, Any]]:
        """(event, data) of server-sent events, as they come; at most until then (of `time.monotonic`)."""
        name = ""
        with self._asked("GET", path, query, timeout=QUIET_S, until=until) as response:
            while raw := response.readline():
                if until is not None and time.monotonic() >= until:
                    return
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
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        body: bytes = b"",
        timeout: float | None = -1,
        until: float | None = None,
    ) -> Iterator[HTTPResponse]:
        """`timeout`: without a word about it, that of the connection; None is as long as it takes."""
        timeout = self._timeout if timeout == -1 else timeout
        secure, host, port = self._where()
        kind = HTTPSConnection if secure else HTTPConnection
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if self._here:
            headers[STORE_HEADER] = quote(os.path.realpath(store_folder()))
        try:
            wanted = urlencode({name: value for name, value in query.items() if value not in (None, "")})
            target = quote(path) + (f"?{wanted}" if wanted else "")
        except UnicodeError:
            raise JobError(f"{path.removeprefix('/v1/')!r} is no text (UTF-8)") from None
        try:
            connection = kind(host, port, timeout=timeout)
        except HTTPException:
            raise Unreachable(f"{self.address!r} is no address: write {HERE} or http://HOST:PORT") from None
        with closing(connection):
            try:
                connection.request(method, target, body or None, headers)
                wire = self._wire = connection.sock
                response = connection.getresponse()
            except (OSError, HTTPException, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else error
                raise Unreachable(self._nobody(f"nobody answers at {self.address} ({why})")) from error
            with closing(response):
                if response.status == MISDIRECTED and self._here:
                    raise Unreachable(self._nobody(f"at {self.address} one of another store answers"))
                if response.status >= 400:
                    raise _refusal(response)
                try:
                    if until is not None:
                        wire.settimeout(max(min(timeout or QUIET_S, until - time.monotonic()), 0.001))
                    yield response
                except (OSError, HTTPException, ValueError) as error:
                    raise Unreachable(f"what {self.address} said broke off, or cannot be read: {error}") from error

    def _nobody(self, why: str = "") -> str:
        """Why there is none to ask, and what to do about it."""
        if not self._here:
            return f"{why}: start it with `optimus up`, {OTHERWISE}"
        folder = store_folder()
        if not why and _is_up():
            return (
                f"an `optimus up` runs on store {folder}, and no address is written down there (it is just beginning, "
                f"or its disk takes nothing): name the one that it says, as in --target http://127.0.0.1:{DEFAULT_PORT}"
            )
        named = f" --store {shlex.quote(str(folder))}" if _named_store() else ""
        left = f" any more: {why}, the address that it left" if why else ""
        return f"no `optimus up` runs on store {folder}{left}: start it with `optimus up{named}`, {OTHERWISE}"

    def _where(self, forms: str = FORMS) -> tuple[bool, str, int]:
        """Whether it is secure, the host, the port."""
        if not self.address:
            raise Unreachable(self._nobody())
        try:
            parts = urlsplit(self.address if "//" in self.address else f"http://{self.address}")
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        bare = "//" not in self.address and port is None  # `foo`: rather a word that was meant otherwise than a host
        if parts.scheme not in ("http", "https") or not parts.hostname or bare or " " in self.address:
            raise Unreachable(f"{self.address} is no address: write {forms}")
        if (beyond := parts.path.strip("/")) or parts.query or parts.fragment:  # not dropped: something else was meant
            more = f"/{beyond}" if beyond else "what follows the port"
            raise Unreachable(f"{self.address} is no address, because of {more}: write http://HOST:PORT")
        secure = parts.scheme == "https"
        return secure, parts.hostname, port or (443 if secure else 80)


def _refusal(response: HTTPResponse) -> ApiError:
    raw = response.read()
    try:
        told = json.loads(raw)
        return ApiError(response.status, str(told.get("code", "")), str(told["error"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ApiError(response.status, "", f"answered {response.status}: {raw[:200].decode(errors='replace')}")
