"""The real server and the real kube-scheduler: which nodes it finds feasible for a pod, and where it puts it.

kube-scheduler is asked in its own way: a pod is made, and it is bound or gets the condition that it cannot be. All
nodes that pass its filters are told to an extender, which is this process; it picks one of them by lot, so that worlds
do not fill up in the order of anybody's scores. Preemption is off: it would change the world while it is looked at. Of
pods with a claim that waits for them only the verdict is wanted: the lot falls on no node, and no volume is bound.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from zlib import crc32

import msgspec
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from hack.controlplane import ControlPlane
from optimus.drivers.kube.objects import Narrow, Pod
from tests.kube.differential.drawn_devices import DEVICE_CLASSES
from tests.kube.differential.drawn_storage import CLASSES, DRIVERS
from tests.kube.differential.worlds import AT_ONCE, NAMESPACES, PRIORITIES, RUNTIME, WAITS, Json

PATIENCE_S = 30.0
SCHEDULER = """
profiles:
- plugins:
    postFilter: {{disabled: [{{name: "*"}}]}}
extenders:
- urlPrefix: http://127.0.0.1:{port}
  filterVerb: filter
  nodeCacheCapable: true
  httpTimeout: 30s
"""
FLAGS = ("--disable-admission-plugins=StorageObjectInUseProtection",)
"""Its controller does not run: claims would never go."""


class Event(Narrow, frozen=True, kw_only=True):
    type: str
    object: Pod


class Verdict(msgspec.Struct, frozen=True):
    """What kube-scheduler said: nodes that pass all filters, and where the pod is now (empty for nowhere)."""

    feasible: frozenset[str]
    node: str
    why: str
    pod: Pod


_EVENTS = msgspec.json.Decoder(Event)


class Cluster:
    """One server, one scheduler, one client; worlds follow each other."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._feasible: dict[str, frozenset[str]] = {}
        self._waiting: dict[str, asyncio.Future[Pod]] = {}
        self.undecided: set[str] = set()
        """Claims of volumes or devices that wait for their first pod."""

    async def __aenter__(self) -> Self:
        trusted = ssl.create_default_context(cafile=str(self._plane.credentials.certificate))
        self._session = ClientSession(
            self._plane.address,
            headers={"Authorization": f"Bearer {self._plane.token()}"},
            connector=TCPConnector(ssl=trusted, limit=64),
            timeout=ClientTimeout(total=None, sock_read=None),
        )
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/filter", self._filter)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        await self._furnish()
        self._watcher = asyncio.create_task(self._watch())
        self._scheduler = self._plane.start_scheduler(SCHEDULER.format(port=port))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watcher.cancel()
        with suppress(asyncio.CancelledError):
            await self._watcher
        await self._session.close()
        self._scheduler.stop()
        await self._runner.cleanup()

    # -- objects ------------------------------------------------------------------------------------------------------

    async def post(self, path: str, body: Json, accepted: tuple[int, ...] = (200, 201)) -> bytes:
        async with self._session.post(path, json=body) as answer:
            text = await answer.read()
            if answer.status not in accepted:
                raise RuntimeError(f"{path} {json.dumps(body)}: {text.decode()}")
            return text

    async def make_all(self, path: str, bodies: Sequence[Json]) -> list[bytes]:
        return await asyncio.gather(*(self.post(path.format(**body["metadata"]), body) for body in bodies))

    async def delete(self, path: str, **options: str) -> None:
        async with self._session.delete(path, params=options) as answer:
            await answer.read()

    async def patch_status(self, path: str, status: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(f"{path}/status", json={"status": status}, headers=headers) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{path} {json.dumps(status)}: {await answer.text()}")
            await answer.read()

    async def get(self, path: str) -> bytes:
        async with self._session.get(path) as answer:
            return await answer.read()

    async def _furnish(self) -> None:
        """What all worlds share; it may be there already."""
        overhead = {"podFixed": {"cpu": "250m", "memory": "120Mi"}}
        shared: list[tuple[str, Json]] = [
            ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": RUNTIME, "overhead": overhead, **_named(RUNTIME)})
        ]
        for name, labels in NAMESPACES.items():
            shared.append(("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}))
        for name, value in PRIORITIES.items():
            shared.append(("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": value, **_named(name)}))
        for name, mode in ((AT_ONCE, "Immediate"), (WAITS, "WaitForFirstConsumer")):
            kind = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode, **_named(name)}
            shared.append(("/apis/storage.k8s.io/v1/storageclasses", kind))
        for name, more in CLASSES.items():
            kind = {"volumeBindingMode": "WaitForFirstConsumer", **more, **_named(name)}
            shared.append(("/apis/storage.k8s.io/v1/storageclasses", kind))
        for name, said in DRIVERS.items():
            shared.append(("/apis/storage.k8s.io/v1/csidrivers", {"spec": said, **_named(name)}))
        for name, expressions in DEVICE_CLASSES.items():
            selectors = [{"cel": {"expression": one}} for one in expressions]
            shared.append(
                ("/apis/resource.k8s.io/v1/deviceclasses", {"spec": {"selectors": selectors}, **_named(name)})
            )
        for path, body in shared:
            await self.post(path, body, accepted=(201, 409))

    async def clear(self) -> None:
        """The world is over."""
        pods = [self.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds="0") for name in NAMESPACES]
        await asyncio.gather(*pods)
        claims = [self.delete(f"/api/v1/namespaces/{name}/persistentvolumeclaims") for name in NAMESPACES]
        devices = [self.delete(f"/apis/resource.k8s.io/v1/namespaces/{name}/resourceclaims") for name in NAMESPACES]
        room = [self.delete(f"/apis/storage.k8s.io/v1/namespaces/{name}/csistoragecapacities") for name in NAMESPACES]
        shared = ["/api/v1/nodes", "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/csinodes"]
        shared += ["/apis/resource.k8s.io/v1/resourceslices", "/apis/storage.k8s.io/v1/volumeattachments"]
        await asyncio.gather(*claims, *devices, *room, *map(self.delete, shared))

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, pod: Json) -> Verdict:
        """Make the pod and wait until it is bound or known not to be."""
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._feasible.pop(key, None)
        waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
        await self.post("/api/v1/namespaces/{namespace}/pods".format(**pod["metadata"]), pod)
        try:
            found = await asyncio.wait_for(waiting, PATIENCE_S)
        finally:
            del self._waiting[key]
        why = next((one for one in found.status.conditions or () if one.type == "PodScheduled"), None)
        return Verdict(
            self._feasible.get(key, frozenset()),
            found.spec.node_name or "",
            "" if found.spec.node_name or why is None else f"{why.reason}: {why.message}",
            found,
        )

    async def take_away(self, pod: Json) -> None:
        path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
        await self.delete(path, gracePeriodSeconds="0")

    async def _filter(self, request: web.Request) -> web.Response:
        asked = await request.json()
        meta, names = asked["Pod"]["metadata"], asked["NodeNames"]
        key = f"{meta['namespace']}/{meta['name']}"
        self._feasible[key] = frozenset(names)
        used = (
            one.get("persistentVolumeClaim", {}).get("claimName") for one in asked["Pod"]["spec"].get("volumes", ())
        )
        devices = (one.get("resourceClaimName") for one in asked["Pod"]["spec"].get("resourceClaims", ()))
        if any(f"{meta['namespace']}/{name}" in self.undecided for name in (*used, *devices)):
            return web.json_response({"NodeNames": []})
        drawn = sorted(names)[crc32(f"{key}{names[0].partition('-')[0]}".encode()) % len(names)]
        return web.json_response({"NodeNames": [drawn]})

    async def _watch(self) -> None:
        listed: dict[str, Any] = json.loads(await self.get("/api/v1/pods"))
        version = listed["metadata"]["resourceVersion"]
        while True:
            options = {"watch": "1", "resourceVersion": version}
            async with self._session.get("/api/v1/pods", params=options) as answer:
                async for line in _lines(answer.content):
                    event = _EVENTS.decode(line)
                    version = event.object.metadata.resource_version or version
                    waiting = self._waiting.get(event.object.key)
                    if waiting is not None and not waiting.done() and _is_decided(event):
                        waiting.set_result(event.object)


def _named(name: str) -> Json:
    return {"metadata": {"name": name}}


async def _lines(stream: Any) -> Any:
    rest = b""
    async for chunk in stream.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


def _is_decided(event: Event) -> bool:
    if event.type == "DELETED":
        return False
    pod = event.object
    return bool(pod.spec.node_name) or any(
        one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions or ()
    )
