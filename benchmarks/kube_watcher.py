"""Who sees when each pod comes and when it is bound: a process of its own, the same for every contender.

Why: a scheduler must not be asked how fast it is. Times are of the monotonic clock, which all processes share.

    python -m benchmarks.kube_watcher KUBECONFIG COUNT [SECONDS]
    ▸ synced
    ▸ {"bound": [t, …], "waited": [s, …], "late": 0}     once COUNT pods are bound, or time is up

`waited`: from when a pod was first seen to when it was seen bound, for those seen without a node.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time

import msgspec

from benchmarks.kube_world import NAMESPACE
from optimus.kube import Change, Client, Meta, Reflector, load
from optimus.kube.resources import PODS


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class Pod(msgspec.Struct, gc=False):
    metadata: Meta
    spec: PodSpec


class Seen:
    def __init__(self, count: int) -> None:
        self.came: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.enough = asyncio.Event()
        self._count = count

    def hear(self, change: Change[Pod]) -> None:
        if change.object is None:
            return
        now = time.monotonic()
        uid = change.object.metadata.uid
        if not change.object.spec.node_name:
            self.came.setdefault(uid, now)
        elif uid in self.came and uid not in self.bound:
            self.bound[uid] = now
            if len(self.bound) >= self._count:
                self.enough.set()


async def watch(kubeconfig: str, count: int, seconds: float) -> None:
    seen = Seen(count)
    async with Client(load(kubeconfig)) as client:
        reflector = Reflector(client, PODS, Pod, seen.hear, namespace=NAMESPACE)
        running = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        print("synced", flush=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(seen.enough.wait(), seconds)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    waited = [round(at - seen.came[uid], 4) for uid, at in seen.bound.items()]
    told = {"bound": sorted(seen.bound.values()), "waited": sorted(waited), "late": len(seen.came) - len(seen.bound)}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(watch(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 600.0))
