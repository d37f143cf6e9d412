"""A notebook on the GPU that the scheduler gave: Jupyter, where it is installed.

Where it is not, a page at the same address stands for it: it says which GPU this is, and how to get Jupyter.
`optimus logs notebook` shows the address. NOTEBOOK_PORT names the port; else any that is free is taken.
"""

from __future__ import annotations

import http.server
import os
import shutil
import socket

INSTALL = "Jupyter is not installed here: pip install jupyterlab, then submit this again"


def main() -> None:
    port = int(os.environ.get("NOTEBOOK_PORT") or free_port())
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    given = f"GPU {gpus} of {os.environ.get('OPTIMUS_NODE', 'this machine')}"
    print(f"this notebook has {given}")
    for kind in ("lab", "notebook", "server"):
        if jupyter := shutil.which(f"jupyter-{kind}"):
            words = [jupyter, "--no-browser", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
            words += ["--ServerApp.port_retries=0", *(["--allow-root"] if os.geteuid() == 0 else [])]
            os.execv(jupyter, words)  # it prints its address, with the token that opens it
    print(INSTALL)
    stand_in(port, f"This page stands for a notebook that has {given}.\n{INSTALL}.\n")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def stand_in(port: int, text: str) -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

    with http.server.HTTPServer(("127.0.0.1", port), Page) as server:
        print(f"http://127.0.0.1:{port}/")
        server.serve_forever()


if __name__ == "__main__":
    main()
