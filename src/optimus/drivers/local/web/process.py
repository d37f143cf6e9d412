"""The process that serves people: `python -m optimus.drivers.local.web.process`.

Why: it may be slow, busy or gone, and no job notices.
Owns: its start, on a socket that it is given, and its end when nobody holds the other side of a pipe any more.
Must not: outlive the command that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from optimus.drivers.local.running import SOCKET
from optimus.drivers.local.web.mirror import Mirror
from optimus.drivers.local.web.server import application

NICER = 5
"""Where there are not cores enough, the scheduler goes first; among others it still gets its part."""
END_S = 1.0
"""For streams that are open when it ends; whoever follows one comes again."""


async def serve(listening: socket.socket, store: Path, token: str, parent: int, explainer: Sequence[str]) -> None:
    served = application(Mirror(store / SOCKET), store, token=token, explainer=explainer)
    runner = web.AppRunner(served, access_log=None, shutdown_timeout=END_S)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(parent, gone.set)  # the pipe is readable when its other end is closed
    await gone.wait()
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--explainer", default="", help="a module that explains")
    chosen = parser.parse_args()
    os.nice(NICER)
    listening = socket.socket(fileno=chosen.socket)
    token = os.environ.pop("OPTIMUS_SERVE_TOKEN", "")
    explainer = (sys.executable, "-m", chosen.explainer) if chosen.explainer else ()
    asyncio.run(serve(listening, chosen.store, token, chosen.parent, explainer))


if __name__ == "__main__":
    main()
