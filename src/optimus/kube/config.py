"""Which API server, trusted how, as whom: read from a kubeconfig or from the folder every pod is given.

    cluster = load()                                # what kubectl would use here; inside a pod, its service account
    cluster = load("prod.yaml", context="eu-1")

A `Cluster` is data; `Client` and `Election` take one. `remarks` are words about what was found and not used: whoever
has a face shows them.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from optimus.kube.credentials import Credentials, TokenFile
from optimus.kube.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    credentials: Credentials
    authority: str = ""
    """PEM of who signed the server's certificate; empty: whoever this machine trusts."""
    verify: bool = True
    server_name: str = ""
    """The name the certificate is for, where it is not that of the address."""
    namespace: str = "default"
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request: on whose behalf."""
    source: str = ""
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Cluster({self.server!r} from {self.source})"


def load(path: str = "", context: str = "") -> Cluster:
    """The file or context that is named; else KUBECONFIG; else, inside a pod, its service account; else the user's."""
    if in_a_pod() and not (path or context or os.environ.get("KUBECONFIG")):
        return in_cluster()
    from optimus.kube.kubeconfig import load_kubeconfig  # noqa: PLC0415 - it needs `Cluster`

    return load_kubeconfig(path, context)


def in_a_pod() -> bool:
    return bool(os.environ.get(HOST)) and (SERVICE_ACCOUNT / "token").exists()


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> Cluster:
    """As the service account of the pod we are in. The token is replaced about hourly and read again."""
    host, port = os.environ.get(HOST, ""), os.environ.get(PORT, "443")
    if not host:
        raise ConfigError(
            f"{HOST} is not set, so this is not inside a pod: name a kubeconfig (--kubeconfig, KUBECONFIG)"
        )
    credentials = TokenFile(folder / "token")
    credentials.current()  # a pod without a token is told at once
    try:
        authority = (folder / "ca.crt").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"{folder / 'ca.crt'} cannot be read: mount the service account (automountServiceAccountToken)"
        ) from None
    try:
        namespace = (folder / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        namespace = ""
    return Cluster(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=credentials,
        authority=authority,
        namespace=namespace or "default",
        source=f"the service account in {folder}",
    )
