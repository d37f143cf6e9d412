"""Looking at a cluster once: everything that the controller watches, listed with the rights of who looks.

Why: a command lives for a second; a list is cheaper than a watch and does not wait for one.
Owns: what has to be readable for the brain to be asked, and what is looked at instead where it is not: one namespace.
Must not: retry what is forbidden.

The brain has to know all nodes, pods, queues and pools, or its answers would be about another cluster. Kinds of owners
that may not be listed, volumes, priority classes and the like only make an answer less exact; they are told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from msgspec import structs

from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.desk.deciding import chosen
from optimus.drivers.kube.desk.sight import Denied, Sight
from optimus.drivers.kube.device_objects import (
    API_VERSION,
    ClaimTemplate,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping import Kinds, ObjectRef
from optimus.drivers.kube.grouping.podgroups import APIS
from optimus.drivers.kube.objects import (
    Anything,
    Namespace,
    Node,
    PersistentVolume,
    Pod,
    PriorityClass,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageNode,
    VolumeAttachment,
    VolumeClaim,
)
from optimus.drivers.kube.queues import POOLS, QUEUES, Unreadable, read_pool, read_queue
from optimus.drivers.kube.volumes import Around, attach_limits
from optimus.drivers.kube.watching import (
    ATTACHMENTS,
    CAPACITIES,
    CLAIM_TEMPLATES,
    CLAIMS,
    CLASSES,
    DEVICE_CLASSES,
    DEVICES,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    SLICES,
    STORAGE_DRIVERS,
    STORAGE_NODES,
    VOLUMES,
    with_kind,
)
from optimus.kube import Client, Resource
from optimus.kube.decoding import Object
from optimus.kube.errors import Forbidden, NotFound
from optimus.kube.resources import NAMESPACES, NODES, PODS
from optimus.model.queues import Queue

NEEDED = (NODES, PODS, QUEUES, POOLS)
DEEPEST = 8
T = TypeVar("T", bound=Object)


async def look(client: Client, kinds: Kinds, scheduler_name: str, namespace: str, *, wide: bool = True) -> Sight:
    """At the whole cluster; where that may not be seen, or is not needed (`wide`), at one namespace."""
    discovery = Discovery(client)
    await discovery.refresh()
    if wide:
        reading = _Reading(client, discovery, kinds, scheduler_name, "")
        if await reading.everything():
            return reading.sight
        narrow = _Reading(client, discovery, kinds, scheduler_name, namespace)
        narrow.denied += [one for one in reading.denied if one.what in map(named, NEEDED)]
        await narrow.everything()
        return narrow.sight
    reading = _Reading(client, discovery, kinds, scheduler_name, namespace)
    await reading.everything()
    return reading.sight


def named(resource: Resource) -> str:
    """As rules of RBAC name it, and as people type it."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


