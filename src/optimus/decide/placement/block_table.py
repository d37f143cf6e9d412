"""Intact blocks as one lookup: the value of all places for multi-GPU work on a node.

A node has min(free devices / k, CPU / cpu_j, memory / memory_j), rounded down, places for class j. The i-th place
appears as soon as there are i*k free devices, i*cpu_j CPU and i*memory_j memory, so the summed value of places is a
step function of three numbers (and of the model). It is tabulated once, between the thresholds where it steps.

Must not: grow with the number of classes. Beyond `MAX_THRESHOLDS` distinct thresholds, the nearest are merged upwards:
a place then counts a little later than it could, never too early.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optimus.model.packing import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_DEVICES = 16
"""Free devices beyond this many on one node add no value."""
MAX_THRESHOLDS = 96


class BlockTable:
    def __init__(self, blocks: Sequence[Block], models: Sequence[str], scale: float) -> None:
        steps = [(block, i) for block in blocks if block.value > 0 for i in range(1, MAX_DEVICES // block.gpu_count + 1)]
        self.worth_anything = bool(steps)
        self._cpu = _thresholds([i * block.cpu_milli for block, i in steps])
        self._memory = _thresholds([i * block.memory_mib for block, i in steps])
        # Models that every class treats alike share a layer; the last entry stands for "no device", which has none.
        kinds = [tuple(not block.models or model in block.models for block in blocks) for model in models]
        layers = {kind: layer for layer, kind in enumerate(sorted(set(kinds)), start=1)}
        shape = (len(layers) + 1, MAX_DEVICES + 1, len(self._cpu) + 1, len(self._memory) + 1)
        cells = np.zeros(shape)
        for kind, layer in layers.items():
            allowed = {block for block, may in zip(blocks, kind, strict=True) if may}
            for block, i in steps:
                if block in allowed:
                    row = np.searchsorted(self._cpu, i * block.cpu_milli) + 1
                    column = np.searchsorted(self._memory, i * block.memory_mib) + 1
                    cells[layer, i * block.gpu_count, row, column] += block.value * scale
        self._cells: Floats = cells.cumsum(axis=1).cumsum(axis=2).cumsum(axis=3).ravel()
        self._device_stride = shape[2] * shape[3]
        self._cpu_stride = shape[3]
        self._layer_start: Ints = np.array([layers[kind] for kind in kinds] + [0]) * (self._device_stride * shape[1])

    def value(self, free: Floats, cpu: Ints, memory: Ints, model: Ints) -> Floats:
        """Value of the places; `model` is by node, the others have any leading axes before the node's."""
        index = (free * self._device_stride).astype(np.int64)
        index += self._layer_start[model]
        index += self._cpu.searchsorted(cpu, side="right") * self._cpu_stride
        index += self._memory.searchsorted(memory, side="right")
        return self._cells.take(index, mode="clip")


def _thresholds(wanted: list[int]) -> Ints:
    distinct = np.unique(np.array(wanted, dtype=np.int64))
    if len(distinct) > MAX_THRESHOLDS:
        kept = np.linspace(0, len(distinct) - 1, MAX_THRESHOLDS).round().astype(np.int64)
        distinct = distinct[kept]
    return distinct
