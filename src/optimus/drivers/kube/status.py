"""The status of Queue and NodePool: what `kubectl get queues` shows.

    turn ──► standing ──► status of each object ──► only what differs from what was written last

Why: people ask the cluster, not the scheduler, what their queue has.
Owns: the words of a status and of its conditions, and what was written last.
Must not: write often: EVERY_S between rounds, AT_ONCE at a time. A status is a few seconds old; metrics are not.

Written by server-side apply: fields that are no longer told go away, and fields of others stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from optimus.api.crds import GROUP, VERSION
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.queues import POOLS, QUEUES, SetUp
from optimus.drivers.kube.standing import PoolStanding, QueueStanding, Share, Standing
from optimus.kube import Conflict, Done, Gone, Refused, Resource, Writer
from optimus.kube.client import APPLY
from optimus.model.plans import Condition
from optimus.model.units import format_gpu, format_resource

LOG = logging.getLogger(__name__)
EVERY_S = 3.0
AT_ONCE = 4
MANAGER = "optimus"
READY = "Ready"
Document = dict[str, Any]
HARMLESS = frozenset({"UnknownPool", "PoolsOverlap"})
"""It works, but somebody may have meant something else."""


class Status:
    def __init__(
        self, set_up: SetUp, writer: Writer, standing: Callable[[], Standing | None], policy: str = ""
    ) -> None:
        """`policy`: by which the leader decides, so that others can try things as it would."""
        self.writes = 0
        self._policy = policy
        self._set_up, self._writer, self._standing = set_up, writer, standing
        self._written: dict[tuple[str, str], tuple[str, Document]] = {}
        """(kind, name) -> uid and status, as it was written last or was there when the lead began."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            if (standing := self._standing()) is not None:
                await self.write(standing)

    async def write(self, standing: Standing) -> None:
        """What has changed since it was written."""
        room = asyncio.Semaphore(AT_ONCE)
        queues = {one.name: one for one in standing.queues}
        pools = {one.name: one for one in standing.pools}
        async with asyncio.TaskGroup() as tasks:
            for name, thing in list(self._set_up.queues.items()):
                told = queue_status(queues.get(name), self._set_up.unreadable.get(("Queue", name), ""), self._policy)
                tasks.create_task(self._write(room, "Queue", QUEUES, thing, told))
            for name, thing in list(self._set_up.pools.items()):
                told = pool_status(pools.get(name), self._set_up.unreadable.get(("NodePool", name), ""))
                tasks.create_task(self._write(room, "NodePool", POOLS, thing, told))

    async def _write(
        self, room: asyncio.Semaphore, kind: str, resource: Resource, thing: Anything, told: Document
    ) -> None:
        meta = thing.metadata
        uid, before = self._written.get((kind, meta.name), ("", {}))
        if uid != meta.uid:
            before = thing.status if isinstance(thing.status, dict) else {}
        status = dated(told, before, meta.generation, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        if status == before:
            return
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind,
            "metadata": {"name": meta.name, "uid": meta.uid},
            "status": status,
        }
        async with room:
            self.writes += 1
            outcome = await self._writer.patch(
                resource, meta.name, body, subresource="status", form=APPLY, manager=MANAGER
            )
        if isinstance(outcome, Done):
            self._written[kind, meta.name] = (meta.uid, status)
        elif isinstance(outcome, Gone | Conflict):
            self._written.pop((kind, meta.name), None)
        elif isinstance(outcome, Refused):
            LOG.warning("the status of %s %s is not written: %s", kind, meta.name, outcome.message)


def queue_status(found: QueueStanding | None, unreadable: str, policy: str = "") -> Document:
    if found is None:
        return {
            "conditions": [_ready("Malformed", unreadable) if unreadable else _ready("Pending", "not looked at yet")]
        }
    gpus = found.gpus()
    limits = [share.limit for share in gpus]
    limit = None if not limits or None in limits else sum(one for one in limits if one is not None)
    return {
        "gpus": format_gpu(sum(share.allocated for share in gpus)),
        "guarantee": format_gpu(sum(share.guarantee for share in gpus)),
        **({} if limit is None else {"limit": format_gpu(limit)}),
        "borrowed": format_gpu(sum(share.borrowed for share in gpus)),
        "running": found.running,
        "waiting": sum(found.waiting.values()),
        **_unless_empty("waitingFor", dict(sorted(found.waiting.items()))),
        "shares": [_share(share) for share in found.shares],
        **({"policy": policy} if policy else {}),
        "conditions": _conditions(found.conditions, unreadable),
    }


def pool_status(found: PoolStanding | None, unreadable: str) -> Document:
    if found is None:
        return {
            "conditions": [_ready("Malformed", unreadable) if unreadable else _ready("Pending", "not looked at yet")]
        }
    free = sum(found.free.values())
    empty = Condition(f"pool {found.name}", "Empty", "no node belongs to it: look at its selector")
    return {
        "nodes": found.nodes,
        "usableNodes": found.usable,
        "gpus": sum(found.models.values()),
        "freeGpus": format_gpu(free),
        **_unless_empty("models", dict(found.models)),
        **_unless_empty("free", {model: format_gpu(amount) for model, amount in found.free.items()}),
        "fragmentation": f"{round(100 * found.fragmented / free) if free else 0}%",
        "conditions": _conditions((*found.conditions, *(() if found.nodes else (empty,))), unreadable),
    }


def _unless_empty(field: str, told: Document) -> Document:
    """An applied map that loses its last entry becomes null in the server, which then refuses the whole status."""
    return {field: told} if told else {}


def _share(share: Share) -> Document:
    amounts = {
        "guarantee": share.guarantee,
        "limit": share.limit,
        "share": share.share,
        "allocated": share.allocated,
        "demand": share.demand,
        "borrowed": share.borrowed,
    }
    told = {name: format_resource(share.resource, amount) for name, amount in amounts.items() if amount is not None}
    return {"pool": share.pool, "resource": share.resource, **told}


def _conditions(troubles: tuple[Condition, ...], unreadable: str) -> list[Document]:
    """`Ready` sums them up: what makes it unusable, else what is only odd, else that all is well."""
    if unreadable:
        return [_ready("Malformed", f"the last version that could be read is in force: {unreadable}")]
    broken = [one for one in troubles if one.code not in HARMLESS]
    odd = [one for one in troubles if one.code in HARMLESS]
    return [
        *(
            [_ready(_reason(broken[0]), broken[0].message)]
            if broken
            else [{"type": READY, "status": "True", "reason": "Ready", "message": ""}]
        ),
        *({"type": one.code, "status": "True", "reason": one.code, "message": one.message} for one in odd),
    ]


def _reason(trouble: Condition) -> str:
    """The brain has one code for a broken tree; people look for the word."""
    if trouble.code != "QueueInvalid":
        return trouble.code
    return "ParentMissing" if "does not exist" in trouble.message else "Circle"


def _ready(reason: str, message: str) -> Document:
    return {"type": READY, "status": "False", "reason": reason, "message": message[:1024]}


def dated(told: Document, before: Mapping[str, Any], generation: int, now: str) -> Document:
    """With the time at which each condition became what it is."""
    old = {one.get("type"): one for one in before.get("conditions", ())}
    conditions = []
    for one in told["conditions"]:
        known = old.get(one["type"], {})
        since = known.get("lastTransitionTime", now) if known.get("status") == one["status"] else now
        conditions.append({**one, "observedGeneration": generation, "lastTransitionTime": since})
    return {**told, "conditions": conditions}
