"""The ceiling: binds of every pod that waits, to places in order, as fast as the server answers. Decides nothing.

python -m benchmarks.kube_raw KUBECONFIG
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from benchmarks.kube_watcher import Pod
from benchmarks.kube_world import GPUS, IN_FLIGHT, NAMESPACE
from optimus.kube import Client, Cluster, load
from optimus.kube.resources import PODS
from optimus.kube.switchboard import Switchboard
from optimus.kube.trusting import tls_context


async def bind_bare(cluster: Cluster, namespace: str, seats: list[tuple[str, str]], in_flight: int = IN_FLIGHT) -> None:
    """The least there is: open connections, the bytes of a Binding, a status that is looked at."""
    token, tls = cluster.credentials.current().token, tls_context(cluster, None)
    board = Switchboard(cluster)
    head = f"Host: {board.host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    left = iter(seats)

    async def some() -> None:
        for pod, node in left:
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            meta = {"name": pod, "namespace": namespace}
            body = msgspec.json.encode({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})
            path = f"{board.prefix}{PODS.path(namespace, pod, 'binding')}"
            request = f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            answer = await board.ask(request, tls, timeout_s=60.0, guard=None, harmless=False)
            assert answer.status == 201, answer.body

    await asyncio.gather(*(some() for _ in range(in_flight)))
    board.close()


async def bind_all(kubeconfig: str) -> None:
    cluster = load(kubeconfig)
    async with Client(cluster) as client:
        found = await client.listing(PODS, Pod, namespace=NAMESPACE)
    names = sorted(pod.metadata.name for pod in found.items if not pod.spec.node_name)
    await bind_bare(cluster, NAMESPACE, [(name, f"n{number // GPUS:04d}") for number, name in enumerate(names)])
    await asyncio.Event().wait()  # whoever asks what this has cost comes later, and ends it


if __name__ == "__main__":
    asyncio.run(bind_all(sys.argv[1]))
