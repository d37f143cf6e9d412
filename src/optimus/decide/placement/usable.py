"""Least loss of usable capacity: how much less the other work could use of a node after a placement.

Why: free GPUs are worth what the usual mix can do with them. The tables (`optimus.decide.packing`) say what a gap,
the CPU beside it, a scarce model and an intact block are worth; `gain` is the change of that value, node by node.
Owns: the packing tables compiled into arrays, and the vectorised evaluation for many nodes or for a few.
Must not: filter. A node where the request does not fit gets some finite number, which the caller masks.

A node that mixes device models counts as the model of its first free device, for blocks and for whole devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimus.decide.placement.block_table import BlockTable
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.packing import GAP_MILLI, PackingTables

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

QUANTUM_MILLI = 10
"""Gains are counted in hundredths of a device, so that the layers below decide between equals."""
_TIE_MARGIN = 1e-6
"""Keeps rounding noise of sums from deciding a gain that lies half-way between two quanta."""
_IMPOSSIBLE = -1e9
_LEAST_PER_GPU = 1e-6


class Ask(NamedTuple):
    """A request, prepared once for `CompiledTables` and used for every row of nodes."""

    gpu_count: int
    gpu_milli: int
    cpu: Ints
    """[before, after …] x 1: what is taken of the node."""
    memory: Ints
    devices: Ints
    """Fully free devices taken."""
    gap: Floats
    """Change of the gap value where it is the same on every node."""
    share_loss: Floats
    """Change of the gap value by free thousandths, for a share on a device."""
    model_bias: Floats
    """By model, and last for no device: the price of what is taken, or impossible where not allowed."""
    restricted: bool
    biased: bool


class Gains(NamedTuple):
    gain: Ints
    """By node, in hundredths of a device; the larger the better, mostly negative."""
    device: Ints
    """By node: where a share goes best; -1 for requests that do not share a device."""


class CompiledTables:
    """Packing tables as arrays. Immutable: make a new one when the tables or the list of models change."""

    def __init__(self, tables: PackingTables, models: Sequence[str]) -> None:
        free = np.arange(WHOLE_DEVICE_MILLI + 1)
        if tables.gap_value:
            self.gap: Floats = np.array(tables.gap_value)[free // GAP_MILLI]
        else:  # nothing learned yet: prefer to keep devices whole
            self.gap = free * free / WHOLE_DEVICE_MILLI
        self.price: Floats = np.array([tables.model_price.get(model, 0.0) for model in models] + [0.0])
        self.blocks = BlockTable(tables.blocks, models)
        weight = np.array([each.weight for each in tables.stranding])
        cpu = np.array([each.cpu_per_gpu_milli for each in tables.stranding])
        memory = np.array([each.memory_per_gpu_milli for each in tables.stranding])
        self._weight: Floats = weight
        self._fed_by_cpu: Floats = (1.0 / np.maximum(cpu, _LEAST_PER_GPU)).reshape(-1, 1, 1)
        self._fed_by_memory: Floats = (1.0 / np.maximum(memory, _LEAST_PER_GPU)).reshape(-1, 1, 1)

    def ask(
        self,
        *,
        gpu_count: int,
        gpu_milli: int,
        cpu_milli: int,
        memory_mib: int,
        allowed: ArrayLike | None = None,  # by model; None allows all
    ) -> Ask:
        shared = gpu_count > 0 and gpu_milli < WHOLE_DEVICE_MILLI
        taken = gpu_milli * gpu_count if gpu_count else 0
        share_loss = np.full(WHOLE_DEVICE_MILLI + 1, _IMPOSSIBLE)
        if shared:
            share_loss[gpu_milli:] = self.gap[: WHOLE_DEVICE_MILLI + 1 - gpu_milli] - self.gap[gpu_milli:]
        bias = -self.price * (gpu_milli if shared else taken)
        may = np.ones(len(self.price) - 1, dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
        bias[:-1][~may] = _IMPOSSIBLE
        bias[-1] = _IMPOSSIBLE
        emptied = [0, 0, 1] if shared else [0, gpu_count]
        return Ask(
            gpu_count=gpu_count,
            gpu_milli=gpu_milli,
            cpu=_column([0, cpu_milli, cpu_milli] if shared else [0, cpu_milli]),
            memory=_column([0, memory_mib, memory_mib] if shared else [0, memory_mib]),
            devices=_column(emptied),
            gap=np.array([[0.0], [gpu_count * (self.gap[0] - self.gap[-1])]]),
            share_loss=share_loss,
            model_bias=bias,
            restricted=not may.all(),
            biased=bool((bias[:-1] != bias[0]).any()),
        )

    def value(self, gap: Floats, free: Ints, cpu: Ints, memory: Ints, model: Ints) -> Floats:
        """[variant, node] usable capacity without model prices; all but `model` are [variant, node]."""
        total = gap
        if len(self._weight):
            fed = np.minimum(cpu * self._fed_by_cpu, memory * self._fed_by_memory)
            np.minimum(fed, gap, out=fed)
            total = total + (self._weight @ fed.reshape(len(fed), -1)).reshape(gap.shape)
        if self.blocks.worth_anything:
            total = total + self.blocks.value(free, cpu, memory, model)
        return total


def gain(tables: CompiledTables, ask: Ask, gpus: Ints, device_model: Ints, cpu: Ints, memory: Ints) -> Gains:
    """Change of usable capacity by one replica of the request on each of the nodes.

    gpus: [node, device] free thousandths, 0 or less where there is no usable device.
    device_model: [node, device] position in the list of models, -1 where there is no device.
    """
    rows = np.arange(len(gpus))
    gap = tables.gap.take(gpus, mode="clip").sum(axis=1)
    is_free = gpus >= WHOLE_DEVICE_MILLI
    free = is_free.sum(axis=1) - ask.devices
    usable = is_free & (ask.model_bias > _IMPOSSIBLE)[device_model] if ask.restricted else is_free
    first_free = usable.argmax(axis=1)
    model = device_model[rows, first_free]
    cpu_left = cpu - ask.cpu
    memory_left = memory - ask.memory
    if ask.gpu_count == 0 or ask.gpu_milli >= WHOLE_DEVICE_MILLI:
        before, after = tables.value(gap + ask.gap, free, cpu_left, memory_left, model)
        change = after - before
        if ask.biased:
            change += ask.model_bias[model]
        return Gains(_quantised(change), np.full(len(gpus), -1))
    loss = ask.share_loss.take(gpus, mode="clip")
    broken_loss = np.where(is_free, _IMPOSSIBLE, loss)
    choice = broken_loss + ask.model_bias[device_model] if ask.biased else broken_loss
    broken = choice.argmax(axis=1)
    gaps = np.empty((3, len(gpus)))
    gaps[0] = gap
    gaps[1] = gap + broken_loss[rows, broken]
    gaps[2] = gap + np.where(usable[rows, first_free], ask.share_loss[-1], _IMPOSSIBLE)
    change = tables.value(gaps, free, cpu_left, memory_left, model)
    change = change[1:] - change[0]
    if ask.biased:
        change[0] += ask.model_bias[device_model[rows, broken]]
        change[1] += ask.model_bias[model]
    on_free = change[1] > change[0]
    return Gains(_quantised(np.maximum(change[0], change[1])), np.where(on_free, first_free, broken))


def _quantised(change: Floats) -> Ints:
    return np.floor(change * (1.0 / QUANTUM_MILLI) + (0.5 + _TIE_MARGIN)).astype(np.int64)


def _column(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64).reshape(-1, 1)