class _Reading:
    def __init__(self, client: Client, discovery: Discovery, kinds: Kinds, scheduler_name: str, namespace: str) -> None:
        self.sight = Sight(kinds, scheduler_name)
        self.denied: list[Denied] = []
        self._client, self._discovery, self._namespace = client, discovery, namespace
        self._kinds = sorted({kind.name for kind in kinds if "/" in kind.name} | {api.kind for api in APIS})

    async def everything(self) -> bool:
        """Whether it is enough for the brain; of one namespace, that is not asked."""
        if not self._namespace and not await self._cluster():
            await self._allowed(PODS)
            return False
        mirror, namespace = self.sight.mirror, self._namespace
        self.sight.namespace = namespace
        if namespace:
            with suppress(Forbidden, NotFound):
                mirror.tenants.namespace(await self._client.get(NAMESPACES, namespace, Namespace))
            await self._queues()
        await self._priorities()
        await self._owners()
        pods = await self._listed(PODS, Pod)
        for pod in sorted(pods or (), key=lambda one: one.metadata.creation_timestamp or ""):
            mirror.pod(pod)
        if pods is None and not namespace:
            return False
        await self._missing()
        self.sight.denied = tuple(dict.fromkeys(self.denied))
        self.sight.decide_as(chosen(self.sight.statuses.values()))
        self.sight.take(mirror.everything(), time.time_ns() // 1_000_000)
        return True

    async def _cluster(self) -> bool:
        """Nodes, queues, pools and what lies around; False if one of those that are needed is forbidden."""
        mirror = self.sight.mirror
        nodes, namespaces, claims, volumes, classes, queues = await asyncio.gather(
            self._listed(NODES, Node),
            self._listed(NAMESPACES, Namespace),
            self._listed(CLAIMS, VolumeClaim),
            self._listed(VOLUMES, PersistentVolume),
            self._listed(CLASSES, StorageClass),
            self._queues(),
        )
        for node in nodes or ():
            mirror.node(node)
        for one in namespaces or ():
            mirror.tenants.namespace(one)
        mirror.surroundings(
            Around(
                claims={f"{one.metadata.namespace}/{one.metadata.name}": one for one in claims or ()},
                volumes={one.metadata.name: one for one in volumes or ()},
                classes={one.metadata.name: one for one in classes or ()},
                capacities=await self._capacities(),
                devices=mirror.around.devices,
            )
        )
        await self._devices()
        for driver in await self._listed(STORAGE_NODES, StorageNode) or ():
            mirror.storage_node(driver.metadata.name, attach_limits(driver))
        for attachment in await self._listed(ATTACHMENTS, VolumeAttachment) or ():
            mirror.attachment(attachment.metadata.name, attachment)
        return nodes is not None and queues

    async def _capacities(self) -> Capacities:
        """Where one of the two is forbidden nobody says where there is room, and so it may be anywhere."""
        drivers, published = await asyncio.gather(
            self._listed(STORAGE_DRIVERS, StorageDriver), self._listed(CAPACITIES, StorageCapacity)
        )
        found = Capacities()
        for one in drivers or () if published is not None else ():
            found.driver(one.metadata.name, one)
        for each in published or ():
            found.capacity(f"{each.metadata.namespace}/{each.metadata.name}", each)
        return found

    async def _devices(self) -> None:
        """Of Kubernetes that has them."""
        mirror = self.sight.mirror
        known = mirror.around.devices
        if await self._discovery.resource(DEVICES, API_VERSION) is None:
            mirror.surroundings(structs.replace(mirror.around, devices=structs.replace(known, served=False)))
            return
        claims, templates, classes, slices = await asyncio.gather(
            self._listed(RESOURCE_CLAIMS, ResourceClaim),
            self._listed(CLAIM_TEMPLATES, ClaimTemplate),
            self._listed(DEVICE_CLASSES, DeviceClass),
            self._listed(SLICES, ResourceSlice),
        )
        known.claims.update({one.key: one for one in claims or ()})
        known.templates.update({f"{one.metadata.namespace}/{one.metadata.name}": one for one in templates or ()})
        known.catalog.classes.update({one.metadata.name: one for one in classes or ()})
        known.catalog.slices.update({one.metadata.name: one for one in slices or ()})
        known.catalog.changed()
        mirror.surroundings(mirror.around)

    async def _priorities(self) -> None:
        """Of one namespace nothing is decided: who may not read them there is not told again and again."""
        before = len(self.denied)
        for one in await self._listed(PRIORITY_CLASSES, PriorityClass) or ():
            self.sight.mirror.priorities.see(one)
        if self._namespace:
            del self.denied[before:]

    async def _queues(self) -> bool:
        mirror = self.sight.mirror
        if await self._discovery.resource("optimus.dev/Queue", QUEUES.api_version) is None:
            mirror.tenants.queue(Queue(name="default"))
            return True
        queues, pools = await asyncio.gather(self._listed(QUEUES, Anything), self._listed(POOLS, Anything))
        for thing in pools or ():
            with self._left_out("pool", thing):
                mirror.tenants.pool(read_pool(thing))
        for thing in queues or ():
            with self._left_out("queue", thing):
                queue, among = read_queue(thing)
                mirror.tenants.queue(queue, among)
                self.sight.statuses[queue.name] = thing.status if isinstance(thing.status, dict) else {}
        return queues is not None and pools is not None

    @contextmanager
    def _left_out(self, what: str, thing: Anything) -> Iterator[None]:
        """As the controller does with one that it cannot read."""
        try:
            yield
        except Unreadable as error:
            self.sight.unusable.append(f"{what} {thing.metadata.name} cannot be used, and is left out: {error}")

    async def _owners(self) -> None:
        for api_kind in self._kinds:
            await self._discovery.resource(api_kind)  # one request for each group; the rest is remembered
        served = [(kind, found) for kind in self._kinds if (found := self._discovery.known(kind)) is not None]
        for (kind, resource), things in zip(
            served, await asyncio.gather(*(self._listed(found, Anything) for _, found in served)), strict=True
        ):
            for thing in things or ():
                self.sight.mirror.owner(with_kind(thing, resource, kind))

    async def _missing(self) -> None:
        """Owners of kinds that no table knows, and those that came while we read."""
        groups = self.sight.mirror.groups
        for _ in range(DEEPEST):
            refs = groups.missing()
            if not refs:
                return
            await asyncio.gather(*map(self._read_owner, refs))

    async def _read_owner(self, ref: ObjectRef) -> None:
        mirror = self.sight.mirror
        resource = await self._discovery.resource(ref.kind, ref.api_version)
        if resource is None:
            mirror.owner_absent(ref)
            return
        try:
            found = await self._client.get(resource, ref.name, Anything, namespace=ref.namespace)
        except (NotFound, Forbidden):
            mirror.owner_absent(ref)
            return
        if ref.uid and found.metadata.uid != ref.uid:
            mirror.owner_absent(ref)
        else:
            mirror.owner(with_kind(found, resource, ref.kind))

    async def _allowed(self, resource: Resource) -> None:
        """All rights that are missing are told at once."""
        try:
            await self._client.request("GET", resource.path(), query={"limit": "1"}, verb="list")
        except Forbidden:
            self.denied.append(Denied(what=named(resource), where=""))

    async def _listed(self, resource: Resource, kind: type[T]) -> list[T] | None:
        """None: forbidden, which is remembered."""
        where = self._namespace if resource.namespaced else ""
        try:
            return (await self._client.listing(resource, kind, namespace=where)).items
        except Forbidden:
            self.denied.append(Denied(what=named(resource), where=where))
            return None
        except NotFound:  # a CRD that went while we read
            return []
