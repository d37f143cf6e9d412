"""Custom resource definitions, generated from the models that read them.

    QueueSpec, PoolSpec ──► JSON schema ──► structural schema with rules ──► CustomResourceDefinition

Why: what the server refuses and what we refuse are the same, because they are written once.
Owns: how a schema becomes structural, the rules that only a server can check at once (CEL), columns and short names.
Must not: know a server. `optimus crds` prints what is made here.

A number that may be text (`500m`, `16Gi`) is int-or-string for Kubernetes; parts of a GPU are written as text there
(`"0.5"`), since it knows no fractions in such fields.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from optimus.api.specs.clusters import PoolSpec
from optimus.api.specs.fields import Spec
from optimus.api.specs.queues import UNLIMITED, QueueSpec

GROUP, VERSION = "optimus.dev", "v1alpha1"
MOST = 32
"""Entries of a list or map: a server weighs rules by how often they may have to be looked at."""
Schema = dict[str, Any]

_DECIMAL = "[0-9]+([.][0-9]+)?"
_PATTERNS = {
    "gpu": (f"{_DECIMAL}m?", '8, "0.5" or 500m'),
    "cpu": (f"{_DECIMAL}m?", '4, "0.5" or 500m'),
    "memory": (f"{_DECIMAL}([KMGTPE]i?|k|m)?", "16Gi, 512Mi or 2G"),
    "count": ("[0-9]+", "a whole number"),
    "duration": (f"({_DECIMAL}(ms|s|m|h|d|w)?)+", "30s, 2h30m or 1d"),
    "share": (f"{_DECIMAL}[m%]?", '"0.8", 800m or 80%'),
    "moment": (".*", "2026-01-05T14:20:00Z"),
}
"""By quantity: what its text looks like, and how to write it."""


class Column(Struct, frozen=True):
    name: str
    path: str
    kind: str = "string"
    priority: int = 0


class Resource(Struct, frozen=True, kw_only=True):
    kind: str
    plural: str
    short_names: tuple[str, ...]
    spec: type[Spec]
    rules: tuple[tuple[str, str], ...] = ()
    """(rule, message) about the whole object."""
    columns: tuple[Column, ...] = ()
    status: dict[str, Schema] = {}


_CONDITIONS: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64"},
        },
    },
}
_SHARE_FIELDS = ("guarantee", "limit", "share", "allocated", "demand", "borrowed")
_SHARES: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["pool", "resource"],
        "properties": {
            "pool": {"type": "string"},
            "resource": {"type": "string"},
            **{name: {"type": "string"} for name in _SHARE_FIELDS},
        },
    },
}
_COUNT: Schema = {"type": "integer", "format": "int32"}
_IS_READY = ".status.conditions[?(@.type=='Ready')].status"
_WHY_NOT = ".status.conditions[?(@.type=='Ready')].message"

_BESIDE = " || ".join(f"has(self.spec.{name})" for name in ("gpu", "cpu", "memory", "accelerators"))
_ONE_DEFAULT = f"!has(self.spec.pools) || !self.spec.pools.exists(p, p.name == 'default') || !({_BESIDE})"

RESOURCES = (
    Resource(
        kind="Queue",
        plural="queues",
        short_names=("oq",),
        spec=QueueSpec,
        rules=(
            (
                "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
                "a queue cannot be its own parent; leave parent out for one at the top",
            ),
            (
                _ONE_DEFAULT,
                "the quotas of pool default are given twice: under pools, and beside it",
            ),
        ),
        columns=(
            Column("Parent", ".spec.parent"),
            Column("State", ".spec.state"),
            Column("GPUs", ".status.gpus"),
            Column("Guarantee", ".status.guarantee"),
            Column("Borrowed", ".status.borrowed"),
            Column("Running", ".status.running", "integer"),
            Column("Waiting", ".status.waiting", "integer"),
            Column("Ready", _IS_READY),
            Column("Limit", ".status.limit", priority=1),
            Column("Why", _WHY_NOT, priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        status={
            **{name: {"type": "string"} for name in ("gpus", "guarantee", "limit", "borrowed")},
            "running": _COUNT,
            "waiting": _COUNT,
            "waitingFor": {"type": "object", "additionalProperties": _COUNT},
            "shares": _SHARES,
            "conditions": _CONDITIONS,
        },
    ),
    Resource(
        kind="NodePool",
        plural="nodepools",
        short_names=("onp",),
        spec=PoolSpec,
        columns=(
            Column("Nodes", ".status.nodes", "integer"),
            Column("GPUs", ".status.gpus", "integer"),
            Column("Free", ".status.freeGpus"),
            Column("Fragmented", ".status.fragmentation"),
            Column("Ready", _IS_READY),
            Column("Why", _WHY_NOT, priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
        status={
            "nodes": _COUNT,
            "usableNodes": _COUNT,
            "gpus": _COUNT,
            "freeGpus": {"type": "string"},
            "models": {"type": "object", "additionalProperties": _COUNT},
            "free": {"type": "object", "additionalProperties": {"type": "string"}},
            "fragmentation": {"type": "string"},
            "conditions": _CONDITIONS,
        },
    ),
)


def definitions() -> list[dict[str, Any]]:
    return [definition(resource) for resource in RESOURCES]


def definition(resource: Resource) -> dict[str, Any]:
    whole: Schema = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec_schema(resource.spec),
            "status": {"type": "object", "properties": resource.status},
        },
        "x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in resource.rules],
    }
    if not resource.rules:
        del whole["x-kubernetes-validations"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(resource.short_names),
                "categories": ["optimus"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": one.name, "jsonPath": one.path, "type": one.kind, "priority": one.priority}
                        for one in resource.columns
                    ],
                    "schema": {"openAPIV3Schema": whole},
                }
            ],
        },
    }


def spec_schema(model: type[Spec]) -> Schema:
    """Without the name, which is the object's."""
    written = model.model_json_schema(by_alias=True)
    made = _structural(written, written.get("$defs", {}))
    made["properties"].pop("name", None)
    made["required"] = [name for name in made.get("required", ()) if name != "name"]
    if not made["required"]:
        del made["required"]
    return made


def _structural(schema: Schema, known: dict[str, Schema]) -> Schema:
    """One type for each field, no references, nothing that says null."""
    if "$ref" in schema:
        return _structural(known[schema["$ref"].rpartition("/")[2]], known)
    if "x-quantity" in schema:
        return _quantity(schema["x-quantity"])
    if "anyOf" in schema:
        (only,) = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return _structural(only, known)
    made: Schema = {key: schema[key] for key in ("type", "enum", "minimum", "maximum", "maxLength") if key in schema}
    if "description" in schema:
        made["description"] = schema["description"]
    if "properties" in schema:
        made["properties"] = {name: _structural(one, known) for name, one in schema["properties"].items()}
        if schema.get("required"):
            made["required"] = list(schema["required"])
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _structural(schema["additionalProperties"], known)
        made["maxProperties"] = MOST
    if "items" in schema:
        made["items"] = _structural(schema["items"], known)
        if "name" in made["items"].get("properties", ()):
            made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        made["maxItems"] = MOST
    return made


def _quantity(quantity: str) -> Schema:
    name, _, unlimited = quantity.partition(" or ")
    pattern, example = _PATTERNS[name]
    text = f"({pattern}|{UNLIMITED})" if unlimited else f"({pattern})"
    shown = f"{example} or {UNLIMITED}" if unlimited else example
    return {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 32,
        "x-kubernetes-validations": [
            {
                "rule": f"type(self) == int ? self >= 0 : self.matches('^{text}$')",
                "message": f"is no {name}: write {shown}",
            }
        ],
    }
