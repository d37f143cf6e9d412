"""The pod template of a UnifiedJob as the schema of a server: whatever Kubernetes knows, and the few parts that rules
look at.

Why: a template is passed on untouched; but one that could never run as a part of a job is refused when it is written.
Owns: which parts are declared. Everything else is kept as it is, and judged by the server when the pods are made.
Must not: repeat what Pod Security, quotas and the pods' own validation do: they see each pod, whoever makes it.
"""

from __future__ import annotations

from optimus.api.specs.cluster_schemas import RULES, Schema, must

MOST_CONTAINERS = 32
_KEPT = {"x-kubernetes-preserve-unknown-fields": True}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}


_CONTAINER: Schema = {
    "type": "object",
    **_KEPT,
    "required": ["name", "image"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 63},
        "image": {"type": "string", "minLength": 1},
        "command": {"type": "array", "items": _TEXT},
        "args": {"type": "array", "items": _TEXT},
        "workingDir": _TEXT,
        "env": {
            "type": "array",
            "items": {
                "type": "object",
                **_KEPT,
                "required": ["name"],
                "properties": {"name": {"type": "string", "minLength": 1}, "value": _TEXT},
            },
        },
    },
}
_POD: Schema = {
    "type": "object",
    **_KEPT,
    "required": ["containers"],
    "properties": {
        "containers": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_CONTAINERS,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _CONTAINER,
        },
        "nodeName": {
            "type": "string",
            "maxLength": 253,
            RULES: [must("self == ''", "a pod that names its node is not scheduled: write nodeSelector or affinity")],
        },
        "restartPolicy": {
            "type": "string",
            "maxLength": 32,
            RULES: [
                must(
                    "self == 'Never'",
                    "leave it out, or write Never: a replica that fails is started again by spec.restart",
                )
            ],
        },
        "schedulerName": {"type": "string", "maxLength": 253},
        "nodeSelector": _TEXTS,
    },
    RULES: [
        must(
            "(has(self.schedulerName) ? self.schedulerName : '')"
            " == (has(oldSelf.schedulerName) ? oldSelf.schedulerName : '')",
            "a job stays with its scheduler: delete it and make another",
        )
    ],
}
TEMPLATE: Schema = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        # Names, owners and finalizers of pods are the controller's: only these two are theirs who write the job.
        "metadata": {
            "type": "object",
            "properties": {
                "labels": _TEXTS,
                "annotations": _TEXTS,
                # written by `kubectl create --dry-run -o yaml`
                "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
            },
        },
        "spec": _POD,
    },
}
