"""What a pod takes of a node: the effective request of all its containers, as the brain counts it.

Why: what counts is not written anywhere; it follows from containers, init containers and sidecars in their order,
overhead, resources of the pod as a whole, and from what a resize in place has left behind.
Owns: that arithmetic; which resources of Kubernetes are GPUs, accelerators or counters; host ports; our annotations.
Must not: look at other pods or at nodes. Counters of neighbours are added by `counting`.

    cpu, memory              cpu_milli, memory_mib
    nvidia.com/gpu …         gpu_count, and a counter of the same name, so that vendors never mix
    nvidia.com/mig-1g.5gb    accelerator mig-1g.5gb
    example.com/fpga         accelerator of that name
    ephemeral-storage, hugepages-…, attachable-volumes-…    counters, in bytes or pieces
    a pod, a host port       counters ~pods, ~port/TCP/80
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from optimus.drivers.kube.objects import Container, Pod, Quantities, Quantity, Resources
from optimus.drivers.kube.quantities import QuantityError, mib_up, milli, whole
from optimus.model.rules import COUNTER, PODS, PORT, PORT_WHOLE
from optimus.model.units import LARGEST, UnitError, parse_gpu, parse_memory, parse_percent
from optimus.model.workloads import ModelSpeed, Request

GPU_NAMES = ("nvidia.com/gpu", "amd.com/gpu")
"""Resources of which one piece is one whole device, unless a body is told otherwise."""
FRACTION, GPU_MEMORY, MODELS = "optimus.dev/gpu-fraction", "optimus.dev/gpu-memory", "optimus.dev/gpu-models"
_CPU, _MEMORY = "cpu", "memory"
_MIG = "nvidia.com/mig-"
_PLAIN_COUNTERS = ("hugepages-", "attachable-volumes-")
_ALL_ADDRESSES = ("", "0.0.0.0")  # noqa: S104 - compared with, not bound to
_OF_WHOLE_PODS = (_CPU, _MEMORY)
WHOLE_GPU = 1000
RESIZE_PENDING = "PodResizePending"
"""The condition of a resize in place that is not done yet."""

Amounts = dict[str, int]
"""By resource of Kubernetes: thousandths of CPU; bytes or pieces of everything else."""
Read = Callable[[Quantities | None], Amounts]


class MalformedError(ValueError):
    """A pod that contradicts itself or cannot be read; the message says where and what to write instead."""


class Asked(Struct, frozen=True):
    """What a pod takes, and what of it cannot be read. Whatever is written, what its containers ask for counts."""

    request: Request
    problem: str = ""


class Sorted(Struct, frozen=True):
    """Amounts as the brain names them."""

    cpu_milli: int
    memory_bytes: int
    gpus: dict[str, int]
    accelerators: dict[str, int]


_READ: dict[bytes, Asked] = {}
"""By all that a request follows from: pods of one template are thousands, and read once."""
_MOST_READ = 4096


def read_request(pod: Pod, gpu_names: tuple[str, ...] = GPU_NAMES) -> Asked:
    try:
        key = _ENCODE(_all_that_counts(pod, gpu_names))
    except OverflowError:  # a number of more than 64 bits
        return _read_request(pod, gpu_names)
    if (known := _READ.get(key)) is None:
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        known = _READ[key] = _read_request(pod, gpu_names)
    return known


_ENCODE = msgspec.msgpack.Encoder().encode


def _all_that_counts(pod: Pod, gpu_names: tuple[str, ...]) -> tuple[Any, ...]:
    spec, status, notes = pod.spec, pod.status, pod.metadata.annotations or {}
    running = [(one.name, one.resources, one.allocated_resources) for one in status.container_statuses or ()]
    running += [(one.name, one.resources, one.allocated_resources) for one in status.init_container_statuses or ()]
    whole_pod = (spec.resources, spec.overhead, status.resources, status.allocated_resources)
    ours = [notes.get(name) for name in (FRACTION, GPU_MEMORY, MODELS)], bool(spec.node_name)
    return (spec.containers, spec.init_containers, whole_pod, running, _resize_is_impossible(pod), ours, gpu_names)


def _read_request(pod: Pod, gpu_names: tuple[str, ...]) -> Asked:
    problems: list[str] = []
    try:
        amounts = effective(pod)
    except QuantityError as error:
        problems.append(str(error))
        amounts = effective(pod, _as_far_as_readable)
    found = sort_out(amounts, gpu_names)
    taken = {**found.accelerators, **ports_of(pod), PODS: 1}
    gpus = sum(found.gpus.values())
    part: dict[str, int] = {}
    models: tuple[ModelSpeed, ...] = ()
    try:
        models = _models(pod)
        # Anybody may change a note on a pod that runs; what it has been given does not change with it.
        part = {} if pod.spec.node_name else _part_of_a_gpu(pod, gpus)
    except MalformedError as error:
        problems += [] if pod.spec.node_name else [str(error)]
    request = Request(
        gpu_count=gpus or (1 if part else 0),
        gpu_milli=part.get(FRACTION, WHOLE_GPU),
        gpu_memory_mib=part.get(GPU_MEMORY, 0),
        models=models,
        cpu_milli=max(found.cpu_milli, 0),
        memory_mib=mib_up(max(found.memory_bytes, 0)),
        accelerators=tuple(sorted((name, amount) for name, amount in taken.items() if amount > 0)),
    )
    return Asked(request, problems[0] if problems else "")


def sort_out(amounts: Amounts, gpu_names: tuple[str, ...]) -> Sorted:
    """What is asked for, or what is there, by the names of the brain."""
    gpus = {name: amounts[name] for name in gpu_names if amounts.get(name, 0) > 0}
    named: dict[str, int] = {}
    for resource, amount in amounts.items():
        name = _named(resource, gpu_names)
        if name:
            named[name] = amount
    return Sorted(amounts.get(_CPU, 0), amounts.get(_MEMORY, 0), gpus, named)


def read_amounts(quantities: Quantities | None) -> Amounts:
    """Raises QuantityError."""
    return {name: _amount(name, one) for name, one in (quantities or {}).items()}


def _as_far_as_readable(quantities: Quantities | None) -> Amounts:
    """What is too large to count is all there is; what is no quantity is nothing."""
    found: Amounts = {}
    for name, one in (quantities or {}).items():
        try:
            found[name] = _amount(name, one)
        except QuantityError as error:
            found |= {name: LARGEST} if error.too_large else {}
    return found


def _amount(resource: str, quantity: Quantity) -> int:
    return milli(quantity) if resource == _CPU else whole(quantity)


def _asked(resources: Resources | None, read: Read) -> Amounts:
    """A limit is a request where none is written: the server says so of pods, and of templates it does not."""
    return {**read(resources.limits), **read(resources.requests)} if resources else {}


def _named(resource: str, gpu_names: tuple[str, ...]) -> str:
    """Empty for what is counted otherwise, or not at all."""
    if resource in gpu_names or resource == "ephemeral-storage" or resource.startswith(_PLAIN_COUNTERS):
        return COUNTER + resource
    if resource.startswith(_MIG):
        return resource.partition("/")[2]
    return resource if "/" in resource else ""


# -- containers in their order ----------------------------------------------------------------------------------------


def effective(pod: Pod, read: Read = read_amounts) -> Amounts:
    """The most that the pod takes at any time of its life."""
    statuses = {one.name: one for one in pod.status.container_statuses or ()}
    statuses |= {one.name: one for one in pod.status.init_container_statuses or ()}
    impossible = _resize_is_impossible(pod)

    def of(container: Container) -> Amounts:
        status = statuses.get(container.name)
        asked = _asked(container.resources, read)
        if status is None or status.resources is None:
            return asked
        return _in_force(asked, status.resources, status.allocated_resources, read, impossible=impossible)

    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, of(container))
    beside: Amounts = {}
    """Sidecars that have started."""
    starting: Amounts = {}
    for container in pod.spec.init_containers or ():
        if _is_sidecar(container):
            amounts = of(container)
            _add(total, amounts)
            _add(beside, amounts)
            _raise_to(starting, beside)
        else:
            alone = _asked(container.resources, read)
            _add(alone, beside)
            _raise_to(starting, alone)
    _raise_to(total, starting)
    total |= _of_the_whole_pod(pod, read, impossible=impossible)
    _add(total, read(pod.spec.overhead))
    return total


def _of_the_whole_pod(pod: Pod, read: Read, *, impossible: bool) -> Amounts:
    """What the pod asks for as a whole takes the place of the sum."""
    asked = _asked(pod.spec.resources, read)
    asked = {name: n for name, n in asked.items() if name in _OF_WHOLE_PODS or name.startswith("hugepages-")}
    if pod.status.resources is None:
        return asked
    found = _in_force(asked, pod.status.resources, pod.status.allocated_resources, read, impossible=impossible)
    return {name: found.get(name, 0) for name in asked}


def _in_force(
    asked: Amounts, actual: Resources, allocated: Quantities | None, read: Read, *, impossible: bool
) -> Amounts:
    """While a resize is under way: the largest of what is asked for, given and in force; a resize that is impossible
    asks for nothing."""
    found = {} if impossible else dict(asked)
    _raise_to(found, read(actual.requests))
    _raise_to(found, read(allocated))
    return found


def _resize_is_impossible(pod: Pod) -> bool:
    pending = next((one for one in pod.status.conditions or () if one.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == "Infeasible"


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, amount), amount)


# -- ports and parts of devices ---------------------------------------------------------------------------------------


def ports_of(pod: Pod) -> dict[str, int]:
    """Counters of host ports: all addresses take the whole port; one address takes one of it, and all of its own."""
    taken: dict[str, int] = {}
    for port in _host_ports((*(c for c in pod.spec.init_containers or () if _is_sidecar(c)), *pod.spec.containers)):
        number, protocol, address = port
        everywhere = f"{PORT}{protocol}/{number}"
        if address in _ALL_ADDRESSES:
            taken[everywhere] = PORT_WHOLE
        else:
            taken[everywhere] = max(taken.get(everywhere, 0), 1)
            taken[f"{everywhere}/{address}"] = PORT_WHOLE
    return taken


def _host_ports(containers: Iterable[Container]) -> list[tuple[int, str, str]]:
    return [
        (port.host_port, port.protocol or "TCP", port.host_ip or "")
        for container in containers
        for port in container.ports or ()
        if port.host_port
    ]


def _part_of_a_gpu(pod: Pod, gpus: int) -> dict[str, int]:
    """By annotation: thousandths of one device, or MiB of its memory."""
    notes = pod.metadata.annotations or {}
    found: dict[str, int] = {}
    for name, read in ((FRACTION, parse_gpu), (GPU_MEMORY, parse_memory)):
        try:
            found |= {name: read(notes[name])} if name in notes else {}
        except UnitError as error:
            raise MalformedError(f"annotation {name}: {error}") from None
    if len(found) > 1:
        raise MalformedError(f"annotations {FRACTION} and {GPU_MEMORY}: ask for one of them")
    if found and gpus:
        raise MalformedError(f"annotation {next(iter(found))}: a container asks for whole GPUs as well; choose one")
    if not 0 < found.get(FRACTION, 1) < WHOLE_GPU:
        raise MalformedError(
            f"annotation {FRACTION}: {notes[FRACTION]} is no part of a GPU; "
            "write 0.5, or ask for whole GPUs in a container"
        )
    if found.get(GPU_MEMORY, 1) < 1:
        raise MalformedError(f"annotation {GPU_MEMORY}: {notes[GPU_MEMORY]} is no amount of memory; write 10Gi")
    return found


def _models(pod: Pod) -> tuple[ModelSpeed, ...]:
    """`a100, h100=2.5x`: the models it may run on, with their speed where it is known."""
    written = (pod.metadata.annotations or {}).get(MODELS, "")
    speeds: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in written.split(","))):
        model, equals, speed = (part.strip() for part in entry.partition("="))
        try:
            speeds[model.lower()] = parse_percent(speed) if equals else 100
        except UnitError as error:
            raise MalformedError(f"annotation {MODELS}: {entry}: {error}") from None
        if not model or speeds[model.lower()] < 1:
            raise MalformedError(f"annotation {MODELS}: {entry}: write a100, or h100=2.5x for its speed")
    return tuple(ModelSpeed(model, speed) for model, speed in sorted(speeds.items()))
