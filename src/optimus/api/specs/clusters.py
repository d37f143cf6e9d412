"""Node groups and pools as people write them.

Why: a cluster of a thousand nodes is a few lines: what a node is, and how many there are.
Owns: the cluster spec, and unfolding a group into its nodes (names, devices, racks).
Must not: check one group against another.

    nodes:
      - {name: a100, count: 4, racks: 2, gpus: {count: 8, model: A100, memory: 80Gi, nvlinkGroups: 2}, cpu: 96}
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from optimus.api.specs.fields import (
    Capacity,
    Copies,
    Count,
    Counts,
    Cpu,
    Devices,
    Few,
    Flag,
    Gpu,
    Name,
    Share,
    Spec,
    Text,
    Texts,
    choice,
    complain,
    shown,
)
from optimus.model.nodes import Device, ForeignUsage, Node, Taint, Toleration
from optimus.model.pools import NodePool, Strategy
from optimus.model.validation import TAINT_EFFECTS

POOL_LABEL = "optimus.dev/pool"
"""Set by `pool: x` of a node group; a pool that has no selector takes the nodes that carry its name here."""
DEFAULT_MODEL = "gpu"
LEVELS = ("zone", "block", "rack")
"""Topology label keys that a pool uses where it does not say which, widest first."""

_RULE = re.compile(r"(?P<key>[^=:\s]+)(?:=(?P<value>[^:\s]*))?(?::(?P<effect>[A-Za-z]+))?")


def read_rule(value: Any) -> Any:
    """`key=value:Effect` as a shorthand for a taint or toleration."""
    if not isinstance(value, str):
        return value
    match = _RULE.fullmatch(value.strip())
    if match is None:
        raise complain(
            f"cannot be read: {shown(value)}", "write key=value:NoSchedule, or a mapping with key, value, effect"
        )
    return {name: part for name, part in match.groupdict().items() if part}


class TaintSpec(Spec):
    key: Text
    value: Text = ""
    effect: Text = TAINT_EFFECTS[0]

    def to_taint(self) -> Taint:
        return Taint(self.key, self.value, self.effect)


class TolerationSpec(Spec):
    """`"*"` tolerates everything."""

    key: Text = ""
    value: Text = ""
    effect: Text = ""

    def to_toleration(self) -> Toleration:
        return Toleration("" if self.key == "*" else self.key, self.value, self.effect)


Taints = tuple[Annotated[TaintSpec, BeforeValidator(read_rule)], ...]
Tolerations = tuple[Annotated[TolerationSpec, BeforeValidator(read_rule)], ...]


class DeviceSpec(Spec):
    index: Count | None = None
    model: Text = ""
    memory: Capacity | None = None
    uuid: Text = ""
    nvlink_group: Count = 0
    numa_node: Count = 0
    healthy: Flag = True
    mig: dict[Text, Count] = Field(default_factory=dict)


class GpusSpec(Spec):
    """`gpus: 8` is `gpus: {count: 8}`. `devices` describes each one; what it leaves out comes from here."""

    count: Devices = 0
    model: Text = DEFAULT_MODEL
    memory: Capacity = 0
    nvlink_groups: Few = 1
    numa_nodes: Few = 1
    mig: dict[Text, Count] = Field(default_factory=dict)
    unhealthy: Counts = ()
    devices: tuple[DeviceSpec, ...] = ()

    @model_validator(mode="after")
    def _agree(self) -> GpusSpec:
        if self.devices and self.count not in (0, len(self.devices)):
            raise complain(f"count says {self.count}, but {len(self.devices)} devices are listed", "leave count out")
        for index in self.unhealthy:
            if index >= self.count:
                raise complain(f"unhealthy names device {index}, but there are {self.count}")
        return self

    def to_devices(self) -> tuple[Device, ...]:
        if self.devices:
            return tuple(self._listed(position, device) for position, device in enumerate(self.devices))
        return tuple(
            Device(
                index=index,
                model=self.model,
                memory_mib=self.memory,
                nvlink_group=index * self.nvlink_groups // self.count,
                numa_node=index * self.numa_nodes // self.count,
                healthy=index not in self.unhealthy,
                mig=dict(self.mig),
            )
            for index in range(self.count)
        )

    def _listed(self, position: int, device: DeviceSpec) -> Device:
        return Device(
            index=position if device.index is None else device.index,
            model=device.model or self.model,
            memory_mib=self.memory if device.memory is None else device.memory,
            uuid=device.uuid,
            nvlink_group=device.nvlink_group,
            numa_node=device.numa_node,
            healthy=device.healthy,
            mig=dict(device.mig or self.mig),
        )


def _count_of_gpus(value: Any) -> Any:
    return value if isinstance(value, dict) else {"count": value}


class ForeignSpec(Spec):
    """What work that is not ours takes on every node of the group. `gpu`: device index -> share of it."""

    cpu: Cpu = 0
    memory: Capacity = 0
    accelerators: dict[Text, Count] = Field(default_factory=dict)
    gpu: dict[Count, Gpu] = Field(default_factory=dict)

    def to_usage(self) -> ForeignUsage:
        return ForeignUsage(
            cpu_milli=self.cpu, memory_mib=self.memory, accelerators=dict(self.accelerators), gpu_milli=dict(self.gpu)
        )


class NodeGroupSpec(Spec):
    """With `count` the nodes are called name-0, name-1 …; without it there is one, called name."""

    name: Name
    count: Copies | None = None
    pool: Name | None = None
    gpus: Annotated[GpusSpec, BeforeValidator(_count_of_gpus)] = GpusSpec()
    cpu: Cpu = 0
    memory: Capacity = 0
    accelerators: dict[Text, Count] = Field(default_factory=dict)
    labels: dict[Text, Text] = Field(default_factory=dict)
    racks: Few | None = None
    blocks: Few | None = None
    taints: Taints = ()
    assignable: Flag = True
    unready: Flag = False
    cordoned: Flag = False
    foreign: ForeignSpec = ForeignSpec()

    def node_names(self) -> list[str]:
        return [self.name] if self.count is None else [f"{self.name}-{i}" for i in range(self.count)]

    def to_nodes(self) -> list[Node]:
        names = self.node_names()
        devices = self.gpus.to_devices()
        taints = tuple(taint.to_taint() for taint in self.taints)
        foreign = self.foreign.to_usage()
        return [
            Node(
                name=name,
                labels=self._labels(position, len(names)),
                taints=taints,
                cpu_milli=self.cpu,
                memory_mib=self.memory,
                accelerators=dict(self.accelerators),
                devices=devices,
                assignable=self.assignable,
                ready=not self.unready,
                cordoned=self.cordoned,
                foreign=foreign,
            )
            for position, name in enumerate(names)
        ]

    def _labels(self, position: int, count: int) -> dict[str, str]:
        """Neighbours share a rack, neighbouring racks share a block."""
        labels = {"block": f"{self.name}-block-{position * self.blocks // count}"} if self.blocks else {}
        if self.racks:
            labels["rack"] = f"{self.name}-rack-{position * self.racks // count}"
        if self.pool:
            labels[POOL_LABEL] = self.pool
        return {**labels, **self.labels}


def _read_placement(value: Any) -> dict[str, Strategy]:
    """`spread`, or a strategy for each class: `{inference: spread, default: pack}`."""
    given = value if isinstance(value, dict) else {"default": value}
    return {str(key): choice(Strategy)(strategy) for key, strategy in given.items()}


_PLACEMENT_SCHEMA = {"type": "object", "additionalProperties": {"type": "string", "enum": [str(s) for s in Strategy]}}
Placements = Annotated[dict[str, Strategy], PlainValidator(_read_placement), WithJsonSchema(_PLACEMENT_SCHEMA)]


class PoolSpec(Spec):
    """Without a selector it takes the node groups that say `pool: <name>`."""

    name: Name
    selector: dict[Text, Text] | None = None
    topology_levels: Texts | None = None
    placement: Placements = Field(default_factory=dict)
    interference_limit: Share = 0

    def to_pool(self, levels: tuple[str, ...]) -> NodePool:
        """`levels` are those the nodes have, for a pool that does not say which it uses."""
        return NodePool(
            name=self.name,
            selector={POOL_LABEL: self.name} if self.selector is None else dict(self.selector),
            levels=levels if self.topology_levels is None else self.topology_levels,
            strategy=dict(self.placement),
            interference_limit_milli=self.interference_limit,
        )


class ClusterSpec(Spec):
    """Pools and queues written inside it count as written beside it (`optimus.api.documents`)."""

    nodes: tuple[NodeGroupSpec, ...] = ()
