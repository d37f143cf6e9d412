"""A kubelet that knows one thing: what containers have written. The API server asks it, as it asks real ones."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}
status:
  addresses: [{{type: InternalIP, address: 127.0.0.1}}]
  daemonEndpoints: {{kubeletEndpoint: {{Port: {port}}}}}
  allocatable: {{cpu: "4", memory: 8Gi, pods: "10"}}
"""


class Kubelet:
    def __init__(self, folder: Path) -> None:
        """`folder`: of the control plane, whose certificate will do."""
        self.lines: dict[str, list[str]] = {}
        """By pod: `TIME text`, as a kubelet writes them with timestamps."""
        self.before: dict[str, list[str]] = {}
        """Of the container before its last restart."""
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                pod, query = parts.path.split("/")[3], parse_qs(parts.query)
                found = (kubelet.before if "previous" in query else kubelet.lines).get(pod, [])
                tail = int(query.get("tailLines", ["1000000"])[0])
                body = "".join(f"{line}\n" for line in found[max(len(found) - tail, 0) :]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def node(self, name: str) -> str:
        return NODE.format(name=name, port=self.port)

    def write(self, pod: str, second: float, text: str) -> None:
        self.lines.setdefault(pod, []).append(f"2026-01-01T00:00:{second:012.9f}Z {text}")

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()
