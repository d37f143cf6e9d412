"""A scheduler that asks for replicas, says which have started, and then waits to be killed.

python short_lived_scheduler.py RUNS COUNT SCRIPT [JOB]
"""

from __future__ import annotations

import asyncio
import sys

from optimus.drivers.local.keeping.events import Event, Request
from optimus.drivers.local.keeping.keeper import Keeper


def tell(event: Event) -> None:
    print(type(event).__name__, event.attempt, flush=True)


async def main(runs: str, count: int, script: str, job: str = "") -> None:
    keeper = Keeper(runs, tell)
    await keeper.start()
    for number in range(count):
        env = {"PATH": "/bin:/usr/bin", "N": str(number)}
        keeper.spawn(Request(f"r{number}", ("/bin/sh", "-c", script), env, "/", job=job))
    await asyncio.sleep(3600)


asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
