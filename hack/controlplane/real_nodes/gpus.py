"""GPUs for nodes that have none: `nvidia.com/gpu` in the status of each node, as a device plugin would have it said.

    python -m hack.controlplane.real_nodes.gpus KUBECONFIG COUNT

A kubelet keeps what it finds there and makes it allocatable; one that was started anew says 0 until somebody tells it
again. So this looks once a second, until it is ended.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from hack.controlplane.real_nodes.node import GPU, LABELS

LOOK_S = 1.0


class Server:
    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.address = cluster["server"]
        self._trusted = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._token = config["users"][0]["user"]["token"]

    def ask(self, path: str, patch: Any = None) -> Any:
        request = urllib.request.Request(self.address + path, method="GET" if patch is None else "PATCH")
        request.add_header("Authorization", f"Bearer {self._token}")
        if patch is not None:
            request.data = json.dumps(patch).encode()
            request.add_header("Content-Type", "application/merge-patch+json")
        with urllib.request.urlopen(request, timeout=10, context=self._trusted) as answer:
            return json.loads(answer.read())


def renew(server: Server, count: str) -> None:
    """Only nodes of ours: those that say which GPUs they have."""
    for node in server.ask("/api/v1/nodes")["items"]:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
        ours = LABELS.items() <= labels.items()
        if ours and node["status"].get("capacity", {}).get(GPU) != count:
            has = {"status": {"capacity": {GPU: count}, "allocatable": {GPU: count}}}
            server.ask(f"/api/v1/nodes/{name}/status", has)


def main() -> None:
    path, count = sys.argv[1:]
    server = Server(Path(path))
    while True:
        try:
            renew(server, count)
        except OSError as error:  # the server may be away; it comes back, or this is ended
            print(f"not renewed: {error}", flush=True)
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
