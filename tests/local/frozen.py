"""A scheduler that stands still: whatever it was asked first, it answers again, so that several can ask one moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from optimus.client import Connection


@contextmanager
def frozen(api: Connection) -> Iterator[str]:
    """Its address."""
    known: dict[str, bytes] = {}
    lock = threading.Lock()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with lock:
                if self.path not in known:
                    known[self.path] = api.raw(self.path)
            kind = "application/msgpack" if self.path in ("/v1/state", "/v1/past") else "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(known[self.path])))
            self.end_headers()
            self.wfile.write(known[self.path])

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
