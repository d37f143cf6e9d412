"""A kubelet that knows one thing: what containers have written. The API server asks it, as it asks real ones."""

from __future__ import annotations

import ssl
import threading
import time
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
        self.ended: set[str] = set()
        """Containers that write no more."""
        self.asked: list[dict[str, list[str]]] = []
        self.cut = 0
        """So many of those who asked are told nothing more, as if the connection had broken."""
        self.over = False
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                pod, query = parts.path.split("/")[3], parse_qs(parts.query)
                found = (kubelet.before if "previous" in query else kubelet.lines).get(pod, [])
                since, tail = query.get("sinceTime", [""])[0], int(query.get("tailLines", ["1000000"])[0])
                shown = [line for line in found[max(len(found) - tail, 0) :] if line >= since.removesuffix("Z")]
                kubelet.asked.append(query)
                self.send_response(200)
                self.end_headers()
                self._say(shown)
                told, number = len(found), len(kubelet.asked)
                while "follow" in query and number > kubelet.cut and not kubelet.over:
                    over = pod in kubelet.ended
                    self._say(found[told:])
                    told = len(found)
                    if over:
                        return
                    time.sleep(0.02)

            def _say(self, lines: list[str]) -> None:
                self.wfile.write("".join(f"{line}\n" for line in lines).encode())
                self.wfile.flush()

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
        self.over = True
        self._server.shutdown()
        self._server.server_close()
