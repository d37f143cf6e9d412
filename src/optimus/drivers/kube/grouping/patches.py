"""Starting and stopping work by its own field, as data: what is sent is said here, who sends it is the body's business.

Un-suspending work on admission may also say where: batch Jobs take a node selector while they are suspended. Work that
we suspend is marked, so that it is not taken for its user's wish, and so that we may start it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from optimus.drivers.kube.grouping.overrides import SUSPENDED
from optimus.drivers.kube.grouping.records import Group, ObjectRef


class Patch(Struct, frozen=True, kw_only=True):
    """A JSON merge patch for one object. `body` carries its uid: an object of the same name is not touched."""

    object: ObjectRef
    body: dict[str, Any]


def start_patch(group: Group, node_selector: Mapping[str, str] | None = None) -> Patch | None:
    """Un-suspends; None if it is not suspended or cannot be. `node_selector` is set where the kind allows it."""
    if not group.suspended or not group.suspend_field or group.object is None:
        return None
    body = _body(group.object, None)
    put(body, group.suspend_field, False)
    if node_selector and group.directives_field:
        put(body, (*group.directives_field, "spec", "nodeSelector"), dict(node_selector))
    return Patch(object=group.object, body=body)


def stop_patch(group: Group) -> Patch | None:
    """Suspends; None if it is not stopped that way."""
    if group.suspended or not group.stop.field or group.object is None:
        return None
    body = _body(group.object, "true")
    put(body, group.stop.field, True)
    return Patch(object=group.object, body=body)


def _body(thing: ObjectRef, mark: str | None) -> dict[str, Any]:
    uid = {"uid": thing.uid} if thing.uid else {}
    return {"metadata": {**uid, "annotations": {SUSPENDED: mark}}}


def put(body: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for key in path[:-1]:
        body = body.setdefault(key, {})
    body[path[-1]] = value
