"""Queues and pools as objects of the cluster: read like the documents people submit elsewhere.

Why: the same words in a file, on one machine and in a cluster.
Owns: the two resources, and what becomes of one that cannot be read: the last good one stays, and it is said.
Must not: check what the server checks already, beyond what keeps the brain whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from optimus.api.findings import explain
from optimus.api.specs.clusters import PoolSpec
from optimus.api.specs.queues import QueueSpec
from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.watching import Watching
from optimus.kube import Change, Resource, What
from optimus.model.pools import NodePool
from optimus.model.queues import Queue

LOG = logging.getLogger(__name__)
R = TypeVar("R")
QUEUES = Resource("optimus.dev", "v1alpha1", "queues", namespaced=False)
POOLS = Resource("optimus.dev", "v1alpha1", "nodepools", namespaced=False)


class SetUp:
    """Queues and pools as the server has them: for whoever writes their status."""

    def __init__(self) -> None:
        self.queues: dict[str, Anything] = {}
        self.pools: dict[str, Anything] = {}
        self.unreadable: dict[tuple[str, str], str] = {}
        """(kind, name) -> what is wrong with it. The last good one stays in force."""


async def watch_queues(watching: Watching, mirror: Mirror) -> SetUp:
    """Returns once all that are there have been told. Without the CRDs there is one queue, `default`."""
    set_up = SetUp()

    def queue(change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            mirror.queue_gone(change.key)
            set_up.queues.pop(change.key, None)
        elif change.object is not None:
            set_up.queues[change.key] = change.object
            found = _read(set_up, "Queue", change.object, read_queue)
            if found is not None and mirror.queues.get(found.name) != found:  # most changes are of its status
                mirror.queue(found)

    def pool(change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            mirror.pool_gone(change.key)
            set_up.pools.pop(change.key, None)
        elif change.object is not None:
            set_up.pools[change.key] = change.object
            found = _read(set_up, "NodePool", change.object, read_pool)
            if found is not None and mirror.pools.get(found.name) != found:
                mirror.pool(found)

    if await watching.discovery.resource("optimus.dev/Queue", QUEUES.api_version) is None:
        LOG.warning("the cluster has no Queue resource (`optimus crds`): everything goes to one queue, default")
        mirror.queue(Queue(name="default"))
        return set_up
    for name, resource, tell in (("queues", QUEUES, queue), ("pools", POOLS, pool)):
        watching.watch_more(name, resource, Anything, tell)
        await watching.reflectors[name].synced.wait()
    return set_up


def _read(set_up: SetUp, kind: str, thing: Anything, reader: Callable[[Anything], R]) -> R | None:
    key = (kind, thing.metadata.name)
    try:
        found = reader(thing)
    except Unreadable as error:
        if set_up.unreadable.get(key) != str(error):
            LOG.warning("%s %s cannot be read: %s", *key, error)
        set_up.unreadable[key] = str(error)
        return None
    set_up.unreadable.pop(key, None)
    return found


class Unreadable(Exception):  # noqa: N818 - what it says of an object
    """Why an object cannot be used, in words."""


def read_queue(thing: Anything) -> Queue:
    try:
        spec = QueueSpec.model_validate(_record(thing))
    except ValidationError as error:
        raise Unreadable(_words(error, QueueSpec)) from None
    return spec.to_queue(now_ms=0, created_ms=read_time(thing.metadata.creation_timestamp))


def read_pool(thing: Anything) -> NodePool:
    try:
        spec = PoolSpec.model_validate(_record(thing))
    except ValidationError as error:
        raise Unreadable(_words(error, PoolSpec)) from None
    return spec.to_pool(())


def _record(thing: Anything) -> dict[str, Any]:
    return {"name": thing.metadata.name, **(thing.spec if isinstance(thing.spec, dict) else {})}


def _words(error: ValidationError, kind: Any) -> str:
    return "; ".join(f"{'.'.join(map(str, found.loc))} {found.message}" for found in explain(error, kind))
