"""Changes to the cluster, many at a time, each with an outcome that is data.

Why: a scheduler sends thousands of binds and must know of each what is true now, also when no answer came.
Owns: how many changes are in flight, the guard that is asked before each, the meaning of each answer.
Must not: raise what the server says, or try again: the caller looks at what it watches and decides anew.

    Done       the server did it
    Conflict   it is not as we thought (bound already, another version, another object of that name): look at the watch
    Gone       there is no such object any more
    Unknown    sent, and no clear answer: it may have been done; the watch decides
    Refused    certainly not done; `reason` says why, `retry_after_s` when it may work

What may still land after its sender lost the lead: one request that passed its guard and was frozen before it left.
Give `uid` or `resource_version` where the change must not hit a newer object: the server then refuses it as a
Conflict. A bind needs neither: a pod is bound once. Annotations given to `bind` end up on the pod: a term of office
there tells a successor which bind was a late one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec

from optimus.kube import errors
from optimus.kube.client import JSON, MERGE, Client, Query, delete_options
from optimus.kube.line import Guard
from optimus.kube.resources import PODS, Resource

IN_FLIGHT = 48
TIMEOUT_S = 4.0
"""Where there are rivals, `Times.write_s` of the election."""
NOT_SENT, CONFIG, BUDGET, BUSY = "NotSent", "Credentials", "DisruptionBudget", "TooManyRequests"
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"

Document = Mapping[str, Any]


class Done(msgspec.Struct, frozen=True, tag=True):
    answer: bytes = b""


class Conflict(msgspec.Struct, frozen=True, tag=True):
    message: str


class Gone(msgspec.Struct, frozen=True, tag=True):
    message: str


class Unknown(msgspec.Struct, frozen=True, tag=True):
    message: str
    answered: bool = False
    """The server said that it failed: whatever it did is done. Without an answer it may still be on its way."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    reason: str
    """In the words of Kubernetes (Forbidden, Invalid, DisruptionBudget, TooManyRequests …), or NotSent."""
    message: str
    retry_after_s: float | None = None

    @property
    def passing(self) -> bool:
        """It says nothing against what was asked for: the moment was bad."""
        return self.reason in (NOT_SENT, BUSY)


Outcome = Done | Conflict | Gone | Unknown | Refused


class Writer:
    def __init__(
        self,
        client: Client,
        *,
        guard: Guard | None = None,
        in_flight: int = IN_FLIGHT,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`guard`: `Election.still_leader`, where there may be rivals."""
        self._client = client
        self._guard = guard
        self._timeout_s = timeout_s
        self._room = asyncio.Semaphore(in_flight)

    async def bind(
        self,
        pod: str,
        node: str,
        *,
        namespace: str,
        uid: str = "",
        resource_version: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Outcome:
        meta: dict[str, Any] = {"name": pod, "namespace": namespace, **_fence(uid, resource_version)}
        if annotations:
            meta["annotations"] = dict(annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        return await self._send("POST", PODS.path(namespace, pod, "binding"), body, verb="bind")

    async def evict(
        self,
        pod: str,
        *,
        namespace: str,
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
    ) -> Outcome:
        """`Done` means that it was told to leave; the watch says when it has. A disruption budget that is used up is
        `Refused` with reason DisruptionBudget; so are several for one pod, which the server does not support."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": delete_options(uid, resource_version, grace_s),
        }
        outcome = await self._send("POST", PODS.path(namespace, pod, "eviction"), body, verb="evict")
        if isinstance(outcome, Unknown) and outcome.answered and SEVERAL_BUDGETS in outcome.message:
            return Refused(BUDGET, outcome.message)  # the server calls it a fault of its own
        return outcome

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
    ) -> Outcome:
        body = delete_options(uid, resource_version, grace_s)
        return await self._send("DELETE", resource.path(namespace, name), body, verb="delete")

    async def create(self, resource: Resource, body: Document, *, namespace: str = "") -> Outcome:
        return await self._send("POST", resource.path(namespace), body, verb="create")

    async def patch(
        self,
        resource: Resource,
        name: str,
        changes: Document,
        *,
        namespace: str = "",
        subresource: str = "",
        form: str = MERGE,
        resource_version: str = "",
        manager: str = "",
    ) -> Outcome:
        """`form`: MERGE, STRATEGIC or APPLY, which needs a `manager`: the fields it owns become exactly these, and are
        taken from others. Status: `subresource="status"`."""
        if resource_version:
            changes = {**changes, "metadata": {**changes.get("metadata", {}), "resourceVersion": resource_version}}
        path = resource.path(namespace, name, subresource)
        query = {"fieldManager": manager, "force": "true"} if manager else None
        return await self._send("PATCH", path, changes, form=form, verb="patch", query=query)

    async def _send(
        self, method: str, path: str, body: Document, *, form: str = JSON, verb: str, query: Query | None = None
    ) -> Outcome:
        raw = msgspec.json.encode(body)
        async with self._room:
            return await outcome_of(
                self._client.request(
                    method,
                    path,
                    query=query,
                    body=raw,
                    content_type=form,
                    timeout_s=self._timeout_s,
                    guard=self._guard,
                    verb=verb,
                )
            )


async def outcome_of(request: Awaitable[bytes]) -> Outcome:
    try:
        return Done(await request)
    except errors.Conflict as error:
        return Conflict(error.message)
    except errors.NotFound as error:
        return Gone(error.message)
    except errors.ServerFault as error:
        return Unknown(str(error), answered=True)
    except errors.NoAnswer as error:
        return Unknown(str(error))
    except errors.ApiError as error:
        return Refused(error.cause or error.reason or str(error.status), error.message, error.retry_after_s)
    except errors.NotSent as error:
        return Refused(NOT_SENT, str(error))
    except errors.ConfigError as error:
        return Refused(CONFIG, str(error))


def _fence(uid: str, resource_version: str) -> dict[str, str]:
    named = (("uid", uid), ("resourceVersion", resource_version))
    return {name: value for name, value in named if value}
