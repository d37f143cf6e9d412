"""Letting go: what only the controller would let go of, once there is no controller any more.

Why: UnifiedJobs and their pods carry finalizers, so that no end is missed. With the controller uninstalled nobody takes
them away: what is deleted stays, and its namespace and the CRD with it.
Owns: finding out that no controller runs, and taking exactly our two finalizers away, from everything that has them.
Must not: delete anything, or trust the clock of whoever asks: a lease is over when nobody has renewed it while we
looked.

A job that nobody has deleted stays as it is; a controller that is installed later takes it up again. An end that comes
meanwhile is not counted by anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.jobs.words import API_VERSION, ENDED, KEPT, UNIFIED_JOB, UNIFIED_JOBS
from optimus.drivers.kube.rights import LEASE
from optimus.kube import Client, KubeError, Resource
from optimus.kube.client import MERGE, STRATEGIC
from optimus.kube.errors import Conflict, NotFound
from optimus.kube.resources import LEASES, PODS

DEPLOYMENTS = Resource("apps", "v1", "deployments")
OURS = "app.kubernetes.io/name=optimus,app.kubernetes.io/component=controller"
LOOK_S = 0.5
AT_ONCE = 32
TIMES = 5
"""A job that changes while we write is read again so often."""


class StillRuns(Exception):  # noqa: N818 - what is in the way
    """A controller runs, or would be started again; the text says which, and what to do."""


class Let(msgspec.Struct, frozen=True):
    """One object that we have looked at."""

    named: str
    going: bool
    """Somebody has deleted it, and this was what it waited for, or a part of it."""
    refused: str = ""
    """Why it still has its finalizer."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None


class _Thing(msgspec.Struct, frozen=True):
    metadata: _Meta


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _LeaseSpec = _LeaseSpec()


class _DeploymentSpec(msgspec.Struct, frozen=True):
    replicas: int | None = None


class _Deployment(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _DeploymentSpec = _DeploymentSpec()


async def demand_nobody_runs(client: Client, tell: Callable[[str], object]) -> None:
    """Raises StillRuns. Takes as long as a lease that nobody gave back is respected."""
    for one in (await client.listing(DEPLOYMENTS, _Deployment, labels=OURS)).items:
        if one.spec.replicas != 0:
            named = f"deployment {one.metadata.namespace}/{one.metadata.name}"
            raise StillRuns(
                f"{named} runs the controller: delete the UnifiedJobs while it does, then uninstall it"
                f" (helm uninstall, or kubectl -n {one.metadata.namespace} delete deployment {one.metadata.name})"
            )
    held = await _held(client)
    waited_s = max((one.spec.lease_duration_seconds or 15 for one in held.values()), default=0)
    if held:
        tell(f"{_holders(held)}: waiting {waited_s} s to see whether that is so")
    for _ in range(int(waited_s / LOOK_S) + 1 if held else 0):
        await asyncio.sleep(LOOK_S)
        now = await _held(client)
        alive = {
            key: one
            for key, one in now.items()
            if key not in held or held[key].metadata.resource_version != one.metadata.resource_version
        }
        if alive:
            raise StillRuns(
                f"{_holders(alive)}, and renews its lease: a controller runs. Delete the UnifiedJobs while it does;"
                " if it is to go first, stop it and call this again"
            )


async def let_go(client: Client, *, dry_run: bool = False) -> AsyncIterator[Let]:
    """Pods first, then jobs; tells each as it is done."""

    async def pod(found: _Thing) -> None:
        meta = found.metadata
        body = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [ENDED]}}
        await _patch(client, PODS, meta, body, STRATEGIC, dry_run=dry_run)

    async def job(found: _Thing) -> None:
        for more in reversed(range(TIMES)):
            meta = found.metadata
            left = [one for one in meta.finalizers or () if one != KEPT]
            body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left}}
            try:
                await _patch(client, UNIFIED_JOBS, meta, body, MERGE, dry_run=dry_run)
            except Conflict:
                if not more:
                    raise
                found = await client.get(UNIFIED_JOBS, meta.name, _Thing, namespace=meta.namespace)
            else:
                return

    async for one in _each(client, PODS, ENDED, "pod", pod):
        yield one
    discovery = Discovery(client)
    await discovery.refresh()
    if await discovery.resource(UNIFIED_JOB, API_VERSION) is not None:
        async for one in _each(client, UNIFIED_JOBS, KEPT, "unifiedjob", job):
            yield one


async def _each(
    client: Client, resource: Resource, finalizer: str, kind: str, take: Callable[[_Thing], Awaitable[None]]
) -> AsyncIterator[Let]:
    async def one(thing: _Thing) -> Let:
        meta = thing.metadata
        named, going = f"{kind}/{meta.namespace}/{meta.name}", meta.deletion_timestamp is not None
        try:
            await take(thing)
        except NotFound:  # it went by itself
            return Let(named, True)
        except KubeError as error:
            return Let(named, going, str(error))
        return Let(named, going)

    held = [
        thing
        for thing in (await client.listing(resource, _Thing)).items
        if finalizer in (thing.metadata.finalizers or ())
    ]
    for first in range(0, len(held), AT_ONCE):
        for let in await asyncio.gather(*map(one, held[first : first + AT_ONCE])):
            yield let


async def _patch(
    client: Client, resource: Resource, meta: _Meta, body: dict[str, Any], form: str, *, dry_run: bool
) -> None:
    await client.request(
        "PATCH",
        resource.path(meta.namespace, meta.name),
        query={"dryRun": "All"} if dry_run else {},
        body=msgspec.json.encode(body),
        content_type=form,
        verb="patch",
    )


async def _held(client: Client) -> dict[str, _Lease]:
    """Leases of controllers that somebody has not given back."""
    found = (await client.listing(LEASES, _Lease, fields=f"metadata.name={LEASE}")).items
    return {one.metadata.namespace: one for one in found if one.spec.holder_identity}


def _holders(held: dict[str, _Lease]) -> str:
    told = (
        f"{one.spec.holder_identity} has the lease {namespace}/{one.metadata.name}" for namespace, one in held.items()
    )
    return "; ".join(told)
