"""Starting and stopping work by its own field, as data: what is sent is said here, who sends it is the body's business.

Where it goes is not written into its template (ADR 23). Work that we suspend is marked, so that it is not taken for its
user's wish, and so that we may start it again. Work that is stopped for good is held as well, with the reason: another
leader knows nothing of it but what stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.grouping.kinds import StopHow
from optimus.drivers.kube.grouping.overrides import BECAUSE, HELD_WHY, HOLD, SUSPENDED
from optimus.drivers.kube.grouping.records import Group, ObjectRef


class Patch(Struct, frozen=True, kw_only=True):
    """A JSON merge patch for one object. `body` carries its uid: an object of the same name is not touched."""

    object: ObjectRef
    body: dict[str, Any]


def start_patch(group: Group) -> Patch | None:
    """Un-suspends; None if it is not suspended or cannot be."""
    if not group.suspended or not group.suspend_field or group.object is None:
        return None
    body = _body(group.object, None)
    put(body, group.suspend_field, False)
    return Patch(object=group.object, body=body)


def stop_patch(group: Group) -> Patch | None:
    """Suspends; None if it is not stopped that way."""
    if group.suspended or not group.stop.field or group.object is None:
        return None
    body = _body(group.object, "true")
    put(body, group.stop.field, True)
    return Patch(object=group.object, body=body)


def hold_patch(group: Group, why: str) -> Patch | None:
    """Suspends for good: nobody starts it but people. None if it is not stopped that way."""
    if not group.stop.field or group.object is None:
        return None
    body = _body(group.object, "true")
    body["metadata"]["annotations"] |= {HOLD: "true", HELD_WHY: why}
    put(body, group.stop.field, True)
    return Patch(object=group.object, body=body)


def target_patch(group: Group, replicas: int, why: str, *, held: bool = False) -> Patch | None:
    """So many replicas, and why; None if its number is not ours to write. `held`: it ends with this reason."""
    if group.object is None or group.stop.how is not StopHow.TARGET:
        return None
    uid = {"uid": group.object.uid} if group.object.uid else {}
    notes: dict[str, str | None] = {BECAUSE: why, **({HELD_WHY: why} if held else {})}
    body: dict[str, Any] = {"metadata": {**uid, "annotations": notes}}
    put(body, group.stop.field, replicas)
    return Patch(object=group.object, body=body)


def _body(thing: ObjectRef, mark: str | None) -> dict[str, Any]:
    uid = {"uid": thing.uid} if thing.uid else {}
    return {"metadata": {**uid, "annotations": {SUSPENDED: mark, HELD_WHY: None}}}


def put(body: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for key in path[:-1]:
        body = body.setdefault(key, {})
    body[path[-1]] = value
