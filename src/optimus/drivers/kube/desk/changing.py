"""Changing work that is there: cancel, suspend, resume, scale; and deleting queues and pools.

Why: each kind of work is stopped by a field of its own, which the table of kinds knows (`grouping/kinds.yaml`).
Owns: what is sent for which verb, and the words with which it is said that a kind cannot.
Must not: send anything to an object that came later under the same name: every write carries the uid.

Suspending is the user's wish, so it is marked (`optimus.dev/hold`): the scheduler does not start it again. Resuming
takes the mark away; work that names a queue stays suspended until there is room, other work is un-suspended at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from optimus.drivers.kube.describing import UNIFIED
from optimus.drivers.kube.desk.naming import Meant
from optimus.drivers.kube.desk.refusing import conflict, invalid, missing
from optimus.drivers.kube.desk.sight import Sight
from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping import ObjectRef
from optimus.drivers.kube.grouping.overrides import HELD_WHY, HOLD, QUEUE, SUSPENDED, word_on
from optimus.drivers.kube.grouping.patches import put
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.queues import POOLS, QUEUES
from optimus.kube import Client, Resource
from optimus.kube.errors import NotFound
from optimus.kube.resources import PODS
from optimus.lives import Loss, unheard, when_resumed
from optimus.model.gang_validation import MOST_REPLICAS

JOB = "batch/Job"
MOST_NAMED = 10
View = dict[str, Any]


class Change(Struct, frozen=True):
    client: Client
    discovery: Discovery
    sight: Sight
    meant: Meant
    shown: Mapping[str, View]

    @property
    def phases(self) -> str:
        """`Running`, or of several: `Pending, Running`."""
        return ", ".join(sorted({str(self.shown[group.id]["phase"]) for group in self.meant.gangs}))

    @property
    def over(self) -> bool:
        return all(self.shown[group.id]["final"] for group in self.meant.gangs)

    def owner(self) -> Anything | None:
        return self.sight.mirror.owners.get(self.meant.object.uid) if self.meant.object else None

    async def resource(self) -> tuple[Resource, ObjectRef]:
        thing = self.meant.object
        assert thing is not None
        found = await self.discovery.resource(thing.kind, thing.api_version)
        if found is None:
            raise missing(f"{self.meant.name}: the server does not serve {thing.kind} any more")
        return found, thing

    async def patch(self, body: dict[str, Any]) -> None:
        resource, thing = await self.resource()
        body.setdefault("metadata", {})["uid"] = thing.uid
        await self.client.patch(resource, thing.name, msgspec.json.encode(body), namespace=thing.namespace)


async def cancel(change: Change) -> str:
    """The owner goes, and its pods with it; they get their grace."""
    name, before = change.meant.name, change.phases
    if change.over:
        raise conflict(f"{name} is over: {before}")
    if change.meant.object is None:
        for group in change.meant.gangs:
            await _delete_pods(change, group.id)
        return f"{name}: cancelled ({before} before)"
    if not change.meant.whole:
        thing = change.meant.object
        kind = thing.kind.rpartition("/")[2]
        raise conflict(
            f"{name} belongs to {kind} {thing.name}, which would create it again: cancel {kind.lower()}/{thing.name}, "
            f"or scale it"
        )
    resource, thing = await change.resource()
    await _delete(change.client, resource, thing.name, namespace=thing.namespace, uid=thing.uid)
    return f"{name}: cancelled ({before} before)"


async def suspend(change: Change) -> str:
    group, name, before = change.meant.gangs[0], change.meant.name, change.phases
    if change.over:
        raise conflict(f"{name} is over: {before}")
    _demand_field(change, "suspended")
    if group.suspended and not group.admit:
        return f"{name}: suspended already ({before})"
    body: dict[str, Any] = {} if group.kind == UNIFIED else {"metadata": {"annotations": {HOLD: "true"}}}
    put(body, group.suspend_field, True)
    price = when_resumed(_losses(change))
    await change.patch(body)
    return f"{name}: suspended ({before} before)" + (f"; {price}" if price else "")


def _losses(change: Change) -> list[Loss]:
    """Of its gangs that run: what was written about them is all that a cluster knows."""
    now_ms = time.time_ns() // 1_000_000
    found = []
    for group in change.meant.gangs:
        workload, since_ms = change.sight.mirror.workloads.get(group.id), change.shown[group.id]["sinceMs"]
        if workload is not None and since_ms is not None:
            found.append(unheard(workload, max(now_ms - since_ms, 0)))
    return found


async def resume(change: Change) -> str:
    group, name, before = change.meant.gangs[0], change.meant.name, change.phases
    if change.over:
        raise conflict(f"{name} is over: {before}")
    _demand_field(change, "resumed")
    if not group.suspended or group.admit:
        return f"{name}: is not suspended ({before})"
    body: dict[str, Any] = {"metadata": {"annotations": {HOLD: None, HELD_WHY: None}}}
    owner = change.owner()
    ours = owner is not None and (word_on(owner.metadata, QUEUE) or word_on(owner.metadata, SUSPENDED))
    if not ours or group.kind == UNIFIED:  # nobody would start it
        put(body, group.suspend_field, False)
    await change.patch(body)
    return f"{name}: resumed ({before} before)"


def _demand_field(change: Change, verb: str) -> None:
    """Of kinds that have no such field, it is said what can be done."""
    group = change.meant.gangs[0]
    if change.meant.whole and change.meant.object is not None and group.suspend_field:
        return
    kind = group.kind.rpartition("/")[2]
    instead = "cancel it" if kind == "Pod" else "scale it, or cancel it"
    raise conflict(f"{change.meant.name} cannot be {verb}: a {kind} has no field for that; {instead}")


async def scale(change: Change, replicas: int) -> str:
    """By the field of a Job, else by the scale of its kind, if it has one."""
    name = change.meant.name
    if change.over:
        raise conflict(f"{name} is over: {change.phases}")
    if replicas > MOST_REPLICAS:
        raise invalid(f"{name}: {replicas} replicas are more than {MOST_REPLICAS:,}")
    if change.meant.object is None:
        raise conflict(f"{name} cannot be scaled: it is pods that nobody owns; create more of them")
    resource, thing = await change.resource()
    if thing.kind == JOB:
        before = await _scale_job(change, replicas)
    elif thing.kind == UNIFIED:
        before = await _scale_ours(change, replicas)
    else:
        before = await _scale_other(change, resource, thing, replicas)
    return f"{name}: {replicas} replicas from now on ({before} before)"


async def _scale_job(change: Change, replicas: int) -> int:
    owner = change.owner()
    spec = owner.spec if owner is not None and isinstance(owner.spec, dict) else {}
    body: dict[str, Any] = {"spec": {"parallelism": replicas}}
    if spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism", 1):
        body["spec"]["completions"] = replicas  # an indexed Job is elastic only if both go together
    await change.patch(body)
    return int(spec.get("parallelism", 1))


async def _scale_ours(change: Change, replicas: int) -> int:
    """By the wish of its owner: its scale cannot be read as long as nobody has wished for anything."""
    worker = next(iter(change.meant.gangs[0].roles), None)
    await change.patch({"spec": {"replicaSpec": {"desiredReplicas": replicas}}})
    return worker.count if worker is not None else 0


async def _scale_other(change: Change, resource: Resource, thing: ObjectRef, replicas: int) -> int:
    path = resource.path(thing.namespace, thing.name, "scale")
    kind = thing.kind.rpartition("/")[2]
    try:
        found = msgspec.json.decode(await change.client.request("GET", path, verb="get"))
    except NotFound:
        raise conflict(f"{change.meant.name} cannot be scaled: a {kind} has no size that can be set") from None
    body = msgspec.json.encode({"spec": {"replicas": replicas}})
    await change.client.patch(resource, thing.name, body, namespace=thing.namespace, subresource="scale")
    return int((found.get("spec") or {}).get("replicas") or 0)


# -- queues and pools -----------------------------------------------------------------------------------------------


async def delete(client: Client, sight: Sight, shown: Mapping[str, View], kind: str, name: str) -> str:
    """One that nothing needs, as far as this user can see."""
    known = sight.mirror.tenants.queues if kind == "queues" else sight.mirror.tenants.pools
    if name not in known and sight.whole:
        raise missing(f"there is no {kind[:-1]} {name}; known are {_listed(known)}")
    _demand_unneeded(sight, shown, kind, name)
    try:
        await _delete(client, QUEUES if kind == "queues" else POOLS, name)
    except NotFound:
        raise missing(f"there is no {kind[:-1]} {name}") from None
    return f"{kind[:-1]} {name} deleted"


def _demand_unneeded(sight: Sight, shown: Mapping[str, View], kind: str, name: str) -> None:
    queues = sight.mirror.tenants.queues.values()
    if kind == "queues":
        below = [queue.name for queue in queues if queue.parent == name]
        if below:
            raise conflict(f"queue {name} has queues below it: delete {_listed(below)} first")
        live = [gang for gang, view in shown.items() if view["queue"] == name and not view["final"]]
        if live:
            raise conflict(f"queue {name} has jobs: cancel them or let them end: {_listed(live)}")
        return
    quotas = [queue.name for queue in queues if any(quota.pool == name for quota in queue.quotas)]
    if quotas:
        raise conflict(f"pool {name} has quotas: submit without them or delete {_listed(quotas)}")
    asking = [gang for gang, workload in sight.mirror.workloads.items() if name in workload.pools]
    if asking:
        raise conflict(f"pool {name} is asked for by jobs: cancel them or let them end: {_listed(asking)}")


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - MOST_NAMED} more" if len(ordered) > MOST_NAMED else ""
    return ", ".join(ordered[:MOST_NAMED]) + more or "none"


# -- writes ---------------------------------------------------------------------------------------------------------


async def _delete_pods(change: Change, gang: str) -> None:
    mirror = change.sight.mirror
    for uid in sorted(mirror.groups.members(gang)):
        pod = mirror.pods[uid]
        if not pod.over:
            try:
                await _delete(change.client, PODS, pod.metadata.name, namespace=pod.metadata.namespace, uid=uid)
            except NotFound:
                continue


async def _delete(client: Client, resource: Resource, name: str, *, namespace: str = "", uid: str = "") -> None:
    """What it owns goes after it."""
    body = {"propagationPolicy": "Background", **({"preconditions": {"uid": uid}} if uid else {})}
    await client.request("DELETE", resource.path(namespace, name), body=msgspec.json.encode(body), verb="delete")
