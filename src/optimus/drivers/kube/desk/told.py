"""What the controller has said: in conditions of pods, and in events about their owners.

Why: a tenant who sees only a namespace has the same reasons as everybody, as they were written there.
Owns: reading them back.
Must not: take words of others for ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.objects import Meta, Narrow, Pod
from optimus.kube import Client
from optimus.kube.errors import Forbidden, NotFound
from optimus.kube.resources import EVENTS
from optimus.model.reasons import Code

OURS = re.compile(r"([A-Z][A-Za-z]+): (.+)", re.DOTALL)
CODES = frozenset(str(code) for code in Code)
PREEMPTING = "Preempting"


class Series(Narrow, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: str | None = None


class About(Narrow, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    event_time: str | None = None
    reason: str = ""
    note: str = ""
    action: str = ""
    regarding: About = About()
    series: Series | None = None
    deprecated_count: int = 0
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None

    @property
    def count(self) -> int:
        return (self.series.count if self.series else 0) or self.deprecated_count or 1

    @property
    def last_ms(self) -> int:
        last = self.series.last_observed_time if self.series else None
        return read_time(last or self.event_time or self.deprecated_last_timestamp or self.metadata.creation_timestamp)


class Happened(Struct, frozen=True):
    events: tuple[Event, ...]

    def about(self, uids: Collection[str]) -> Happened:
        return Happened(tuple(one for one in self.events if one.regarding.uid in uids))

    def views(self, job: str) -> list[dict[str, Any]]:
        return [
            {
                "atMs": one.last_ms,
                "object": job,
                "code": one.reason,
                "text": one.note + (f" (said {one.count} times)" if one.count > 1 else ""),
            }
            for one in self.events
        ]

    def preemptions(self) -> int:
        return sum(one.count for one in self.events if one.action == PREEMPTING)

    def reason(self) -> dict[str, Any] | None:
        """The last thing that was said in our words."""
        ours = [one for one in self.events if one.reason in CODES]
        return {"code": ours[-1].reason, "text": ours[-1].note} if ours else None


def told_on_pods(pods: Iterable[Pod]) -> dict[str, Any] | None:
    """Why they wait, by their condition."""
    for pod in pods:
        for condition in pod.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                found = OURS.fullmatch(condition.message or "")
                if found and found[1] in CODES:
                    return {"code": found[1], "text": found[2]}
    return None


async def happened(client: Client, namespace: str) -> Happened:
    """In a namespace, the oldest first."""
    try:
        found = (await client.listing(EVENTS, Event, namespace=namespace)).items
    except (Forbidden, NotFound):
        return Happened(())
    return Happened(tuple(sorted(found, key=lambda event: event.last_ms)))
