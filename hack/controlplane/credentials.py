"""Who is who at the server: one certificate, a token for each user, and kubeconfig files.

One self-signed certificate is the server's, the authority and the key of service accounts at once: this is a plane on
the loopback address that lives as long as its test. Users come with tokens, so that rights can be tried for real.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path

ADMIN = "admin"
SYSTEM_USERS = {ADMIN: "system:masters"}
"""Everything else is given by RBAC."""


class Credentials:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate, self.key = folder / "server.crt", folder / "server.key"
        self.token_file = folder / "tokens.csv"
        self._kept = folder / "tokens.json"
        self.tokens: dict[str, str] = json.loads(self._kept.read_text()) if self._kept.exists() else {}

    def make(self, users: dict[str, str]) -> None:
        """`users`: name -> groups, separated by commas. What is there is kept: others may use it already."""
        if not self.certificate.exists():
            self._make_certificate()
        everybody = {**SYSTEM_USERS, **users}
        self.tokens = {name: self.tokens.get(name) or secrets.token_hex(16) for name in everybody}
        lines = [f'{self.tokens[name]},{name},{name},"{groups}"' for name, groups in everybody.items()]
        self.token_file.write_text("\n".join(lines) + "\n")
        self._kept.write_text(json.dumps(self.tokens))

    def kubeconfig(self, address: str, user: str = ADMIN) -> Path:
        """A file for a client that speaks as this user."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        named = [{"name": "rig", "cluster": {"server": address, "certificate-authority": str(self.certificate)}}]
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": named,
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": user}}],
            "current-context": "rig",
        }
        text = json.dumps(config, indent=1)
        if not path.exists() or path.read_text() != text:  # somebody may be reading it
            new = path.with_suffix(".new")
            new.write_text(text)
            new.chmod(0o600)
            new.rename(path)
        return path

    def _make_certificate(self) -> None:
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=optimus-rig"]
        words += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"]
        words += ["-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign"]
        words += ["-keyout", str(self.key), "-out", str(self.certificate)]
        subprocess.run(words, check=True, capture_output=True)
        self.key.chmod(0o600)
