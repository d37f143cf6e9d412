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
MAX_THRESHOLDS = 64


class BlockTable:
    def __init__(self, blocks: Sequence[Block], models: Sequence[str], scale: float) -> None:
        """`scale` turns the values of the blocks into the unit of `value`."""
        steps = [
            (block, i) for block in blocks for i in range(1, MAX_DEVICES // block.gpu_count + 1) if block.value > 0
        ]
        self.worth_anything = bool(steps)
        devices = np.array([i * block.gpu_count for block, i in steps], dtype=np.int64)
        cpu = np.array([i * block.cpu_milli for block, i in steps], dtype=np.int64)
        memory = np.array([i * block.memory_mib for block, i in steps], dtype=np.int64)
        value = np.array([block.value * scale for block, _ in steps])
        self._cpu, self._memory = _thresholds(cpu), _thresholds(memory)
        row, column = np.searchsorted(self._cpu, cpu) + 1, np.searchsorted(self._memory, memory) + 1
        # Models that every class treats alike share a layer; layer 0, also for "no device", has no places at all.
        kinds = [tuple(not block.models or model in block.models for block, _ in steps) for model in models]
        layer_of = {kind: layer for layer, kind in enumerate(sorted(set(kinds)), start=1)}
        cells = np.zeros((len(layer_of) + 1, MAX_DEVICES + 1, len(self._cpu) + 1, len(self._memory) + 1))
        for kind, layer in layer_of.items():
            np.add.at(cells[layer], (devices, row, column), value * np.array(kind, dtype=bool))
        for axis in (1, 2, 3):
            np.cumsum(cells, axis=axis, out=cells)
        self._cells: Floats = cells.ravel()
        self._cpu_stride = cells.shape[3]
        self._device_stride = cells.shape[2] * cells.shape[3]
        layers = np.array([*(layer_of[kind] for kind in kinds), 0], dtype=np.int64)
        self._layer_start: Ints = layers * (cells.shape[1] * self._device_stride)

    def value(self, free: Floats, cpu: Ints, memory: Ints, model: Ints) -> Floats:
        """Value of the places; `model` is by node, the others have any leading axes before the node's."""
        index = (np.minimum(free, MAX_DEVICES) * self._device_stride).astype(np.int64)
        index += self._layer_start[model]
        index += self._cpu.searchsorted(cpu, side="right") * self._cpu_stride
        index += self._memory.searchsorted(memory, side="right")
        return self._cells.take(index, mode="clip")


def _thresholds(wanted: Ints) -> Ints:
    distinct = np.unique(wanted)
    if len(distinct) > MAX_THRESHOLDS:
        kept = np.linspace(0, len(distinct) - 1, MAX_THRESHOLDS).round().astype(np.int64)
        distinct = distinct[kept]
    return distinct
