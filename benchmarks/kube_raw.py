"""The ceiling: binds of every pod that waits, to places in order, as fast as the server answers. Decides nothing.

python -m benchmarks.kube_raw KUBECONFIG
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import msgspec

from benchmarks.kube_watcher import Pod
from benchmarks.kube_world import GPUS, IN_FLIGHT, NAMESPACE
from optimus.kube import Client, Cluster, load
from optimus.kube.resources import PODS
from optimus.kube.trusting import tls_context


async def bind_bare(cluster: Cluster, namespace: str, seats: list[tuple[str, str]], in_flight: int = IN_FLIGHT) -> None:
    """The least there is: one session, the bytes of a Binding, a status that is looked at."""
    token = cluster.credentials.current().token
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept-Encoding": "identity"}
    room = asyncio.Semaphore(in_flight)
    tls = tls_context(cluster, None) or True
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=tls), headers=headers) as session:

        async def one(pod: str, node: str) -> None:
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            meta = {"name": pod, "namespace": namespace}
            body = msgspec.json.encode({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})
            async with (
                room,
                session.post(f"{cluster.server}{PODS.path(namespace, pod, 'binding')}", data=body) as answer,
            ):
                assert answer.status == 201, await answer.text()
                await answer.read()

        await asyncio.gather(*(one(*seat) for seat in seats))
    await asyncio.sleep(0)


async def bind_all(kubeconfig: str) -> None:
    cluster = load(kubeconfig)
    async with Client(cluster) as client:
        found = await client.listing(PODS, Pod, namespace=NAMESPACE)
    names = sorted(pod.metadata.name for pod in found.items if not pod.spec.node_name)
    await bind_bare(cluster, NAMESPACE, [(name, f"n{number // GPUS:04d}") for number, name in enumerate(names)])
    await asyncio.Event().wait()  # whoever asks what this has cost comes later, and ends it


if __name__ == "__main__":
    asyncio.run(bind_all(sys.argv[1]))
