"""kubeconfig files, as kubectl reads them.

Several files in KUBECONFIG are one: the first that names a cluster, user, context or current context decides. Paths
are relative to the file they stand in. Files of the list that do not exist are skipped, as kubectl does, but not all
of them.

Errors name the file and the entry, and what to do; values of secret fields are never part of one.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import yaml

from optimus.kube.config import Cluster
from optimus.kube.credentials import Certificate, Credentials, Fixed, Identity, TokenFile
from optimus.kube.errors import ConfigError
from optimus.kube.exec_plugin import MODES, VERSIONS, ExecPlugin, Plugin

Entry = Mapping[str, Any]


class _Found(msgspec.Struct, frozen=True):
    """An entry of a list, and where it stands."""

    file: Path
    what: str
    name: str
    entry: Entry

    def __str__(self) -> str:
        return f"{self.file}: {self.what} {self.name!r}"

    def wrong(self, text: str) -> ConfigError:
        return ConfigError(f"{self}: {text}")

    def text(self, field: str) -> str:
        value = self.entry.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(f"{field} must be text; put it in quotes")
        return value

    def path(self, field: str) -> Path | None:
        named = self.text(field)
        return self.file.parent / named if named else None

    def content(self, field: str) -> bytes:
        """Of FIELD-data (base64), which counts more, or of the file FIELD names; empty if there is neither."""
        if data := self.text(f"{field}-data"):
            try:
                return base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                raise self.wrong(f"{field}-data is not base64") from None
        path = self.path(field)
        if path is None:
            return b""
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.wrong(f"{field} {path} cannot be read: {error.strerror}") from None


def load_kubeconfig(path: str = "", context: str = "") -> Cluster:
    files = _files(path)
    read = [(file, _read(file)) for file in files if file.exists()]
    if not read:
        asked = " or ".join(str(file) for file in files)
        raise ConfigError(f"no kubeconfig at {asked}: name one with --kubeconfig or KUBECONFIG")
    chosen = context or next((str(entry["current-context"]) for _, entry in read if entry.get("current-context")), "")
    if not chosen:
        raise ConfigError(f"{read[0][0]}: no current-context; choose one of {_names(read, 'contexts')} with --context")
    wanted = _find(read, "contexts", "context", chosen)
    cluster = _find(read, "clusters", "cluster", wanted.text("cluster"), wanted)
    user = _find(read, "users", "user", wanted.text("user"), wanted) if wanted.text("user") else None
    return _cluster(wanted, cluster, user)


def _files(path: str) -> list[Path]:
    if path:
        return [Path(path).expanduser()]
    listed = [Path(one).expanduser() for one in os.environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    return listed or [Path.home() / ".kube" / "config"]


def _read(file: Path) -> Entry:
    try:
        told = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)  # its own words may show a secret that stands there
        raise ConfigError(f"{file} is not YAML{f' (line {mark.line + 1})' if mark else ''}") from None
    if told is None:
        return {}
    if not isinstance(told, dict):
        raise ConfigError(f"{file} is not a kubeconfig: `apiVersion: v1, kind: Config, clusters: …` is expected")
    return told


def _find(read: list[tuple[Path, Entry]], section: str, what: str, name: str, by: _Found | None = None) -> _Found:
    for file, entry in read:
        for one in entry.get(section) or []:
            if isinstance(one, dict) and one.get("name") == name:
                inside = one.get(what) or {}
                if not isinstance(inside, dict):
                    raise ConfigError(f"{file}: {what} {name!r} is not a mapping")
                return _Found(file, what, name, inside)
    where = f"{by} names it, but there" if by else "there"
    files = ", ".join(str(file) for file, _ in read)
    raise ConfigError(f"{where} is no {what} {name!r} in {files}; there are: {_names(read, section) or 'none'}")


def _names(read: list[tuple[Path, Entry]], section: str) -> str:
    found = [str(one.get("name")) for _, entry in read for one in entry.get(section) or [] if isinstance(one, dict)]
    return ", ".join(dict.fromkeys(found))


def _cluster(context: _Found, cluster: _Found, user: _Found | None) -> Cluster:
    server = cluster.text("server").rstrip("/")
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise cluster.wrong(f"server {server!r} is no address: write https://HOST:PORT")
    remarks = []
    if cluster.entry.get("proxy-url"):
        remarks.append(f"{cluster}: proxy-url is not used; the server is asked directly")
    verify = cluster.entry.get("insecure-skip-tls-verify") is not True
    if not verify:
        remarks.append(f"{cluster}: insecure-skip-tls-verify: whoever answers is believed")
    try:
        authority = cluster.content("certificate-authority").decode("ascii")
    except UnicodeDecodeError:
        raise cluster.wrong("certificate-authority is not a PEM certificate") from None
    return Cluster(
        server=server,
        credentials=_credentials(user, cluster, authority) if user else Fixed(Identity()),
        authority=authority if verify else "",
        verify=verify,
        server_name=cluster.text("tls-server-name"),
        namespace=context.text("namespace") or "default",
        headers=_impersonation(user) if user else (),
        source=str(context),
        remarks=tuple(remarks),
    )


def _credentials(user: _Found, cluster: _Found, authority: str) -> Credentials:
    for gone, instead in (
        ("auth-provider", "an exec plugin"),
        ("username", "a token, a certificate or an exec plugin"),
    ):
        if user.entry.get(gone):
            raise user.wrong(f"{gone} is no longer part of Kubernetes; use {instead}")
    chain, key = user.content("client-certificate"), user.content("client-key")
    if bool(chain) != bool(key):
        raise user.wrong("client-certificate and client-key belong together, and one is missing")
    certificate = Certificate(chain, key) if chain else None
    if path := user.path("tokenFile"):
        return TokenFile(path, certificate)
    if token := user.text("token"):
        return Fixed(Identity(token, certificate))
    if certificate is None and user.entry.get("exec"):
        return ExecPlugin(_plugin(user, cluster, authority))
    return Fixed(Identity("", certificate))


def _plugin(user: _Found, cluster: _Found, authority: str) -> Plugin:
    told = user.entry["exec"]
    if not isinstance(told, dict):
        raise user.wrong("exec is not a mapping")
    plugin = _Found(user.file, "exec of user", user.name, told)
    command, version = plugin.text("command"), plugin.text("apiVersion")
    mode = plugin.text("interactiveMode") or ("IfAvailable" if version.endswith("beta1") else "")
    if not command:
        raise plugin.wrong("command is missing")
    if version not in VERSIONS:
        raise plugin.wrong(f"apiVersion must be {' or '.join(VERSIONS)}, not {version!r}")
    if mode not in MODES:
        raise plugin.wrong(f"interactiveMode must be one of {', '.join(MODES)}, not {mode!r}")
    try:
        environment = {str(one["name"]): str(one["value"]) for one in told.get("env") or []}
    except (TypeError, KeyError):
        raise plugin.wrong("env is a list of {name: …, value: …}") from None
    arguments = told.get("args") or []
    if not isinstance(arguments, list):
        raise plugin.wrong("args is a list of words")
    about = None
    if told.get("provideClusterInfo"):
        about = {"server": cluster.text("server"), "tls-server-name": cluster.text("tls-server-name")}
        about["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    return Plugin(
        # With a slash, it is relative to the file; without one, it is looked for on the PATH.
        command=str(user.file.parent / command) if os.sep in command else command,
        where=str(user),
        api_version=version,
        arguments=tuple(str(word) for word in arguments),
        environment=environment,
        interactive_mode=mode,
        install_hint=plugin.text("installHint").strip(),
        cluster=about,
    )


def _impersonation(user: _Found) -> tuple[tuple[str, str], ...]:
    """Not a detail to leave out: without it we would act with more rights than the file says."""
    name, uid, groups, extra = (user.entry.get(field) for field in ("as", "as-uid", "as-groups", "as-user-extra"))
    if not name:
        if uid or groups or extra:
            raise user.wrong("as-uid, as-groups and as-user-extra need `as`")
        return ()
    headers = [("Impersonate-User", str(name))]
    if uid:
        headers.append(("Impersonate-Uid", str(uid)))
    headers += [("Impersonate-Group", str(group)) for group in groups or []]
    for key, values in (extra or {}).items():
        headers += [(f"Impersonate-Extra-{quote(str(key), safe='')}", str(value)) for value in values]
    return tuple(headers)
