"""Who we are to the server: nobody, a token, a token in a file that changes, a certificate, or what a plugin says.

Why: tokens expire while a scheduler runs for months; what to do then differs, how to ask for the current one does not.
Owns: the current identity, and when it is read again.
Must not: show a secret in a repr, an error or a log.

Everything here may be called from any thread, and `current` may block (a file is read, a plugin runs) unless `at_hand`
says it does not: an event loop asks in a thread when it has to wait.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Protocol

import msgspec

from optimus.kube.errors import ConfigError

REREAD_S = 60.0
"""A token in a file is replaced long before it expires; nobody tells when."""


class Certificate(msgspec.Struct, frozen=True):
    """A client certificate and its key, as PEM."""

    chain: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Certificate(…)"


class Identity(msgspec.Struct, frozen=True):
    token: str = ""
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        has = [name for name, there in (("token", self.token), ("certificate", self.certificate)) if there]
        return f"Identity({' and '.join(has) or 'nobody'})"


class Credentials(Protocol):
    def at_hand(self) -> bool:
        """Whether `current` answers without waiting for anything."""

    def current(self) -> Identity:
        """Raises `ConfigError` if there is none to be had."""

    def refused(self, identity: Identity) -> bool:
        """The server did not take it (401). Whether `current` may give a better one now."""


class Fixed:
    """What never changes."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def at_hand(self) -> bool:
        return True

    def current(self) -> Identity:
        return self._identity

    def refused(self, identity: Identity) -> bool:
        return identity != self._identity


class TokenFile:
    """A token that somebody else keeps fresh in a file; the last good one is used while the file cannot be read."""

    def __init__(self, path: Path, certificate: Certificate | None = None, reread_s: float = REREAD_S) -> None:
        self._path = path
        self._certificate = certificate
        self._reread_s = reread_s
        self._read_at = -reread_s
        self._identity: Identity | None = None
        self._alone = threading.Lock()

    def at_hand(self) -> bool:
        return True  # a small file: reading it takes less than asking a thread to

    def current(self) -> Identity:
        with self._alone:
            if self._identity is None or time.monotonic() - self._read_at >= self._reread_s:
                self._identity = self._read()
                self._read_at = time.monotonic()
            return self._identity

    def refused(self, identity: Identity) -> bool:
        with self._alone:
            if identity == self._identity:
                self._identity = self._read()
                self._read_at = time.monotonic()
            return identity != self._identity

    def _read(self) -> Identity:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._identity is not None:
                return self._identity
            raise ConfigError(f"the token file {self._path} cannot be read: {_why(error)}") from None
        if not token:
            if self._identity is not None:
                return self._identity
            raise ConfigError(f"the token file {self._path} is empty")
        return Identity(token, self._certificate)


def _why(error: OSError | UnicodeDecodeError) -> str:
    """Without the content: the words of a decoding error show bytes of what may be a secret."""
    return error.strerror or "unknown" if isinstance(error, OSError) else "it is not text"
