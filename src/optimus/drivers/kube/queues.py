"""Queues and pools as objects of the cluster: read like the documents people submit elsewhere.

Why: the same words in a file, on one machine and in a cluster.
Owns: the two resources, and what becomes of one that cannot be read: the last good one stays, and it is said.
Must not: check what the server checks already, beyond what keeps the brain whole.
"""

from __future__ import annotations

import logging
from typing import Any

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
QUEUES = Resource("optimus.dev", "v1alpha1", "queues", namespaced=False)
POOLS = Resource("optimus.dev", "v1alpha1", "nodepools", namespaced=False)


async def watch_queues(watching: Watching, mirror: Mirror) -> None:
    """Returns once all that are there have been told. Without the CRDs there is one queue, `default`."""
    known: set[str] = set()

    def queue(change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            mirror.queue_gone(change.key)
        elif change.object is not None and (found := read_queue(change.object)) is not None:
            known.add(found.name)
            mirror.queue(found)

    def pool(change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            mirror.pool_gone(change.key)
        elif change.object is not None and (found := read_pool(change.object)) is not None:
            mirror.pool(found)

    if await watching.discovery.resource("optimus.dev/Queue", QUEUES.api_version) is None:
        LOG.warning("the cluster has no Queue resource (`optimus crds`): everything goes to one queue, default")
        mirror.queue(Queue(name="default"))
        return
    for name, resource, tell in (("queues", QUEUES, queue), ("pools", POOLS, pool)):
        watching.watch_more(name, resource, Anything, tell)
        await watching.reflectors[name].synced.wait()


def read_queue(thing: Anything) -> Queue | None:
    record = _record(thing)
    try:
        spec = QueueSpec.model_validate(record)
    except ValidationError as error:
        LOG.warning("queue %s cannot be read: %s", thing.metadata.name, _words(error, QueueSpec))
        return None
    return spec.to_queue(now_ms=0, created_ms=read_time(thing.metadata.creation_timestamp))


def read_pool(thing: Anything) -> NodePool | None:
    try:
        spec = PoolSpec.model_validate(_record(thing))
    except ValidationError as error:
        LOG.warning("pool %s cannot be read: %s", thing.metadata.name, _words(error, PoolSpec))
        return None
    return spec.to_pool(())


def _record(thing: Anything) -> dict[str, Any]:
    return {"name": thing.metadata.name, **(thing.spec if isinstance(thing.spec, dict) else {})}


def _words(error: ValidationError, kind: Any) -> str:
    return "; ".join(f"{'.'.join(map(str, found.loc))} {found.message}" for found in explain(error, kind))
