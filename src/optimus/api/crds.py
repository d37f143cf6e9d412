"""Custom resource definitions, generated from the models that read them.

    ClusterQueueSpec, PoolSpec, ClusterJobSpec ──► JSON schema ──► structural schema with rules ──► what a server takes

Why: what the server refuses and what we refuse are the same, because they are written once.
Owns: how a schema becomes structural, the rules about whole objects that only a server can check at once (CEL), and
      short names. Rules about one mapping stand where it is defined; status and columns are in `shown_status`.
Must not: know a server. `optimus crds` prints what is made here.

A number that may be text (`500m`, `16Gi`) is int-or-string for Kubernetes; parts of a GPU are written as text there
(`"0.5"`), since it knows no fractions in such fields.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json

from optimus.api.shown_status import (
    JOB_COLUMNS,
    JOB_STATUS,
    POOL_COLUMNS,
    POOL_STATUS,
    QUEUE_COLUMNS,
    QUEUE_STATUS,
    Column,
    Schema,
)
from optimus.api.specs.cluster_jobs import LONGEST_NAME, ClusterJobSpec
from optimus.api.specs.clusters import PoolSpec
from optimus.api.specs.fields import Spec
from optimus.api.specs.queues import UNLIMITED, ClusterQueueSpec

GROUP, VERSION = "optimus.dev", "v1alpha1"
MOST = 32
"""Entries of a list or map: a server weighs rules by how often they may have to be looked at."""

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


class Resource(Struct, frozen=True, kw_only=True):
    kind: str
    plural: str
    short_names: tuple[str, ...]
    spec: type[Spec]
    rules: tuple[tuple[str, str], ...] = ()
    """(rule, message) about the whole object."""
    columns: tuple[Column, ...] = ()
    status: dict[str, Schema] = {}
    namespaced: bool = False
    scale: dict[str, str] = {}
    """Where its numbers are, if `kubectl scale` changes it."""


_BESIDE = " || ".join(f"has(self.spec.{name})" for name in ("gpu", "cpu", "memory", "accelerators"))
_ONE_DEFAULT = f"!has(self.spec.pools) || !self.spec.pools.exists(p, p.name == 'default') || !({_BESIDE})"
_VALUES_WHERE_NEEDED = (
    "!has(self.spec.namespaceSelector) || !has(self.spec.namespaceSelector.matchExpressions)"
    " || self.spec.namespaceSelector.matchExpressions.all(e,"
    " (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))"
)
_CAN_BE_A_POD = (
    f"size(self.metadata.name) <= {LONGEST_NAME} && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')"
)
_NAME_OF_A_JOB = f"at most {LONGEST_NAME} small letters, digits and '-': its pods and its service are called after it"

RESOURCES = (
    Resource(
        kind="Queue",
        plural="queues",
        short_names=("oq",),
        spec=ClusterQueueSpec,
        rules=(
            (
                "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
                "a queue cannot be its own parent; leave parent out for one at the top",
            ),
            (
                _VALUES_WHERE_NEEDED,
                "namespaceSelector: In and NotIn need values, Exists and DoesNotExist have none",
            ),
            (
                _ONE_DEFAULT,
                "the quotas of pool default are given twice: under pools, and beside it",
            ),
        ),
        columns=QUEUE_COLUMNS,
        status=QUEUE_STATUS,
    ),
    Resource(
        kind="NodePool",
        plural="nodepools",
        short_names=("onp",),
        spec=PoolSpec,
        columns=POOL_COLUMNS,
        status=POOL_STATUS,
    ),
    Resource(
        kind="UnifiedJob",
        plural="unifiedjobs",
        short_names=("uj",),
        namespaced=True,
        spec=ClusterJobSpec,
        rules=((_CAN_BE_A_POD, f"the name must begin with a letter and have {_NAME_OF_A_JOB}"),),
        columns=JOB_COLUMNS,
        status=JOB_STATUS,
        scale={
            "specReplicasPath": ".spec.replicaSpec.desiredReplicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    ),
)


def definitions() -> list[dict[str, Any]]:
    # Nothing is shared between them or inside one: whoever prints them as YAML wants no references.
    made: list[dict[str, Any]] = json.decode(json.encode([definition(resource) for resource in RESOURCES]))
    return made


def definition(resource: Resource) -> dict[str, Any]:
    spec = spec_schema(resource.spec)
    whole: Schema = {
        "type": "object",
        **({"required": ["spec"]} if "required" in spec else {}),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
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
            "scope": "Namespaced" if resource.namespaced else "Cluster",
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
                    "subresources": {"status": {}, **({"scale": resource.scale} if resource.scale else {})},
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


_COPIED = ("type", "enum", "format", "minimum", "exclusiveMinimum", "maximum", "minLength", "maxLength", "minItems")
_SAID_OUTSIDE = {"description": "description", "x-default": "default", "maxItems": "maxItems"}
"""Beside what may be left out, or stands elsewhere: (as a model says it, as a server reads it)."""


def _structural(schema: Schema, known: dict[str, Schema]) -> Schema:
    """One type for each field, no references, nothing that says null."""
    outside = {name: schema[key] for key, name in _SAID_OUTSIDE.items() if key in schema}
    if "$ref" in schema:
        return {**_structural(known[schema["$ref"].rpartition("/")[2]], known), **outside}
    if "x-quantity" in schema:
        return {**_quantity(schema["x-quantity"]), **outside}
    if "x-structural" in schema:
        return {**schema["x-structural"], **outside}
    if "anyOf" in schema:
        (only,) = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return {**_structural(only, known), **outside}
    made: Schema = {key: schema[key] for key in schema if key in _COPIED or key.startswith("x-kubernetes-")}
    made |= {name: value for name, value in outside.items() if name != "maxItems"}
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
        made["maxItems"] = schema.get("maxItems", MOST)
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
