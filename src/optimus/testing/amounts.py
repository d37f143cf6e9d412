"""How much a replica, a gang or a queue takes, in plain dictionaries: resource -> number.

Units as everywhere: gpu and cpu in thousandths, memory in MiB, named accelerators in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable

from optimus.model.nodes import WHOLE_DEVICE_MILLI, Device, Node
from optimus.model.queues import CPU, GPU, MEMORY
from optimus.model.workloads import Request

Amount = dict[str, int]


def plus(total: Amount, more: Amount, times: int = 1) -> Amount:
    """Adds into `total` and returns it."""
    for name, number in more.items():
        total[name] = total.get(name, 0) + times * number
    return total


def scalars(request: Request) -> Amount:
    """Everything but GPUs."""
    found = {CPU: request.cpu_milli, MEMORY: request.memory_mib, **dict(request.accelerators)}
    return {name: number for name, number in found.items() if number}


def replica_amount(request: Request, devices: int, gpu_milli: int) -> Amount:
    found = scalars(request)
    if devices * gpu_milli:
        found[GPU] = devices * gpu_milli
    return found


def is_whole(request: Request) -> bool:
    """Takes devices whole, so that counting them is enough."""
    return request.gpu_count > 0 and not request.gpu_memory_mib and request.gpu_milli == WHOLE_DEVICE_MILLI


def device_share(request: Request, device: Device) -> int | None:
    """Thousandths of this device that one replica takes; None where it cannot be used at all."""
    if device.mig or (request.models and device.model not in {entry.model for entry in request.models}):
        return None
    share = request.gpu_milli
    if request.gpu_memory_mib:
        if not device.memory_mib:
            return None
        share = -(-request.gpu_memory_mib * WHOLE_DEVICE_MILLI // device.memory_mib)
    return share if share <= WHOLE_DEVICE_MILLI else None


def shares_on(request: Request, node: Node) -> dict[int, int]:
    """Device index -> thousandths, for the devices of a node that could be used if they were free and well.

    A replica that asks for memory on several devices takes the same, largest, share of each."""
    found = {d.index: share for d in node.devices if (share := device_share(request, d)) is not None}
    if request.gpu_memory_mib and request.gpu_count > 1 and found:
        found = dict.fromkeys(found, max(found.values()))
    return found


def measured_by(amount: Amount) -> list[str]:
    """What orders and entitles work of this amount: GPUs if it has any, else its named accelerators, else CPU and
    memory."""
    if amount.get(GPU):
        return [GPU]
    named = sorted(name for name, number in amount.items() if number and name not in (GPU, CPU, MEMORY))
    return named or [CPU, MEMORY]


def total(amounts: Iterable[Amount]) -> Amount:
    found: Amount = {}
    for amount in amounts:
        plus(found, amount)
    return found
