"""Cycles as people write them: time passes, things happen, the scheduler decides, something must be true.

Why: a story is told step by step; one entry is one step.
Owns: the words for events, and the order in which those of one entry happen (the order of the fields below).
Must not: resolve names; `optimus.api.building.timeline` does.

    cycles:
      - {note: "Monday morning", expect: {workloads: {train: running}}}
      - advance: 5m
        fail: {nodes: [a-1]}
        submit: [{name: urgent, queue: vision, gpu: 8, priority: 500}]
        expect: {workloads: {train: {evicted: 2}, urgent: running}}
      - repeat: 3
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from optimus.api.specs.clusters import NodeGroupSpec, PoolSpec, Taints
from optimus.api.specs.expectations import ExpectSpec
from optimus.api.specs.fields import (
    Capacity,
    Count,
    Counts,
    Cpu,
    Duration,
    Names,
    Offset,
    Spec,
    Text,
    Texts,
    When,
    complain,
    shown,
)
from optimus.api.specs.queues import QueueSpec
from optimus.api.specs.workloads import ScenarioWorkloadSpec

MOST_CYCLES = 10_000


def _read_repeat(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_CYCLES:
        return value
    raise complain(f"must be 1 to {MOST_CYCLES}: {shown(value)}")


Repeat = Annotated[int, PlainValidator(_read_repeat), WithJsonSchema({"type": "integer", "minimum": 1})]


def _names_to(default: Any) -> Any:
    """`[a, b]` is a shorthand for `{a: default, b: default}`; a single name is a list of one."""

    def read(value: Any) -> Any:
        given = [value] if isinstance(value, str) else value
        if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
            return dict.fromkeys(given, default)
        return given

    return read


def _by_role(value: Any) -> Any:
    """`[0, 1]` are replicas of the sole role."""
    return value if isinstance(value, dict) else {"": value}


Ordinals = Annotated[dict[Text, Counts], BeforeValidator(_by_role)]
MomentsByWorkload = Annotated[dict[Text, Offset], BeforeValidator(_names_to(0))]
FailuresByWorkload = Annotated[dict[Text, Text], BeforeValidator(_names_to("it could not be started"))]


class ReportSpec(Spec):
    """What running work says about itself: `checkpoint: [train]` is now, `{train: -30s}` was half a minute ago."""

    checkpoint: MomentsByWorkload = Field(default_factory=dict)
    busy: MomentsByWorkload = Field(default_factory=dict)
    duration: dict[Text, Duration] = Field(default_factory=dict)
    """A forecast of the whole run time."""


class FailSpec(Spec):
    nodes: Texts = ()
    """Become unready."""
    devices: dict[Text, Counts] = Field(default_factory=dict)
    replicas: dict[Text, Ordinals] = Field(default_factory=dict)
    """Are lost: `{train: [3]}`, or `{train: {worker: [3]}}` where there are several roles."""
    workloads: Texts = ()
    """End as failed."""
    starts: FailuresByWorkload = Field(default_factory=dict)
    """The body cannot start what the coming plan starts of these."""


class RecoverSpec(Spec):
    nodes: Texts = ()
    devices: dict[Text, Counts] = Field(default_factory=dict)


class RemoveSpec(Spec):
    nodes: Texts = ()
    pools: Names = ()
    queues: Names = ()


class NodePatch(Spec):
    """New values for one node; what is not said stays."""

    name: Text
    labels: dict[Text, Text] | None = None
    taints: Taints | None = None
    cpu: Cpu | None = None
    memory: Capacity | None = None
    accelerators: dict[Text, Count] | None = None


def _named(value: Any) -> Any:
    if not isinstance(value, dict):
        raise complain(f"must be a mapping with a name and what changes, not {shown(value)}")
    if not isinstance(value.get("name"), str):
        raise complain("is missing its name: what is to change?")
    return value


Patch = Annotated[Any, PlainValidator(_named), WithJsonSchema({"type": "object"})]
"""Some fields of a record; checked together with the record that they change."""


class ChangeSpec(Spec):
    """Each entry names a record and the fields that change; mappings are merged, lists are replaced."""

    nodes: tuple[NodePatch, ...] = ()
    pools: tuple[Patch, ...] = ()
    queues: tuple[Patch, ...] = ()
    workloads: tuple[Patch, ...] = ()


class AddSpec(Spec):
    nodes: tuple[NodeGroupSpec, ...] = ()
    pools: tuple[PoolSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()


class CycleSpec(Spec):
    note: Text = ""
    advance: Duration | None = None
    at: When | None = None
    """Instead of `advance`: an offset from the start of the story, a time of day, or a date."""
    repeat: Repeat = 1
    """Decide this often; events come before the first, expectations after the last."""
    report: ReportSpec = ReportSpec()
    fail: FailSpec = FailSpec()
    recover: RecoverSpec = RecoverSpec()
    cordon: Texts = ()
    uncordon: Texts = ()
    remove: RemoveSpec = RemoveSpec()
    add: AddSpec = AddSpec()
    change: ChangeSpec = ChangeSpec()
    finish: Texts = ()
    cancel: Texts = ()
    suspend: Texts = ()
    resume: Texts = ()
    submit: tuple[ScenarioWorkloadSpec, ...] = ()
    expect: ExpectSpec = ExpectSpec()

    @model_validator(mode="after")
    def _one_clock(self) -> CycleSpec:
        if self.advance is not None and self.at is not None:
            raise complain("say advance or at, not both")
        return self
