"""Everything that is watched: one reflector for each kind, all of them feeding the mirror.

Why: the mirror is told changes, whoever they come from; this is where they come from.
Owns: which kinds are watched, and reading owners that nobody watches.
Must not: look into an object.

Kinds of owners come and go with their CRDs: what is served is looked up again every DISCOVER_S.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping import Kinds, ObjectRef
from optimus.drivers.kube.grouping.podgroups import APIS
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import (
    Anything,
    Namespace,
    Node,
    PersistentVolume,
    Pod,
    ResourceClaim,
    StorageClass,
    StorageNode,
    VolumeClaim,
)
from optimus.drivers.kube.volumes import Around, attach_limits
from optimus.kube import Change, Client, KubeError, Reflector, Resource, What
from optimus.kube.decoding import Object
from optimus.kube.errors import Forbidden, NotFound
from optimus.kube.resources import NAMESPACES, NODES, PODS

LOG = logging.getLogger(__name__)
DISCOVER_S = 30.0
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
STORAGE_NODES = Resource("storage.k8s.io", "v1", "csinodes", namespaced=False)
DEVICES = "resource.k8s.io/ResourceClaim"
PATIENCE_S = 2.0
"""An owner that is watched, and has not been seen after this time, is asked for by name."""
T = TypeVar("T", bound=Object)


class Watching:
    def __init__(self, client: Client, mirror: Mirror, kinds: Kinds, wake: Callable[[], object]) -> None:
        self.discovery = Discovery(client)
        self._client, self._mirror, self._wake = client, mirror, wake
        self._owner_kinds = sorted({kind.name for kind in kinds if "/" in kind.name} | {api.kind for api in APIS})
        self.reflectors: dict[str, Reflector[Any]] = {}
        self.heard: Callable[[Pod | None, Pod], object] = lambda _before, _now: None
        """Told of a pod as it was and as it is, before the mirror is."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._reading: set[tuple[str, str, str]] = set()
        self._around: dict[str, dict[str, Any]] = {"claims": {}, "volumes": {}, "classes": {}, "devices": {}}

    async def start(self) -> None:
        """Returns once everything that is there has been told."""
        await self.discovery.refresh()
        self._watch("nodes", NODES, Node, self._node)
        self._watch("pods", PODS, Pod, self._pod)
        self._watch("namespaces", NAMESPACES, Namespace, self._namespace)
        self._watch("claims", CLAIMS, VolumeClaim, lambda change: self._beside("claims", change))
        self._watch("volumes", VOLUMES, PersistentVolume, lambda change: self._beside("volumes", change))
        self._watch("classes", CLASSES, StorageClass, lambda change: self._beside("classes", change))
        self._watch("storage nodes", STORAGE_NODES, StorageNode, self._storage_node)
        if (devices := await self.discovery.resource(DEVICES)) is not None:
            self._watch("devices", devices, ResourceClaim, lambda change: self._beside("devices", change))
        await self._watch_owners()
        await asyncio.gather(*(one.synced.wait() for one in self.reflectors.values()))
        self._tasks.append(asyncio.create_task(self._keep_discovering()))

    def watch_more(self, name: str, resource: Resource, kind: type[T], tell: Callable[[Change[T]], object]) -> None:
        """Of others: queues, pools."""

        def heard(change: Change[T]) -> None:
            tell(change)
            self._wake()

        self._watch(name, resource, kind, heard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def read_owners(self) -> None:
        """Begin to read those that the mirror misses."""
        for ref in self._mirror.groups.missing():
            key = (ref.kind, ref.namespace, ref.uid or ref.name)
            if key not in self._reading:
                self._reading.add(key)
                self._tasks.append(asyncio.create_task(self._read_owner(ref, key)))

    async def _read_owner(self, ref: ObjectRef, key: tuple[str, str, str]) -> None:
        try:
            if ref.kind in self.reflectors:
                await asyncio.sleep(PATIENCE_S)  # its reflector tells it, most of the time
                if ref not in self._mirror.groups.missing():
                    return
            resource = await self.discovery.resource(ref.kind, ref.api_version)
            if resource is None:
                self._mirror.owner_absent(ref)
                return
            found = await self._client.get(resource, ref.name, Anything, namespace=ref.namespace)
            if ref.uid and found.metadata.uid != ref.uid:
                self._mirror.owner_absent(ref)
            else:
                self._mirror.owner(with_kind(found, resource, ref.kind))
        except (NotFound, Forbidden):
            self._mirror.owner_absent(ref)
        except KubeError as error:
            LOG.info("%s %s/%s cannot be read now: %s", ref.kind, ref.namespace, ref.name, error)
            await asyncio.sleep(PATIENCE_S)
        finally:
            self._reading.discard(key)
            self._wake()

    async def _keep_discovering(self) -> None:
        while True:
            await asyncio.sleep(DISCOVER_S)
            try:
                await self.discovery.refresh()
                await self._watch_owners()
            except KubeError as error:
                LOG.info("what is served cannot be read now: %s", error)

    async def _watch_owners(self) -> None:
        for kind in self._owner_kinds:
            if kind not in self.reflectors and (resource := await self.discovery.resource(kind)) is not None:
                self._watch(kind, resource, Anything, self._owner_of(kind, resource))

    def _watch(self, name: str, resource: Resource, kind: type[T], tell: Callable[[Change[T]], object]) -> None:
        reflector = self.reflectors[name] = Reflector(self._client, resource, kind, tell)
        self._tasks.append(asyncio.create_task(reflector.run()))

    # -- changes ------------------------------------------------------------------------------------------------------

    def _node(self, change: Change[Node]) -> None:
        if change.object is not None and change.what is not What.DELETED:
            self._mirror.node(change.object)
        elif change.what is What.DELETED:
            self._mirror.node_gone(change.key)
        self._wake()

    def _storage_node(self, change: Change[StorageNode]) -> None:
        gone = change.what is What.DELETED
        if gone or change.object is not None:
            self._mirror.storage_node(change.key, attach_limits(None if gone else change.object))
        self._wake()

    def _pod(self, change: Change[Pod]) -> None:
        if change.what is What.DELETED:
            self._mirror.pod_gone(change.uid)
        elif change.object is not None:
            self.heard(self._mirror.pods.get(change.uid), change.object)
            self._mirror.pod(change.object)
        self._wake()

    def _namespace(self, change: Change[Namespace]) -> None:
        if change.what is What.DELETED:
            self._mirror.namespace_gone(change.key)
        elif change.object is not None:
            self._mirror.namespace(change.object)
        self._wake()

    def _beside(self, kind: str, change: Change[Any]) -> None:
        if change.what is What.DELETED:
            self._around[kind].pop(change.key, None)
        elif change.object is not None:
            self._around[kind][change.key] = change.object
        self._mirror.surroundings(Around(**self._around))
        self._wake()

    def _owner_of(self, kind: str, resource: Resource) -> Callable[[Change[Anything]], None]:
        def tell(change: Change[Anything]) -> None:
            if change.what is What.DELETED:
                self._mirror.owner_gone(change.uid)
            elif change.object is not None:
                self._mirror.owner(with_kind(change.object, resource, kind))
            self._wake()

        return tell


def with_kind(thing: Anything, resource: Resource, kind: str) -> Anything:
    """Lists do not say of what kind their items are."""
    if thing.kind:
        return thing
    return Anything(
        api_version=resource.api_version,
        kind=kind.rpartition("/")[2],
        metadata=thing.metadata,
        spec=thing.spec,
        status=thing.status,
    )
