"""Everything that is watched: one reflector for each kind, all of them feeding the mirror.

Why: the mirror is told changes, whoever they come from; this is where they come from.
Owns: which kinds are watched, and reading owners that nobody watches.
Must not: look into an object.

Kinds of owners come and go with their CRDs: what is served is looked up again every DISCOVER_S. One that is not served
any more is gone with its objects, and one that is served elsewhere is read from there. One that is served and cannot be
read (a conversion webhook that is down, a role that is too small) keeps nobody else waiting: work of that kind is not
ready, and says so.

A reflector that ends has met what nobody thought of, and what it tells from then on is not true any more: `died` says
so, and whoever waits for it ends the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from msgspec import structs

from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.claiming import Claims
from optimus.drivers.kube.device_objects import (
    API_VERSION,
    ClaimTemplate,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from optimus.drivers.kube.device_objects import GROUP as DEVICES_GROUP
from optimus.drivers.kube.device_objects import VERSION as DEVICES_VERSION
from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping import Kinds, ObjectRef
from optimus.drivers.kube.grouping.podgroups import APIS
from optimus.drivers.kube.jobs.seeing import Sight
from optimus.drivers.kube.jobs.words import UNIFIED_JOB
from optimus.drivers.kube.mirror import Mirror
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
from optimus.drivers.kube.volumes import Around, attach_limits
from optimus.kube import Change, Client, KubeError, Reflector, Resource, What
from optimus.kube.decoding import Object
from optimus.kube.errors import Forbidden, Garbled, NotFound
from optimus.kube.reflecting import QUIET_S
from optimus.kube.resources import NAMESPACES, NODES, PODS

LOG = logging.getLogger(__name__)
DISCOVER_S = 30.0
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
STORAGE_NODES = Resource("storage.k8s.io", "v1", "csinodes", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
_PRIORITY_CLASSES = "priority classes"
STORAGE_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", namespaced=False)
ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", namespaced=False)
CAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities")
DEVICES = f"{DEVICES_GROUP}/ResourceClaim"
RESOURCE_CLAIMS = Resource(DEVICES_GROUP, DEVICES_VERSION, "resourceclaims")
CLAIM_TEMPLATES = Resource(DEVICES_GROUP, DEVICES_VERSION, "resourceclaimtemplates")
DEVICE_CLASSES = Resource(DEVICES_GROUP, DEVICES_VERSION, "deviceclasses", namespaced=False)
SLICES = Resource(DEVICES_GROUP, DEVICES_VERSION, "resourceslices", namespaced=False)
ALWAYS = ("nodes", "pods")
"""Without these there is nothing to be seen."""
OPTIONAL_S = 10.0
"""So long a kind of owners that cannot be read is waited for, once all others are there."""
SILENT_S = 2 * QUIET_S
"""A watch of which nothing was heard for so long hangs, or its server does."""
PATIENCE_S = 2.0
"""An owner that is watched, and has not been seen after this time, is asked for by name; and so long somebody waits who
may not read what others may: rights that were just given need a moment."""
T = TypeVar("T", bound=Object)


class Died(Exception):  # noqa: N818 - what has become of it
    """A part without which the process must not go on has ended; the text says which."""


class Watching:
    def __init__(self, client: Client, mirror: Mirror, kinds: Kinds, wake: Callable[[], object]) -> None:
        self.discovery = Discovery(client)
        self._client, self._mirror, self._wake = client, mirror, wake
        owners = {kind.name for kind in kinds if "/" in kind.name} | {api.kind for api in APIS}
        self._owner_kinds = sorted(owners | {UNIFIED_JOB})
        self.jobs = Sight()
        """UnifiedJobs and their pods, for whoever gives them their pods."""
        self.reflectors: dict[str, Reflector[Any]] = {}
        self.heard: Callable[[Pod | None, Pod], object] = lambda _before, _now: None
        """Told of a pod as it was and as it is, before the mirror is."""
        self.died: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        """Raises Died."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._running: dict[str, asyncio.Task[Any]] = {}
        """Of reflectors."""
        self._awaited: list[tuple[str, str, Callable[[], Coroutine[Any, Any, None]]]] = []
        self._reading: set[tuple[str, str, str]] = set()
        self._around: dict[str, dict[str, Any]] = {"claims": {}, "volumes": {}, "classes": {}}
        self._devices = Claims(catalog=mirror.around.devices.catalog)
        self._capacities = Capacities()

    async def start(self, *, as_user: bool = False) -> None:
        """Returns once everything that is there has been told, but for owners and priority classes where they cannot
        be read. `as_user`: what somebody has no right to read is left out, but for nodes and pods."""
        await self.discovery.refresh()
        self._watch("nodes", NODES, Node, self._node)
        self._watch("pods", PODS, Pod, self._pod)
        self._watch("namespaces", NAMESPACES, Namespace, self._namespace)
        self._watch("claims", CLAIMS, VolumeClaim, lambda change: self._beside("claims", change))
        self._watch("volumes", VOLUMES, PersistentVolume, lambda change: self._beside("volumes", change))
        self._watch("classes", CLASSES, StorageClass, lambda change: self._beside("classes", change))
        self._watch("storage nodes", STORAGE_NODES, StorageNode, self._storage_node)
        self._watch("attachments", ATTACHMENTS, VolumeAttachment, self._attachment)
        self._watch("storage drivers", STORAGE_DRIVERS, StorageDriver, self._storage_driver)
        self._watch("storage capacities", CAPACITIES, StorageCapacity, self._capacity)
        if await self.discovery.resource(DEVICES, API_VERSION) is not None:
            self._watch_devices()
        else:
            self._say_devices(served=False)
            self.when_served(DEVICES, API_VERSION, self._begin_devices)
        needed = list(self.reflectors)
        self._watch(_PRIORITY_CLASSES, PRIORITY_CLASSES, PriorityClass, self._priority_class)
        await self._watch_owners()
        left_out = [self._sync_if_possible(name) for name in needed if as_user and name not in ALWAYS]
        awaited = [self.reflectors[name].synced.wait() for name in needed if not as_user or name in ALWAYS]
        await asyncio.gather(*left_out, *awaited)
        owners = (self._sync_owners(kind) for kind in self._owner_kinds if kind in self.reflectors)
        await asyncio.gather(self._sync_priorities(), *owners)
        self._go("what is served", self._keep_discovering())

    def watch_more(self, name: str, resource: Resource, kind: type[T], tell: Callable[[Change[T]], object]) -> None:
        """Of others: queues, pools."""

        def heard(change: Change[T]) -> None:
            tell(change)
            self._wake()

        self._watch(name, resource, kind, heard)

    def when_served(self, kind: str, api_version: str, begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`begin` is run once the server has this kind."""
        self._awaited.append((kind, api_version, begin))

    async def close(self) -> None:
        self.died.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def unsynced(self) -> list[str]:
        """Kinds that have not been read yet, with what is in the way."""
        waiting = ((name, one) for name, one in self.reflectors.items() if not one.synced.is_set())
        return [f"{name} ({one.reflection.trouble})" if one.reflection.trouble else name for name, one in waiting]

    def silent(self, *, hanging: bool) -> list[str]:
        """Kinds of which nothing has been heard for SILENT_S. `hanging`: without a word why, which a new process may
        mend; else it is the server's."""
        return [
            f"{name} for {one.reflection.quiet_s():.0f} s {one.reflection.trouble}".rstrip()
            for name, one in self.reflectors.items()
            if one.synced.is_set() and one.reflection.quiet_s() > SILENT_S and not (hanging and one.reflection.trouble)
        ]

    def _go(self, what: str, work: Coroutine[Any, Any, Any], *, needed: bool = True) -> asyncio.Task[Any]:
        def over(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if task.cancelled() or (not needed and task.exception() is None):
                return
            LOG.error("the watch of %s has ended", what, exc_info=task.exception())
            if needed and not self.died.done():
                self.died.set_exception(Died(f"the watch of {what} has ended: {task.exception()!r}"))
                self.died.exception()  # whether anybody waits for it or not: it is told above

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(over)
        return task

    def read_owners(self) -> None:
        """Begin to read those that the mirror misses."""
        for ref in self._mirror.groups.missing():
            key = (ref.kind, ref.namespace, ref.uid or ref.name)
            if key not in self._reading:
                self._reading.add(key)
                self._go(f"{ref.kind} {ref.namespace}/{ref.name}", self._read_owner(ref, key), needed=False)

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
            if ref not in self._mirror.groups.missing():
                return  # the watch has told what became of it meanwhile, and knows better
            if ref.uid and found.metadata.uid != ref.uid:
                self._mirror.owner_absent(ref)
            else:
                self._mirror.owner(with_kind(found, resource, ref.kind))
        except NotFound:
            self._mirror.owner_absent(ref)
        except KubeError as error:
            LOG.info("%s %s/%s cannot be read now: %s", ref.kind, ref.namespace, ref.name, error)
            if self._is_unread(ref.kind) or isinstance(error, Forbidden | Garbled):
                self._mirror.owner_absent(ref)
            else:
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
                await self._begin_awaited()
            except KubeError as error:
                LOG.info("what is served cannot be read now: %s", error)

    async def _watch_owners(self) -> None:
        for kind in self._owner_kinds:
            resource, reflector = await self.discovery.resource(kind), self.reflectors.get(kind)
            if reflector is None and resource is not None:
                self._watch(kind, resource, Anything, self._owner_of(kind))
                self._go(kind, self._say_when_read(kind), needed=False)
            elif reflector is not None and resource is None and reflector.reflection.trouble:
                self._watch_no_more(kind)  # while its watch goes on, one of several servers lags behind
            elif reflector is not None and resource is not None and resource != reflector.resource:
                LOG.warning("%s is read from %s now", kind, resource.api_version)
                reflector.move(resource)

    def _watch_no_more(self, kind: str) -> None:
        LOG.warning("%s is not served any more", kind)
        self._running.pop(kind).cancel()
        self.reflectors.pop(kind).give_up()
        if self._mirror.aside.unread.pop(kind, None) is not None:
            self._mirror.look_at_all()
        self._wake()

    def _watch_devices(self) -> list[Reflector[Any]]:
        known, before = self._devices, len(self.reflectors)
        self._watch("device claims", RESOURCE_CLAIMS, ResourceClaim, self._kept_in(known.claims))
        self._watch("claim templates", CLAIM_TEMPLATES, ClaimTemplate, self._kept_in(known.templates))
        self._watch("device classes", DEVICE_CLASSES, DeviceClass, self._kept_in(known.catalog.classes))
        self._watch("slices", SLICES, ResourceSlice, self._slice)
        return list(self.reflectors.values())[before:]

    async def _begin_devices(self) -> None:
        """The server was upgraded meanwhile. Before all of them are known, none of them is."""
        await asyncio.gather(*(one.synced.wait() for one in self._watch_devices()))
        self._say_devices(served=True)

    def _say_devices(self, *, served: bool) -> None:
        self._devices = structs.replace(self._devices, served=served)
        self._mirror.dependents.device_changed()
        self._tell_beside()

    async def _begin_awaited(self) -> None:
        for awaited in list(self._awaited):
            kind, api_version, begin = awaited
            if await self.discovery.resource(kind, api_version) is not None:
                self._awaited.remove(awaited)
                self._go(kind, begin(), needed=False)

    async def _sync_owners(self, kind: str) -> None:
        if trouble := await self._sync_if_possible(kind):
            LOG.warning("%s cannot be read, and its work is not ready: %s", kind, trouble)
            self._mirror.aside.unread[kind] = trouble

    async def _sync_priorities(self) -> None:
        """The command line has the rights of its user, and goes on without."""
        if trouble := await self._sync_if_possible(_PRIORITY_CLASSES):
            LOG.warning("work without pods goes by its class of work: priority classes cannot be read: %s", trouble)

    async def _sync_if_possible(self, name: str) -> str:
        """While it is being read, however much there is; a while where the server says no. Why it cannot be read."""
        reflector, begun = self.reflectors[name], time.monotonic()
        while not reflector.synced.is_set():
            patience_s = min(OPTIONAL_S, PATIENCE_S) if reflector.reflection.forbidden else OPTIONAL_S
            if reflector.reflection.trouble and time.monotonic() > begun + patience_s:
                return reflector.reflection.trouble
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await reflector.synced.wait()
        return ""

    async def _say_when_read(self, kind: str) -> None:
        await self.reflectors[kind].synced.wait()
        if self._mirror.aside.unread.pop(kind, None) is not None:
            LOG.warning("%s can be read now", kind)
            self._mirror.look_at_all()
            self._wake()

    def _is_unread(self, kind: str) -> bool:
        reflector = self.reflectors.get(kind)
        return reflector is not None and not reflector.synced.is_set() and bool(reflector.reflection.trouble)

    def _watch(self, name: str, resource: Resource, kind: type[T], tell: Callable[[Change[T]], object]) -> None:
        reflector = self.reflectors[name] = Reflector(self._client, resource, kind, tell)
        self._running[name] = self._go(name, reflector.run())

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
            self.jobs.pod_gone(change.uid)
        elif change.object is not None:
            self.jobs.pod(change.object)
            self.heard(self._mirror.pods.get(change.uid), change.object)
            self._mirror.pod(change.object)
        self._wake()

    def _namespace(self, change: Change[Namespace]) -> None:
        if change.what is What.DELETED:
            self._mirror.tenants.namespace_gone(change.key)
        elif change.object is not None:
            self._mirror.tenants.namespace(change.object)
        self._wake()

    def _priority_class(self, change: Change[PriorityClass]) -> None:
        if change.what is What.DELETED:
            self._mirror.priorities.gone(change.key)
        elif change.object is not None:
            self._mirror.priorities.see(change.object)
        self._wake()

    def _beside(self, kind: str, change: Change[Any]) -> None:
        there = self._around[kind]
        before = there.get(change.key)
        _keep(there, change)
        match kind:
            case "claims":
                self._mirror.claim_changed(change.key)
            case "volumes":
                self._mirror.volume_changed(before, there.get(change.key))
            case _:
                self._mirror.dependents.class_changed(change.key)
        self._tell_beside()

    def _attachment(self, change: Change[VolumeAttachment]) -> None:
        self._mirror.attachment(change.key, None if change.what is What.DELETED else change.object)
        self._wake()

    def _storage_driver(self, change: Change[StorageDriver]) -> None:
        if self._capacities.driver(change.key, None if change.what is What.DELETED else change.object):
            for name, kind in self._around["classes"].items():
                if kind.provisioner == change.key:
                    self._mirror.dependents.class_changed(name)
            self._tell_beside()

    def _capacity(self, change: Change[StorageCapacity]) -> None:
        changed = self._capacities.capacity(change.key, None if change.what is What.DELETED else change.object)
        for name in changed:
            self._mirror.dependents.class_changed(name)
        if changed:
            self._tell_beside()

    def _tell_beside(self) -> None:
        self._mirror.beside(Around(**self._around, capacities=self._capacities, devices=self._devices))
        self._wake()

    def _kept_in(self, known: dict[str, Any]) -> Callable[[Change[Any]], None]:
        """Of devices."""

        def tell(change: Change[Any]) -> None:
            _keep(known, change)
            self._mirror.dependents.device_changed()
            self._tell_beside()

        return tell

    def _slice(self, change: Change[ResourceSlice]) -> None:
        self._devices.catalog.changed()
        self._kept_in(self._devices.catalog.slices)(change)

    def _owner_of(self, kind: str) -> Callable[[Change[Anything]], None]:
        def tell(change: Change[Anything]) -> None:
            if change.what is What.DELETED:
                self._mirror.owner_gone(change.uid)
                self.jobs.job_gone(change.uid)
            elif change.object is not None:
                self._mirror.owner(with_kind(change.object, self.reflectors[kind].resource, kind))
                if kind == UNIFIED_JOB:
                    self.jobs.job(change.object)
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


def _keep(known: dict[str, Any], change: Change[Any]) -> None:
    if change.what is What.DELETED:
        known.pop(change.key, None)
    elif change.object is not None:
        known[change.key] = change.object
