"""From a field of the domain back to the key that a person wrote for it.

Why: `optimus.model.validation` says `gang.roles.0.min`; the author wrote `replicas: {min: …}`.
Owns: the translation of paths, shorthands included.
Must not: be exact at any price: a path that leads nowhere falls back to the record it lies in.
"""

from __future__ import annotations

from pydantic.alias_generators import to_camel

from optimus.api.marks import Loc
from optimus.api.specs.queues import QueueSpec
from optimus.api.specs.replicas import GangFields, GroupSpec, RoleSpec
from optimus.model.queues import CORE_RESOURCES

_SUFFIXES = ("_ms", "_mib", "_milli", "_percent")
_NODE = {"devices": ("gpus", "devices")}
_POOL = {"levels": "topologyLevels", "strategy": "placement"}
_QUEUE_POLICY = {"max_gpu_milli_per_workload": "maxGpusPerWorkload"}
_WORKLOAD = {"id": "name", "suspended": "suspend"}
_REQUEST: dict[str, Loc] = {
    "gpu_count": ("gpu", "count"),
    "gpu_milli": ("gpu", "fraction", "request"),
    "gpu_limit_milli": ("gpu", "fraction", "limit"),
    "gpu_memory_mib": ("gpu", "memory"),
    "models": ("gpu", "models"),
    "activity_milli": ("gpu", "activity"),
}


def locate_node(path: str) -> Loc:
    first, *rest = split_path(path)
    return (*_NODE.get(str(first), (plain_key(first),)), *(plain_key(part) for part in rest))


def locate_pool(path: str) -> Loc:
    first, *rest = split_path(path)
    return (_POOL.get(str(first), plain_key(first)), *rest)


def locate_queue(spec: QueueSpec, path: str) -> Loc:
    first, *rest = split_path(path)
    if first == "policy" and rest:
        return (_QUEUE_POLICY.get(str(rest[0]), plain_key(rest[0])), *rest[1:])
    if first != "quotas" or len(rest) < 2:
        return (plain_key(first), *rest)
    index, field, *inner = rest
    shorthand = isinstance(index, int) and index >= len(spec.pools)
    if field == "pool":
        return () if shorthand else ("pools", index, "name")
    if inner and inner[0] not in CORE_RESOURCES:
        inner = ["accelerators", *inner]
    return tuple(inner) if shorthand else ("pools", index, *inner)


def locate_workload(spec: GangFields, path: str) -> Loc:
    first, *rest = split_path(path)
    if first == "gang":
        return _in_gang(spec, rest)
    return (_WORKLOAD.get(str(first), plain_key(first)), *(plain_key(part) for part in rest))


def _in_gang(spec: GangFields, parts: list[str | int]) -> Loc:
    loc: Loc = ()
    here: GangFields | RoleSpec = spec
    while len(parts) >= 2 and parts[0] in ("groups", "roles") and isinstance(parts[1], int):
        kind, index = str(parts[0]), parts[1]
        parts = parts[2:]
        if isinstance(here, GangFields) and kind == "groups" and index < len(here.groups):
            here, loc = here.groups[index], (*loc, kind, index)
        elif isinstance(here, GangFields) and kind == "roles" and index < len(here.roles):
            here, loc = here.roles[index], (*loc, kind, index)
        else:  # a role that was said without its name: its fields are the group's own
            return (*loc, *field_of_role(parts))
    if isinstance(here, RoleSpec):
        return (*loc, *field_of_role(parts))
    if parts and parts[0] in ("min", "max", "sizes"):
        return (*loc, "copies", *parts) if isinstance(here, GroupSpec) else loc
    return (*loc, *parts)


def field_of_role(parts: list[str | int]) -> Loc:
    if parts and parts[0] in ("min", "max", "sizes"):
        return ("replicas", *parts)
    if len(parts) >= 2 and parts[0] == "request":
        return (*_REQUEST.get(str(parts[1]), (plain_key(parts[1]),)), *(plain_key(part) for part in parts[2:]))
    return tuple(parts)


def split_path(path: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in path.split(".")]


def plain_key(part: str | int) -> str | int:
    """`max_wait_ms` is written `maxWait`."""
    if isinstance(part, int):
        return part
    for suffix in _SUFFIXES:
        part = part.removesuffix(suffix)
    return to_camel(part)
