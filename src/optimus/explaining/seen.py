"""What people see of a job: the part of its record in the HTTP API that an explanation needs."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class WhySeen(Struct, frozen=True, rename="camel"):
    code: str
    text: str


class ReplicaSeen(Struct, frozen=True, kw_only=True, rename="camel"):
    node: str
    devices: tuple[int, ...]
    state: str


class JobSeen(Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str
    name: str
    queue: str
    job_class: str
    priority: int
    phase: str
    final: bool
    suspended: bool
    submitted_ms: int
    reason: WhySeen | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    since_ms: int | None = None
    min_replicas: int = 0
    max_replicas: int = 0
    running_replicas: int = 0
    replicas: tuple[ReplicaSeen, ...] = ()
    counts: dict[str, int] = {}
    """Of an array."""

    @property
    def id(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, view: Any) -> JobSeen:
        return msgspec.convert(view, cls)
