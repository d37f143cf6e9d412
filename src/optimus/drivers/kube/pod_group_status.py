"""The condition `PodGroupScheduled` of native PodGroups: what Kubernetes asks of whoever schedules their pods.

    True, Scheduled            as many pods as it asks for are on nodes
    False, Unschedulable       it waits; the message is the reason that its pods are told

Why: autoscalers and controllers of workloads read it, whichever scheduler places the pods.
Owns: the words of the condition, and when it is worth a write.
Must not: take back a True: what comes later of a group that was scheduled once is told on its pods. Upstream does the
same, and writes no other condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.grouping.podgroups import NATIVE
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Anything
from optimus.kube import Done, Resource, Writer
from optimus.kube.client import STRATEGIC
from optimus.model.reasons import Reason

EVERY_S = 2.0
AGAIN_S = 60.0
"""The same reason with other numbers is told again after this time."""
AT_ONCE = 4
SCHEDULED = "PodGroupScheduled"


class Told(Struct, frozen=True):
    status: str
    code: str
    text: str
    at: float


class PodGroupStatus:
    def __init__(
        self,
        mirror: Mirror,
        writer: Writer,
        resource_of: Callable[[str, str], Resource | None],
        waiting: Callable[[], Mapping[str, Reason]],
        clock: Callable[[], float],
    ) -> None:
        """`resource_of`: kind and version -> where its objects live. `waiting`: why workloads wait."""
        self._mirror, self._writer, self._resource_of = mirror, writer, resource_of
        self._waiting, self._clock = waiting, clock
        self._seen: dict[str, str] = {}
        """By uid: the code it waited for a round ago. Who waits for a moment only is told nothing."""
        self._told: dict[str, Told] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.write()

    async def write(self) -> None:
        """What has changed since it was written."""
        room = asyncio.Semaphore(AT_ONCE)
        seen: dict[str, str] = {}
        there: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            for thing, gangs in list(self._mirror.groups.pod_groups(NATIVE)):
                uid = thing.metadata.uid
                there.add(uid)
                if _is_scheduled(thing) or not any(gang in self._mirror.workloads for gang in gangs):
                    continue
                why = next((why for gang in gangs if (why := self._waiting().get(gang)) is not None), None)
                if why is not None:
                    seen[uid] = str(why.code)
                    if self._seen.get(uid) != why.code:
                        continue
                if why is None and not all(map(self._is_there, gangs)):
                    continue  # its binds are on their way
                if (told := self._news(uid, why)) is not None:
                    tasks.create_task(self._write(room, thing, told))
        self._seen = seen
        self._told = {uid: told for uid, told in self._told.items() if uid in there}

    def _is_there(self, gang: str) -> bool:
        group, seated = self._mirror.groups.group(gang), self._mirror.roles_seated(gang)
        return bool(seated) and group is not None and all(seated.count(one.name) >= one.needed for one in group.roles)

    def _news(self, uid: str, why: Reason | None) -> Told | None:
        """None: it says so already."""
        now = Told("False" if why else "True", str(why.code) if why else "", why.text() if why else "", self._clock())
        old = self._told.get(uid)
        if old is None or (old.status, old.code) != (now.status, now.code):
            return now
        return now if old.text != now.text and now.at - old.at > AGAIN_S else None

    async def _write(self, room: asyncio.Semaphore, thing: Anything, told: Told) -> None:
        meta = thing.metadata
        resource = self._resource_of(NATIVE, thing.api_version)
        if resource is None:
            return
        condition: dict[str, Any] = {
            "type": SCHEDULED,
            "status": told.status,
            "reason": "Scheduled" if told.status == "True" else "Unschedulable",
            "message": f"{told.code}: {told.text}"[:1024] if told.code else "",
            "observedGeneration": meta.generation,
            "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
        async with room:
            outcome = await self._writer.patch(
                resource,
                meta.name,
                {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}},
                namespace=meta.namespace,
                subresource="status",
                form=STRATEGIC,
            )
        if isinstance(outcome, Done):
            self._told[meta.uid] = told


def _is_scheduled(thing: Anything) -> bool:
    written = thing.status.get("conditions") if isinstance(thing.status, dict) else None
    return any(one.get("type") == SCHEDULED and one.get("status") == "True" for one in written or ())
