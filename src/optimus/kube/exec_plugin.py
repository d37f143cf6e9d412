"""Credentials from a program that a kubeconfig names (`exec`, client.authentication.k8s.io/v1 and v1beta1).

Why: this is how clouds and companies hand out short tokens.
Owns: running the program, and keeping what it said until shortly before that expires, or until the server refuses it.
Must not: show what the program printed: it is the secret itself. Its error output goes where ours goes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from optimus.kube.credentials import Certificate, Identity
from optimus.kube.errors import ConfigError

GROUP = "client.authentication.k8s.io/"
VERSIONS = (GROUP + "v1", GROUP + "v1beta1")
MODES = ("Never", "IfAvailable", "Always")
EARLY = timedelta(seconds=30)
"""A token that ends while a request is on its way is no token."""
PATIENCE_S = 60.0
"""For a program that talks to nobody; one that asks a person may take its time."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """`where`: the file and user it is named in, for errors."""

    command: str
    where: str
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Plugin({self.command!r})"  # arguments and environment may hold secrets


class _Said(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Said | None = None


class ExecPlugin:
    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._identity: Identity | None = None
        self._until: datetime | None = None
        self._alone = threading.Lock()

    def __repr__(self) -> str:
        return f"ExecPlugin({self._plugin.command!r})"

    def at_hand(self) -> bool:
        return self._identity is not None and (self._until is None or datetime.now(UTC) < self._until)

    def current(self) -> Identity:
        with self._alone:
            if self._identity is None or not self.at_hand():
                self._identity, self._until = self._ask()
            return self._identity

    def refused(self, identity: Identity) -> bool:
        with self._alone:
            if identity == self._identity:
                self._identity = None
            return True

    def _ask(self) -> tuple[Identity, datetime | None]:
        said = self._said(self._run())
        certificate = None
        if said.client_certificate_data and said.client_key_data:
            certificate = Certificate(said.client_certificate_data.encode(), said.client_key_data.encode())
        if not said.token and certificate is None:
            raise self._wrong("gave neither a token nor a certificate with its key")
        until = said.expiration_timestamp
        if until is not None and until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return Identity(said.token or "", certificate), None if until is None else until - EARLY

    def _run(self) -> bytes:
        plugin = self._plugin
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if plugin.interactive_mode == "Always" and not terminal:
            raise self._wrong("wants to ask a person (interactiveMode: Always), and there is no terminal")
        interactive = terminal and plugin.interactive_mode != "Never"
        spec: dict[str, Any] = {"interactive": interactive}
        if plugin.cluster is not None:
            spec["cluster"] = dict(plugin.cluster)
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        found = shutil.which(plugin.command, path=environment.get("PATH"))
        if found is None:
            raise self._wrong("is not installed, or not on the PATH")
        try:
            done = subprocess.run(  # noqa: S603 - the user's own kubeconfig names it
                [found, *plugin.arguments],
                env=environment,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=None if interactive else PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._wrong(f"said nothing for {PATIENCE_S:.0f} s") from None
        except OSError as error:
            raise self._wrong(f"cannot be run: {error.strerror}") from None
        if done.returncode:
            raise self._wrong(f"ended with {done.returncode}; what it said about it is above, or in the log")
        return done.stdout

    def _said(self, raw: bytes) -> _Said:
        try:
            told = msgspec.json.decode(raw, type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise self._wrong("printed something that is no ExecCredential") from None
        if told.kind != "ExecCredential" or told.api_version != self._plugin.api_version:
            raise self._wrong(
                f"printed another kind or version; {self._plugin.api_version} ExecCredential was asked for"
            )
        if told.status is None:
            raise self._wrong("printed an ExecCredential without a status")
        return told.status

    def _wrong(self, what: str) -> ConfigError:
        hint = f"\n{self._plugin.install_hint}" if self._plugin.install_hint else ""
        return ConfigError(f"{self._plugin.where}: the plugin {self._plugin.command!r} {what}{hint}")
