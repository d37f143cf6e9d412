"""What is said of objects in a cluster: the fields of their status, and the columns that `kubectl get` shows.

Why: whoever writes a status and whoever reads it agree here; the server keeps nothing that is not declared.
Owns: status and columns of each resource.
Must not: say what people write; that is the spec of each resource.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

Schema = dict[str, Any]
MOST_REMEMBERED = 20
"""Attempts of a job, and targets it was given: the latest."""
MOST_PLACES = 1_024
"""Replicas of a job whose nodes are named."""


class Column(Struct, frozen=True):
    name: str
    path: str
    kind: str = "string"
    priority: int = 0
    """1: only with `-o wide`."""


_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_COUNT: Schema = {"type": "integer", "format": "int32"}
_LARGE: Schema = {"type": "integer", "format": "int64"}


def _mapping(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", **({"required": list(required)} if required else {}), "properties": properties}


def _latest(most: int, item: Schema) -> Schema:
    return {"type": "array", "maxItems": most, "x-kubernetes-list-type": "atomic", "items": item}


_CONDITIONS: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": _mapping(
        "type",
        "status",
        type=_TEXT,
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        reason=_TEXT,
        message=_TEXT,
        lastTransitionTime=_TIME,
        observedGeneration=_LARGE,
    ),
}
_IS_READY = ".status.conditions[?(@.type=='Ready')].status"
_WHY_NOT = ".status.conditions[?(@.type=='Ready')].message"
_AGE = Column("Age", ".metadata.creationTimestamp", "date")

# -- Queue ------------------------------------------------------------------------------------------------------------

_SHARES: Schema = {
    "type": "array",
    "items": _mapping(
        "pool",
        "resource",
        pool=_TEXT,
        resource=_TEXT,
        **dict.fromkeys(("guarantee", "limit", "share", "allocated", "demand", "borrowed"), _TEXT),
    ),
}
QUEUE_COLUMNS = (
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
    _AGE,
)
QUEUE_STATUS: dict[str, Schema] = {
    **dict.fromkeys(("gpus", "guarantee", "limit", "borrowed"), _TEXT),
    "running": _COUNT,
    "waiting": _COUNT,
    "waitingFor": {"type": "object", "additionalProperties": _COUNT},
    "shares": _SHARES,
    "policy": _TEXT,
    "conditions": _CONDITIONS,
}

# -- NodePool ---------------------------------------------------------------------------------------------------------

POOL_COLUMNS = (
    Column("Nodes", ".status.nodes", "integer"),
    Column("GPUs", ".status.gpus", "integer"),
    Column("Free", ".status.freeGpus"),
    Column("Fragmented", ".status.fragmentation"),
    Column("Ready", _IS_READY),
    Column("Why", _WHY_NOT, priority=1),
    _AGE,
)
POOL_STATUS: dict[str, Schema] = {
    "nodes": _COUNT,
    "usableNodes": _COUNT,
    "gpus": _COUNT,
    "freeGpus": _TEXT,
    "models": {"type": "object", "additionalProperties": _COUNT},
    "free": {"type": "object", "additionalProperties": _TEXT},
    "fragmentation": _TEXT,
    "conditions": _CONDITIONS,
}

# -- UnifiedJob -------------------------------------------------------------------------------------------------------

JOB_COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("Running", ".status.running"),
    Column("Queue", ".spec.queue"),
    _AGE,
    Column("ETA", ".status.estimatedEnd"),
    Column("Attempt", ".status.attempt", "integer", priority=1),
    Column("Why", ".status.message", priority=1),
)
JOB_STATUS: dict[str, Schema] = {
    "phase": _TEXT,
    "reason": _TEXT,
    "message": _TEXT,
    "observedGeneration": _LARGE,
    "replicas": _COUNT,  # there are, for the scale subresource
    "ready": _COUNT,
    "target": _COUNT,
    "running": _TEXT,  # such as 2/4
    "attempt": _COUNT,
    "failures": _COUNT,
    "preemptions": _COUNT,
    "startTime": _TIME,
    "completionTime": _TIME,
    "estimatedStart": _TIME,
    "estimatedEnd": _TIME,
    "selector": _TEXT,  # of its pods, for the scale subresource
    "url": _TEXT,  # of an Interactive job
    "placement": _latest(MOST_PLACES, _mapping("replica", replica=_TEXT, node=_TEXT)),
    "lastCheckpoint": _mapping(time=_TIME, step=_LARGE, path=_TEXT),
    "progress": _mapping(
        step=_LARGE,
        total=_LARGE,
        fraction=_TEXT,
        stepsPerSecond=_TEXT,
        metrics={"type": "object", "additionalProperties": _TEXT},
    ),
    "attempts": _latest(
        MOST_REMEMBERED, _mapping("number", number=_COUNT, started=_TIME, ended=_TIME, reason=_TEXT, message=_TEXT)
    ),
    "targets": _latest(MOST_REMEMBERED, _mapping("target", time=_TIME, target=_COUNT, reason=_TEXT)),
    "conditions": _CONDITIONS,
    # Kept by the controller for the next leader; nobody else reads it.
    "life": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
