"""Pods and owners for stories about grouping, as short as they can be said."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.objects import Anything, Pod


def owner_of(thing: Anything) -> list[dict[str, Any]]:
    meta = thing.metadata
    return [
        {"apiVersion": thing.api_version, "kind": thing.kind, "name": meta.name, "uid": meta.uid, "controller": True}
    ]


def a_thing(
    kind: str,
    name: str,
    spec: dict[str, Any] | None = None,
    *,
    owner: Anything | None = None,
    namespace: str = "a",
    **more: Any,
) -> Anything:
    """`kind`: `batch/v1 Job`."""
    version, _, bare = kind.rpartition(" ")
    status = more.pop("status", {})
    meta = {"name": name, "namespace": namespace, "uid": f"{bare}-{namespace}-{name}", **more}
    if owner is not None:
        meta["ownerReferences"] = owner_of(owner)
    said = {"apiVersion": version, "kind": bare, "metadata": meta, "spec": spec or {}, "status": status}
    return msgspec.convert(said, Anything)


def a_pod(
    name: str,
    owner: Anything | None = None,
    *,
    namespace: str = "a",
    uid: str = "",
    phase: str = "Pending",
    spec: dict[str, Any] | None = None,
    **more: Any,
) -> Pod:
    meta = {"name": name, "namespace": namespace, "uid": uid or f"pod-{namespace}-{name}", **more}
    if owner is not None:
        meta["ownerReferences"] = owner_of(owner)
    return msgspec.convert({"metadata": meta, "spec": spec or {}, "status": {"phase": phase}}, Pod)
