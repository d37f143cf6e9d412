"""What one replica needs and how many there may be: roles, groups, GPUs.

Why: `gpu: 1` and `replicas: 4` for the simple case, the full tree of groups for the large one, in the same words.
Owns: the shorthands, allowed sizes, and unfolding them into `Group` and `Role`.
Must not: look at the cluster.

    replicas: 4                     exactly four
    replicas: {min: 2, max: 8, sizes: powersOfTwo}
    gpu: 0.5                        half a device
    gpu: {count: 2, models: [A100, {H100: 1.5x}]}
    gpu: {fraction: {request: 0.25, limit: 0.5}}
    gpu: {memory: 20Gi}
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema, model_validator

from optimus.api.specs.fields import Count, Cpu, Gpu, Memory, Name, Percent, Share, Spec, Text, complain, shown
from optimus.model import units
from optimus.model.gang_validation import size_problems
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.workloads import Group, ModelSpeed, Request, Role, Topology

POWERS_OF_TWO = "powersOfTwo"
ANY_SIZE = "any"
SOLE_ROLE = "worker"
REPLICA_WORDS = ("replicas", "gpu", "cpu", "memory", "accelerators")

Bounds = tuple[int, int, tuple[int, ...]]


def _read_sizes(value: Any) -> str | tuple[int, ...]:
    alone = isinstance(value, list | tuple) and len(value) == 1  # a cluster keeps `[powersOfTwo]`: always a list
    word = value[0] if alone else value
    if word in (POWERS_OF_TWO, ANY_SIZE):
        return str(word)
    if not isinstance(value, list | tuple) or not value:
        raise complain(f"must be {ANY_SIZE}, {POWERS_OF_TWO} or a list of sizes, not {shown(value)}")
    try:
        return tuple(units.parse_count(size) for size in value)
    except units.UnitError as error:
        raise complain(error.message, error.hint) from None


AllowedSizes = Annotated[str | tuple[int, ...], PlainValidator(_read_sizes), WithJsonSchema({})]


class SizesSpec(Spec):
    """`min` alone means exactly that many; `max` alone starts at one; a list of sizes gives both."""

    min: Count | None = None
    max: Count | None = None
    sizes: AllowedSizes = ANY_SIZE

    @model_validator(mode="after")
    def _counts_agree(self) -> SizesSpec:
        """Here as well as in the domain, so that it is found beside other errors of the same record."""
        listed = self.sizes if isinstance(self.sizes, tuple) else ()
        for _, message in size_problems(self._least(), self._most(), listed):
            raise complain(message)
        if self.sizes == POWERS_OF_TWO:
            self._demand_powers(self._least(), self._powers())
        return self

    def _demand_powers(self, least: int, powers: tuple[int, ...]) -> None:
        if not powers:
            raise complain(f"there is no power of two from {least} to {self._most()}")
        if powers[0] != least:
            nearest = [f"min: {power}" for power in (powers[0] // 2, powers[0]) if power]
            raise complain(f"the minimum {least} is not a power of two", f"write {' or '.join(nearest)}")

    def bounds(self) -> Bounds:
        if self.sizes == POWERS_OF_TWO:
            powers = self._powers()
            return powers[0], powers[-1], powers
        return self._least(), self._most(), self.sizes if isinstance(self.sizes, tuple) else ()

    def _least(self) -> int:
        if self.min is not None:
            return self.min
        return self.sizes[0] if isinstance(self.sizes, tuple) else 1

    def _most(self) -> int:
        if self.max is not None:
            return self.max
        return self.sizes[-1] if isinstance(self.sizes, tuple) else self._least()

    def _powers(self) -> tuple[int, ...]:
        return tuple(power for power in (1 << i for i in range(54)) if self._least() <= power <= self._most())


def _exactly(value: Any) -> Any:
    return value if isinstance(value, dict) else {"min": value, "max": value}


Sizes = Annotated[SizesSpec, BeforeValidator(_exactly)]


def _read_models(value: Any) -> tuple[ModelSpeed, ...]:
    """`A100`, `[A100, {H100: 1.5x}]` or `{A100: 1, H100: 1.5}`."""
    found: list[ModelSpeed] = []
    if isinstance(value, list | tuple | dict) and not value:
        raise complain("names no GPU model", "leave models out where any model will do")
    for entry in value if isinstance(value, list | tuple) else [value]:
        pairs = entry.items() if isinstance(entry, dict) else [(entry, 1)]
        for model, speed in pairs:
            if not isinstance(model, str) or not model:
                raise complain(f"must be the name of a GPU model, not {shown(model)}")
            try:
                found.append(ModelSpeed(model, units.parse_percent(speed)))
            except units.UnitError as error:
                raise complain(f"speed of {shown(model)}: {error.message}", error.hint) from None
    return tuple(found)


class FractionSpec(Spec):
    request: Gpu
    limit: Gpu | None = None


def _whole_request(value: Any) -> Any:
    return value if isinstance(value, dict) else {"request": value}


class GpuSpec(Spec):
    count: Count = 1
    fraction: Annotated[FractionSpec, BeforeValidator(_whole_request)] | None = None
    memory: Memory | None = None
    models: Annotated[tuple[ModelSpeed, ...], PlainValidator(_read_models), WithJsonSchema({})] = ()
    speeds: dict[Text, Percent] | None = None
    """Beside models that are only named, as a cluster keeps them."""
    activity: Share = 0

    @model_validator(mode="after")
    def _one_way_to_share(self) -> GpuSpec:
        if self.memory is not None and self.fraction is not None:
            raise complain("ask for a fraction of a GPU or for GPU memory, not for both")
        if self.memory == 0:
            raise complain("GPU memory must be more than nothing")
        if self.fraction is not None and not 0 < self.fraction.request <= WHOLE_DEVICE_MILLI:
            raise complain(
                f"a fraction must be more than 0 and at most 1: {units.format_gpu(self.fraction.request)}",
                "whole devices go into count",
            )
        return self

    @model_validator(mode="after")
    def _speeds_of_models(self) -> GpuSpec:
        for model in self.speeds or ():
            if model not in [entry.model for entry in self.models]:
                raise complain(f"speeds names {shown(model)}, which is not among models", "add it there")
        return self

    def models_with_speeds(self) -> tuple[ModelSpeed, ...]:
        speeds = self.speeds or {}
        return tuple(ModelSpeed(one.model, speeds.get(one.model, one.speed_percent)) for one in self.models)


def _read_gpu(value: Any) -> Any:
    """`2` is two devices, `0.5` is half of one."""
    if isinstance(value, dict):
        return value
    try:
        milli = units.parse_gpu(value)
    except units.UnitError as error:
        raise complain(error.message, error.hint) from None
    if 0 < milli < WHOLE_DEVICE_MILLI:
        return {"fraction": value}
    if milli % WHOLE_DEVICE_MILLI:
        raise complain(
            f"must be whole GPUs or a share below one: {units.format_gpu(milli)}",
            "for a share of several devices write {count: 2, fraction: 0.75}",
        )
    return {"count": milli // WHOLE_DEVICE_MILLI}


class RequestFields(Spec):
    """What one replica needs."""

    gpu: Annotated[GpuSpec, BeforeValidator(_read_gpu)] | None = None
    cpu: Cpu | None = None
    memory: Memory | None = None
    accelerators: dict[Text, Count] | None = None

    def request(self) -> Request:
        gpu = self.gpu or GpuSpec(count=0)
        named = {name: count for name, count in (self.accelerators or {}).items() if count}
        return Request(
            gpu_count=gpu.count,
            gpu_milli=gpu.fraction.request if gpu.fraction else WHOLE_DEVICE_MILLI,
            gpu_limit_milli=(gpu.fraction.limit or 0) if gpu.fraction else 0,
            gpu_memory_mib=gpu.memory or 0,
            models=gpu.models_with_speeds(),
            activity_milli=gpu.activity,
            cpu_milli=self.cpu or 0,
            memory_mib=self.memory or 0,
            accelerators=tuple(sorted(named.items())),
        )


class ReplicaFields(RequestFields):
    """What a role says about its replicas; a workload or group with only one role says it directly."""

    replicas: Sizes | None = None

    def says_replicas(self) -> list[str]:
        return [name for name in REPLICA_WORDS if getattr(self, name) is not None]

    def bounds(self) -> Bounds:
        return self.replicas.bounds() if self.replicas is not None else (1, 1, ())


class TopologySpec(Spec):
    """`topology: rack` is `topology: {required: rack}`."""

    required: Text = ""
    preferred: Text = ""

    def to_topology(self) -> Topology:
        return Topology(self.required, self.preferred)


def _required_level(value: Any) -> Any:
    return {"required": value} if isinstance(value, str) else value


Levels = Annotated[TopologySpec, BeforeValidator(_required_level)]


class RoleSpec(ReplicaFields):
    name: Name
    topology: Levels = TopologySpec()

    def to_role(self) -> Role:
        least, most, sizes = self.bounds()
        return Role(
            name=self.name,
            min=least,
            max=most,
            sizes=sizes,
            request=self.request(),
            topology=self.topology.to_topology(),
        )


class GangFields(ReplicaFields):
    """One role said directly, or roles and groups in lists."""

    topology: Levels = TopologySpec()
    roles: tuple[RoleSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> GangFields:
        said = self.says_replicas()
        if said and (self.roles or self.groups):
            raise complain(f"{', '.join(said)} beside roles or groups: say it inside each role")
        return self

    def inner_roles(self, sole_name: str) -> tuple[Role, ...]:
        if self.roles or self.groups:
            return tuple(role.to_role() for role in self.roles)
        least, most, sizes = self.bounds()
        return (Role(name=sole_name, min=least, max=most, sizes=sizes, request=self.request()),)

    def inner_groups(self) -> tuple[Group, ...]:
        return tuple(group.to_group() for group in self.groups)


class GroupSpec(GangFields):
    """Copies of a part of the gang, each placed by its own rule. A sole role is called like its group."""

    name: Name
    copies: Sizes = SizesSpec(min=1)

    def to_group(self) -> Group:
        least, most, sizes = self.copies.bounds()
        return Group(
            name=self.name,
            min=least,
            max=most,
            sizes=sizes,
            topology=self.topology.to_topology(),
            groups=self.inner_groups(),
            roles=self.inner_roles(self.name),
        )


GangFields.model_rebuild()
GroupSpec.model_rebuild()
