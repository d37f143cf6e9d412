"""Three addresses: is it alive, is it ready, and its numbers.

    async with serving("0.0.0.0", 8080, alive=…, ready=…, metrics=…) as address: …

A check is a list of (name, trouble); an empty trouble is well. All of them are told, as `[+]sync ok` or
`[-]lease nobody answers`, with status 200 or 503. It runs in the loop it watches: a loop that hangs does not answer,
which is what a probe wants to know.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from optimus.telemetry.exposition import CONTENT_TYPE, Family, text_of

Checks = list[tuple[str, str]]


@asynccontextmanager
async def serving(
    host: str,
    port: int,
    *,
    alive: Callable[[], Checks],
    ready: Callable[[], Checks],
    metrics: Callable[[], Iterable[Family]],
) -> AsyncIterator[str]:
    """Port 0: any that is free. Yields the address. Raises OSError if the port is taken."""
    app = web.Application()
    app.router.add_get("/healthz", _checking(alive))
    app.router.add_get("/readyz", _checking(ready))

    async def numbers(_: web.Request) -> web.Response:
        return web.Response(body=text_of(metrics()).encode(), headers={"Content-Type": CONTENT_TYPE})

    app.router.add_get("/metrics", numbers)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        taken = runner.addresses[0]
        shown = f"[{taken[0]}]" if ":" in taken[0] else taken[0]
        yield f"http://{shown}:{taken[1]}"
    finally:
        await runner.cleanup()


def _checking(checks: Callable[[], Checks]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        found = checks()
        lines = [f"[-]{name} {trouble}" if trouble else f"[+]{name} ok" for name, trouble in found]
        well = not any(trouble for _, trouble in found)
        return web.Response(text="\n".join(lines) + "\n", status=200 if well else 503)

    return answer
