"""Apply plain objects to a server, one after the other, with the rights of whoever asks: `optimus install --apply`.

Server-side apply, as one field manager: applied twice, nothing changes; what others have added stays. A kind that is
made by an object before it (a CRD) is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping.kinds import kind_name
from optimus.kube import Client, KubeError, Resource
from optimus.kube.client import APPLY
from optimus.kube.decoding import decode
from optimus.kube.errors import NotFound

MANAGER = "optimus-install"
CRD = "CustomResourceDefinition"
PATIENCE_S = 30.0
LOOK_S = 0.5
OPTIONAL = ", as Kubernetes does from 1.36 on; without --opting-in it is not needed"


class _Version(msgspec.Struct, rename="camel"):
    major: str = ""
    minor: str = ""
    emulation_major: str = ""
    emulation_minor: str = ""


class ApplyError(Exception):
    """One object was refused; the text says which and why."""


async def apply(client: Client, objects: list[dict[str, Any]], *, dry_run: bool = False) -> AsyncIterator[str]:
    """Tells each as it is done. `dry_run`: the server judges, and keeps nothing."""
    discovery = Discovery(client)
    await discovery.refresh()
    await _demand_served(client, discovery, objects)
    for one in objects:
        meta = one["metadata"]
        named = f"{one['kind'].lower()}/{meta['name']}"
        try:
            resource = await _resource(discovery, one)
            path = resource.path(meta.get("namespace", ""), meta["name"])
            query = {"fieldManager": MANAGER, "force": "true", **({"dryRun": "All"} if dry_run else {})}
            await client.request(
                "PATCH", path, query=query, body=msgspec.json.encode(one), content_type=APPLY, verb="patch"
            )
        except NotFound as error:
            if not dry_run or "namespaces" not in error.message:
                raise ApplyError(f"{named}: {error}") from None
            named += " (its namespace does not exist yet)"
        except KubeError as error:
            raise ApplyError(f"{named}: {error}") from None
        yield named


async def _demand_served(client: Client, discovery: Discovery, objects: list[dict[str, Any]]) -> None:
    """Before anything is applied: half an installation helps nobody. What a CRD among them makes comes with it."""
    made = {(one["spec"]["group"], one["spec"]["names"]["kind"]) for one in objects if one["kind"] == CRD}
    wanted = {(one["apiVersion"], one["kind"]) for one in objects}
    for version, kind in sorted(wanted):
        if (version.rpartition("/")[0], kind) in made:
            continue
        if await discovery.resource(kind_name(version, kind), version) is None:
            hint = OPTIONAL if kind.startswith("MutatingAdmissionPolicy") else ""
            told = f"the server (Kubernetes {await served_version(client)}) does not serve {kind} of {version}"
            raise ApplyError(f"nothing was applied: {told}{hint}")


async def served_version(client: Client) -> str:
    """`1.36`: what the server behaves as, which may be older than what it is."""
    told = decode(await client.request("GET", "/version", verb="get"), _Version)
    return f"{told.emulation_major or told.major}.{told.emulation_minor or told.minor}"


async def _resource(discovery: Discovery, one: dict[str, Any]) -> Resource:
    for _ in range(int(PATIENCE_S / LOOK_S)):
        found = await discovery.resource(kind_name(one["apiVersion"], one["kind"]), one["apiVersion"])
        if found is not None:
            return found
        await asyncio.sleep(LOOK_S)
        await discovery.refresh()
    raise ApplyError(f"the server does not serve {one['kind']} of {one['apiVersion']}")
