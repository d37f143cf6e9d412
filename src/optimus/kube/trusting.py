"""TLS: whom we trust, and the certificate we show.

Python takes a certificate with its key only from files: they exist, for this user alone, while they are read.
"""

from __future__ import annotations

import ssl
import tempfile
from urllib.parse import urlsplit

from optimus.kube.config import Cluster
from optimus.kube.credentials import Certificate
from optimus.kube.errors import ConfigError


def tls_context(cluster: Cluster, certificate: Certificate | None) -> ssl.SSLContext | None:
    """None for an address without TLS."""
    if urlsplit(cluster.server).scheme == "http":
        return None
    try:
        context = ssl.create_default_context(cadata=cluster.authority or None)
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{cluster.source}: the certificate authority is not a PEM certificate") from None
    if not cluster.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        with tempfile.NamedTemporaryFile() as chain, tempfile.NamedTemporaryFile() as key:
            for file, content in ((chain, certificate.chain), (key, certificate.key)):
                file.write(content)
                file.flush()
            try:
                context.load_cert_chain(chain.name, key.name, password=_no_password)
            except (ssl.SSLError, ValueError, OSError):
                raise ConfigError(
                    f"{cluster.source}: the client certificate and its key cannot be used: "
                    "they must be PEM, without a password, and belong together"
                ) from None
    return context


def _no_password() -> str:
    """Without this, a key with a password would be asked for at the terminal of a scheduler."""
    return ""
