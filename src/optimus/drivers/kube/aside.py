"""Objects that could not be taken in: put aside with a reason, so that all others go on.

Why: readers are written to take whatever a tenant writes; should one fail all the same, one object waits, and not the
cluster.
Owns: what is put aside, why, and that it is said once.
Must not: say what becomes of an object (`mirror` does: its room stays counted, and it is not placed), or hide an error:
each has its trace in the log, and a number.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import MutableMapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from optimus.drivers.kube.objects import Meta, Pod, PodSpec
from optimus.model.observations import (
    NodeSeen,
    Observation,
    PoolSeen,
    QueueSeen,
    SlotGone,
    SlotRunning,
    SlotStopping,
    WorkloadSeen,
)
from optimus.model.reasons import Code, Reason, reason

if TYPE_CHECKING:
    from optimus.drivers.kube.mirror import Mirror

LOG = logging.getLogger(__name__)
_LONGEST_WORDS = 200


class Thing(StrEnum):
    POD = "pod"
    OWNER = "owner"
    GANG = "gang"
    NODE = "node"
    QUEUE = "queue"
    POOL = "pool"


class Aside:
    def __init__(self) -> None:
        self.unread: dict[str, str] = {}
        """Kinds of owners of which nothing can be read, and why: nobody knows what their pods are."""
        self._why: dict[tuple[Thing, str], Reason] = {}

    def put(self, thing: Thing, key: str, name: str, error: Exception) -> Reason:
        """`key`: by which it is known, `name`: by which people know it."""
        words = f"{type(error).__name__}: {error}"[:_LONGEST_WORDS]
        if (thing, key) not in self._why:
            LOG.error("%s %s is put aside, and all others go on", thing, name, exc_info=error)
        self._why[thing, key] = why = reason(Code.PUT_ASIDE, problem=words)
        return why

    def take_back(self, thing: Thing, key: str) -> None:
        """It has changed, or is gone."""
        self._why.pop((thing, key), None)

    def why(self, thing: Thing, key: str) -> Reason | None:
        return self._why.get((thing, key)) if self._why else None

    def why_owner(self, kind: str, uid: str) -> Reason | None:
        """Why nothing of this owner is placed."""
        if kind in self.unread:
            return reason(Code.NOT_READY, missing=f"{kind} cannot be read ({self.unread[kind]})")
        return self.why(Thing.OWNER, uid)

    def counts(self) -> Counter[str]:
        return Counter(str(thing) for thing, _ in self._why)

    def __len__(self) -> int:
        return len(self._why)


def bare(pod: Pod) -> Pod:
    """Who it is, where it is, and what its containers take: all that must be known of a pod in any case."""
    meta, spec = pod.metadata, pod.spec
    return Pod(
        metadata=Meta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=PodSpec(
            node_name=spec.node_name,
            scheduler_name=spec.scheduler_name,
            containers=spec.containers,
            init_containers=spec.init_containers,
            overhead=spec.overhead,
            resources=spec.resources,
        ),
        status=pod.status,
    )


def put_aside(mirror: Mirror, fact: Observation, error: Exception) -> None:
    """The brain could not take it in: until it changes, it is as if it were not there. Raises where nothing can be left
    out."""
    thing, name = _subject(fact, error)
    mirror.aside.put(thing, name, name, error)
    if thing is Thing.GANG and name in mirror.workloads:
        mirror.refused[name] = mirror.workloads[name]
    known: dict[Thing, MutableMapping[str, Any]] = {
        Thing.NODE: mirror.nodes,
        Thing.QUEUE: mirror.tenants.queues,
        Thing.POOL: mirror.tenants.pools,
    }
    known.get(thing, {}).pop(name, None)


def _subject(fact: Observation, error: Exception) -> tuple[Thing, str]:
    """Of whom it is, where that can be left out; else the error is everybody's."""
    match fact:
        case NodeSeen(node):
            return Thing.NODE, node.name
        case QueueSeen(queue):
            return Thing.QUEUE, queue.name
        case PoolSeen(pool):
            return Thing.POOL, pool.name
        case WorkloadSeen(workload):
            return Thing.GANG, workload.id
        case SlotRunning(workload=name) | SlotStopping(workload=name) | SlotGone(workload=name):
            return Thing.GANG, name
        case _:
            raise error
