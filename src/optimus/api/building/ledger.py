"""What is left on each node while the running work of a file is put in its place.

Why: a file says "runs on a-0"; which devices that means must be the same every time, and must be possible.
Owns: room by node and device, and the choice of devices where the file leaves it open: the first that fit, by index.
Must not: be clever. It writes down what is, it does not place well.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node, accelerator_counts
from optimus.model.units import format_cpu, format_gpu, format_memory
from optimus.model.workloads import Request, share_milli


class NoRoom(Exception):  # noqa: N818 - an answer, not a fault
    """Says in a sentence why a replica cannot be there."""


class Ledger:
    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._rooms: dict[str, _Room] = {}
        self._tried: dict[tuple[Request, str], int] = {}
        """How many nodes of a pattern have no room for such a replica; room only shrinks."""

    def take_first(
        self, pattern: str, nodes: tuple[str, ...], request: Request, devices: tuple[int, ...] | None
    ) -> tuple[str, tuple[int, ...]]:
        """Count one replica against the first node of a pattern with room; raises `NoRoom` if none has."""
        answer = ""
        for position in range(self._tried.get((request, pattern), 0), len(nodes)):
            node = nodes[position]
            if node not in self._rooms:
                self._rooms[node] = _Room(self._nodes[node])
            try:
                return node, self._rooms[node].take(request, devices)
            except NoRoom as refusal:
                answer = str(refusal)
            if devices is None:
                self._tried[request, pattern] = position + 1
        raise NoRoom(answer if len(nodes) == 1 and answer else f"none of the {len(nodes)} nodes has room for a replica")


class _Room:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.cpu_milli = node.cpu_milli - node.foreign.cpu_milli
        self.memory_mib = node.memory_mib - node.foreign.memory_mib
        self.accelerators = accelerator_counts(node)
        for name, count in node.foreign.accelerators.items():
            self.accelerators[name] = self.accelerators.get(name, 0) - count
        self.devices = {device.index: device for device in node.devices if not device.mig}
        self.free = {index: WHOLE_DEVICE_MILLI - node.foreign.gpu_milli.get(index, 0) for index in self.devices}

    def take(self, request: Request, named: tuple[int, ...] | None) -> tuple[int, ...]:
        self._check_scalars(request)
        devices = self._choose(request) if named is None else self._check_named(request, named)
        self.cpu_milli -= request.cpu_milli
        self.memory_mib -= request.memory_mib
        for name, count in request.accelerators:
            self.accelerators[name] -= count
        for index in devices:
            self.free[index] -= share_milli(request, self.devices[index].memory_mib)
        return devices

    def _check_scalars(self, request: Request) -> None:
        name = self.node.name
        if request.cpu_milli > self.cpu_milli:
            left = format_cpu(max(0, self.cpu_milli))
            raise NoRoom(f"node {name} has {left} CPUs left, a replica needs {format_cpu(request.cpu_milli)}")
        if request.memory_mib > self.memory_mib:
            left = format_memory(max(0, self.memory_mib))
            raise NoRoom(f"node {name} has {left} of memory left, a replica needs {format_memory(request.memory_mib)}")
        for accelerator, count in request.accelerators:
            left_over = max(0, self.accelerators.get(accelerator, 0))
            if count > left_over:
                raise NoRoom(f"node {name} has {left_over} {accelerator} left, a replica needs {count}")

    def _fits(self, request: Request, index: int) -> bool:
        device = self.devices[index]
        if request.models and all(entry.model != device.model for entry in request.models):
            return False
        return share_milli(request, device.memory_mib) <= self.free[index]

    def _choose(self, request: Request) -> tuple[int, ...]:
        fitting = [
            index for index in sorted(self.devices) if self.devices[index].healthy and self._fits(request, index)
        ]
        if len(fitting) < request.gpu_count:
            free = format_gpu(sum(self.free[index] for index in self.devices if self.devices[index].healthy))
            wanted = f"{request.gpu_count} GPUs" if request.gpu_count > 1 else "GPU"
            raise NoRoom(f"node {self.node.name} has no {wanted} left for a replica: {free} free")
        return tuple(fitting[: request.gpu_count])

    def _check_named(self, request: Request, named: tuple[int, ...]) -> tuple[int, ...]:
        name = self.node.name
        if len(set(named)) != request.gpu_count:
            raise NoRoom(f"{len(set(named))} devices are named, a replica needs {request.gpu_count}")
        for index in named:
            if index not in self.devices:
                raise NoRoom(f"node {name} has no GPU {index}")
            if not self._fits(request, index):
                model, free = self.devices[index].model, format_gpu(self.free[index])
                raise NoRoom(f"GPU {index} of node {name} ({model}, {free} free) cannot hold a replica")
        return tuple(sorted(named))
