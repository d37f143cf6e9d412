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
from optimus.api.specs.queues import ClusterQueueSpec, LabelSelectorSpec
from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.selectors import Requirement, Selector
from optimus.drivers.kube.watching import Watching
from optimus.kube import Change, Resource, What
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.rules import Operator

LOG = logging.getLogger(__name__)
R = TypeVar("R")
QUEUES = Resource("optimus.dev", "v1alpha1", "queues", namespaced=False)
QUEUE_KIND = "optimus.dev/Queue"
STAND_IN = "default"
"""The queue of a cluster that has none."""
POOLS = Resource("optimus.dev", "v1alpha1", "nodepools", namespaced=False)


class SetUp:
    """Queues and pools as the server has them: for whoever writes their status."""

    def __init__(self) -> None:
        self.queues: dict[str, Anything] = {}
        self.pools: dict[str, Anything] = {}
        self.unreadable: dict[tuple[str, str], str] = {}
        """(kind, name) -> what is wrong with it. The last good one stays in force."""


async def watch_queues(watching: Watching, mirror: Mirror) -> SetUp:
    """Returns once all that are there have been told. Without the CRDs there is one queue, until they come."""
    set_up = SetUp()

    def queue(change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            mirror.tenants.queue_gone(change.key)
            set_up.queues.pop(change.key, None)
            set_up.unreadable.pop(("Queue", change.key), None)
        elif change.object is not None:
            set_up.queues[change.key] = change.object
            found = _read(set_up, "Queue", change.object, read_queue)
            if found is not None:
                mirror.tenants.queue(*found)

    def pool(change: Change[Anything]) -> None:
        if change.what is What.DELETED:
            mirror.tenants.pool_gone(change.key)
            set_up.pools.pop(change.key, None)
            set_up.unreadable.pop(("NodePool", change.key), None)
        elif change.object is not None:
            set_up.pools[change.key] = change.object
            found = _read(set_up, "NodePool", change.object, read_pool)
            if found is not None:
                mirror.tenants.pool(found)

    async def begin() -> None:
        for name, resource, tell in (("queues", QUEUES, queue), ("pools", POOLS, pool)):
            watching.watch_more(name, resource, Anything, tell)
            await watching.reflectors[name].synced.wait()

    async def begin_late() -> None:
        LOG.warning("the cluster has the Queue resource now: work goes to the queues that there are")
        await begin()
        if STAND_IN not in set_up.queues:
            mirror.tenants.queue_gone(STAND_IN)

    if await watching.discovery.resource(QUEUE_KIND, QUEUES.api_version) is None:
        LOG.warning("the cluster has no Queue resource (`optimus crds`): everything goes to one queue, %s", STAND_IN)
        mirror.tenants.queue(Queue(name=STAND_IN))
        watching.when_served(QUEUE_KIND, QUEUES.api_version, begin_late)
    else:
        await begin()
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


def read_queue(thing: Anything) -> tuple[Queue, Selector | None]:
    """With the namespaces that it chooses by their labels, if it does."""
    try:
        spec = ClusterQueueSpec.model_validate(_record(thing))
    except ValidationError as error:
        raise Unreadable(_words(error, ClusterQueueSpec)) from None
    queue = spec.to_queue(now_ms=0, created_ms=read_time(thing.metadata.creation_timestamp))
    return queue, None if spec.namespace_selector is None else _selector(spec.namespace_selector)


def _selector(spec: LabelSelectorSpec) -> Selector:
    labels = [Requirement(key, Operator.IN, (value,)) for key, value in spec.match_labels.items()]
    rules = [Requirement(one.key, str(one.operator), one.values) for one in spec.match_expressions]
    return Selector(tuple(sorted([*labels, *rules])))


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
