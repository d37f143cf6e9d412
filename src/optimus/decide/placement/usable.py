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
Bools = NDArray[np.bool_]

QUANTUM_MILLI = 10
"""Gains are counted in hundredths of a device, so that the layers below decide between equals."""
CHUNK = 640
"""Nodes evaluated at once. Larger temporaries leave the cache and cost page faults: four times slower."""
_TIE_MARGIN = 1e-6
"""Keeps rounding noise of sums from deciding a gain that lies half-way between two quanta."""
_IMPOSSIBLE = -1e9
_LEAST_PER_GPU = 1e-6
_ROWS = np.arange(CHUNK)
_ONES = np.ones(128)


class Gains(NamedTuple):
    gain: Ints
    """By node, in hundredths of a device; the larger the better, mostly negative."""
    device: Ints
    """By node: where a share goes best; -1 for requests that do not share a device."""


class Ask(NamedTuple):
    """A request, prepared once by `CompiledTables.ask` and used for every row of nodes.

    Columns have one entry per variant of a node: before; after; for a share instead of "after" the share on a device
    that is in use already, and the share on a fully free device.
    """

    gpu_count: int
    shares: bool
    """Takes less than the whole of a device."""
    cpu: Ints
    memory: Ints
    free_devices: Ints
    gap: Floats
    change_in_use: Floats
    """Change of the gap value by free thousandths of a device in use; impossible where the share does not fit."""
    change_free: float
    price: Floats
    """By model, and last for no device: minus what is to pay, impossible where the model is not allowed."""
    allowed: Bools
    any_model: bool
    """Neither prices nor allowed models make a difference."""


class CompiledTables:
    """Packing tables as arrays. Immutable: make a new one when the tables or the list of models change."""

    def __init__(self, tables: PackingTables, models: Sequence[str]) -> None:
        free = np.arange(WHOLE_DEVICE_MILLI + 1)
        if tables.gap_value:
            self.gap: Floats = np.array(tables.gap_value)[free // GAP_MILLI]
        else:  # nothing learned yet: keep devices whole
            self.gap = free * free / WHOLE_DEVICE_MILLI
        self.price: Floats = np.array([tables.model_price.get(model, 0.0) for model in models] + [0.0])
        self._blocks = BlockTable(tables.blocks, models)
        self._bin_weight: Floats = np.array([each.weight for each in tables.stranding])
        self._fed_by_cpu = _fed_per_unit([each.cpu_per_gpu_milli for each in tables.stranding])
        self._fed_by_memory = _fed_per_unit([each.memory_per_gpu_milli for each in tables.stranding])

    def ask(
        self,
        *,
        gpu_count: int,
        gpu_milli: int,
        cpu_milli: int,
        memory_mib: int,
        allowed: ArrayLike | None = None,  # by model; None allows all
    ) -> Ask:
        shares = gpu_count > 0 and gpu_milli < WHOLE_DEVICE_MILLI
        milli = min(gpu_milli, WHOLE_DEVICE_MILLI) if gpu_count else 0
        change = np.full(WHOLE_DEVICE_MILLI + 1, _IMPOSSIBLE)
        change[milli:] = self.gap[: WHOLE_DEVICE_MILLI + 1 - milli] - self.gap[milli:]
        change_free = float(change[-1])
        change[-1] = _IMPOSSIBLE
        may = np.ones(len(self.price), dtype=bool)
        if allowed is not None and gpu_count:
            may[:-1] = np.asarray(allowed, dtype=bool)
        taken = milli if shares else milli * gpu_count
        return Ask(
            gpu_count=gpu_count,
            shares=shares,
            cpu=_column(0, cpu_milli),
            memory=_column(0, memory_mib),
            free_devices=_column(0, 1) if shares else _column(0, gpu_count),
            gap=np.array([[0.0], [change_free * gpu_count]]),
            change_in_use=change,
            change_free=change_free,
            price=np.where(may, -self.price * taken, _IMPOSSIBLE),
            allowed=may,
            any_model=bool(may.all() and not self.price.any()),
        )

    def fed(self, cpu: Ints, memory: Ints) -> Floats:
        """[bin, state, node] idle GPU that CPU and memory can still feed."""
        fed: Floats = cpu * self._fed_by_cpu
        return np.minimum(fed, memory * self._fed_by_memory, out=fed)

    def value(self, gap: Floats, free: Floats, fed: Floats, cell: Ints) -> Floats:
        """[state, node] usable capacity, but for the prices of models."""
        value = gap
        if len(self._bin_weight):
            part = np.minimum(fed, gap)
            value = value + np.dot(self._bin_weight, part.reshape(len(part), -1)).reshape(gap.shape)
        if self._blocks.worth_anything:
            value = value + self._blocks.value(free, cell)
        return value


def gain(tables: CompiledTables, ask: Ask, gpus: Ints, device_model: Ints, cpu: Ints, memory: Ints) -> Gains:
    """Change of usable capacity by one replica of the request on each of the nodes.

    gpus: [node, device] free thousandths, 0 or less where there is no usable device.
    device_model: [node, device] position in the list of models, -1 where there is no device.
    """
    if len(gpus) > CHUNK:
        pieces = [slice(start, start + CHUNK) for start in range(0, len(gpus), CHUNK)]
        parts = [gain(tables, ask, gpus[at], device_model[at], cpu[at], memory[at]) for at in pieces]
        return Gains(np.concatenate([part.gain for part in parts]), np.concatenate([part.device for part in parts]))
    rows = _ROWS[: len(gpus)]
    ones = _ONES[: gpus.shape[1]]
    gap = np.dot(tables.gap.take(gpus, mode="clip"), ones)
    is_free = gpus >= WHOLE_DEVICE_MILLI
    free = np.dot(is_free, ones)
    usable = is_free if ask.any_model else is_free & ask.allowed[device_model]
    first_free = usable.argmax(axis=1)
    model = device_model[rows, first_free]
    cpu = cpu - ask.cpu
    memory = memory - ask.memory
    fed = tables.fed(cpu, memory)
    cell = tables._blocks.cell(cpu, memory, model)
    if not ask.shares:
        before, after = tables.value(gap + ask.gap, free - ask.free_devices, fed, cell)
        change = after - before
        if not ask.any_model:
            change += ask.price[model]
        return Gains(_quantised(change), np.full(len(gpus), -1))
    in_use = ask.change_in_use.take(gpus, mode="clip")
    choice = in_use if ask.any_model else in_use + ask.price[device_model]
    device = choice.argmax(axis=1)
    gaps = np.empty((2, len(gpus)))
    gaps[0] = gap + in_use[rows, device]
    gaps[1] = gap + np.where(usable[rows, first_free], ask.change_free, _IMPOSSIBLE)
    after = tables.value(gaps, free - ask.free_devices, fed[:, 1:], cell[1:])
    if not ask.any_model:
        after[0] += ask.price[device_model[rows, device]]
        after[1] += ask.price[model]
    before = tables.value(gap, free, fed[:, 0], cell[0])
    return Gains(
        _quantised(np.maximum(after[0], after[1]) - before), np.where(after[1] > after[0], first_free, device)
    )


def _quantised(change: Floats) -> Ints:
    return np.floor(change * (1.0 / QUANTUM_MILLI) + (0.5 + _TIE_MARGIN)).astype(np.int64)


def _column(*values: int) -> Ints:
    return np.array(values, dtype=np.int64).reshape(-1, 1)


def _fed_per_unit(needs: list[float]) -> Floats:
    return (1.0 / np.maximum(np.array(needs), _LEAST_PER_GPU)).reshape(-1, 1, 1)
