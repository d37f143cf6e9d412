"""Workloads as people write them, and the state a scenario finds them in.

Why: one line for a simple job, every wish of a large one, in the words of the Kubernetes resource.
Owns: the workload format, its running state, and turning it into `Workload`.
Must not: choose devices or check names of queues, pools and nodes.

    - {name: train, queue: vision, replicas: 4, gpu: 1, running: {on: a-0, since: -10m}}
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from optimus.api.specs.clusters import Tolerations
from optimus.api.specs.fields import (
    Copies,
    Count,
    Counts,
    Duration,
    Flag,
    Integer,
    Name,
    Offset,
    Percent,
    Spec,
    Text,
    Texts,
    When,
    choice,
    complain,
    shown,
)
from optimus.api.specs.replicas import SOLE_ROLE, GangFields
from optimus.model.workloads import ANY_POOL, Checkpoint, Group, OnLoss, Preemptible, Workload, WorkloadClass

DEFAULT_NAMESPACE = "default"
DEFAULT_QUEUE = "default"
_WORD = WithJsonSchema({"type": "string"})
_PREEMPTIBLE: dict[object, Preemptible] = {
    True: Preemptible.YES,
    False: Preemptible.NO,
    "yes": Preemptible.YES,
    "no": Preemptible.NO,
    "surplus": Preemptible.SURPLUS,
    "lent": Preemptible.LENT,
    "default": Preemptible.DEFAULT,
}


def _read_preemptible(value: Any) -> Preemptible:
    if isinstance(value, bool | str) and value in _PREEMPTIBLE:
        return _PREEMPTIBLE[value]
    raise complain(f"must be true, false, surplus or lent, not {shown(value)}")


ClassWord = Annotated[WorkloadClass, PlainValidator(choice(WorkloadClass)), _WORD]
PreemptibleWord = Annotated[Preemptible, PlainValidator(_read_preemptible), WithJsonSchema({})]
OnLossWord = Annotated[OnLoss, PlainValidator(choice(OnLoss)), _WORD]


class CheckpointSpec(Spec):
    grace: Duration = Checkpoint().grace_ms
    interval: Duration | None = None


class PlaceSpec(Spec):
    """Where replicas run. `a-0` alone is one replica there; `a-*` stands for the nodes of that pattern, in order."""

    node: Text
    devices: Counts | None = None
    role: Name | None = None
    replicas: Count | None = None

    @model_validator(mode="after")
    def _devices_of_one_replica(self) -> PlaceSpec:
        if self.devices is not None and "*" in self.node:
            raise complain("devices can only be named on one node, not on a pattern")
        if self.devices is not None and self.replicas not in (None, 1):
            raise complain("devices belong to one replica; write one entry for each")
        return self


def _place(value: Any) -> Any:
    return {"node": value} if isinstance(value, str) else value


def _places(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Places = Annotated[tuple[Annotated[PlaceSpec, BeforeValidator(_place)], ...], BeforeValidator(_places)]


class RunningSpec(Spec):
    on: Places
    replicas: Count | None = None
    """How many run, where `on` leaves it open; else the minimum of the gang."""
    since: Offset = 0
    last_checkpoint: Offset | None = None
    busy_at: Offset | None = None
    partial: Flag = False
    """Allows fewer replicas than the gang's minimum."""
    stopping: Flag = False
    """It has been told to stop and still has its room."""


class WorkloadSpec(GangFields):
    name: Name
    namespace: Name = DEFAULT_NAMESPACE
    queue: Name = DEFAULT_QUEUE
    workload_class: Annotated[ClassWord, Field(alias="class")] = WorkloadClass.UNATTENDED
    priority: Integer | None = None
    preemptible: PreemptibleWord = Preemptible.DEFAULT
    pools: Texts = (ANY_POOL,)
    node_selector: dict[Text, Text] = Field(default_factory=dict)
    tolerations: Tolerations = ()
    checkpoint: CheckpointSpec | None = None
    restart_cost: Duration = 60_000
    on_loss: OnLossWord = OnLoss.REPLACE
    loss_grace: Duration = 60_000
    expected_duration: Duration | None = None
    deadline: When | None = None
    max_runtime: Duration | None = None
    family: Text = ""
    speedup: tuple[Percent, ...] = ()
    suspend: Flag = False

    @property
    def id(self) -> str:
        return f"{self.namespace}/{self.name}"

    def to_workload(self, *, submitted_ms: int, name: str = "") -> Workload:
        """`name` where the spec stands for several."""
        return Workload(
            id=f"{self.namespace}/{name or self.name}",
            queue=self.queue,
            gang=Group(
                topology=self.topology.to_topology(),
                groups=self.inner_groups(),
                roles=self.inner_roles(SOLE_ROLE),
            ),
            workload_class=self.workload_class,
            priority=self.priority,
            preemptible=self.preemptible,
            pools=self.pools,
            node_selector=tuple(sorted(self.node_selector.items())),
            tolerations=tuple(toleration.to_toleration() for toleration in self.tolerations),
            checkpoint=self._checkpoint(),
            restart_cost_ms=self.restart_cost,
            on_loss=self.on_loss,
            loss_grace_ms=self.loss_grace,
            submitted_ms=submitted_ms,
            expected_duration_ms=self.expected_duration,
            deadline_ms=None if self.deadline is None else self.deadline.resolve(submitted_ms),
            max_runtime_ms=self.max_runtime,
            family=self.family,
            speedup_percent=self.speedup,
            suspended=self.suspend,
        )

    def _checkpoint(self) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        return Checkpoint(grace_ms=self.checkpoint.grace, interval_ms=self.checkpoint.interval)


class ScenarioWorkloadSpec(WorkloadSpec):
    """A workload with the state in which a scenario finds it; `count: 3` makes name-0, name-1, name-2."""

    count: Copies | None = None
    submitted: Offset | None = None
    running: RunningSpec | None = None
    predicted: Duration | None = None
    """A forecast of its whole run time, made by somebody else."""

    def names(self) -> list[str]:
        return [self.name] if self.count is None else [f"{self.name}-{i}" for i in range(self.count)]

    def submitted_offset_ms(self) -> int:
        """Work that runs was submitted when it started, if nothing else is said."""
        if self.submitted is not None:
            return self.submitted
        return self.running.since if self.running is not None else 0
