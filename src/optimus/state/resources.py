"""Names of resources and GPU models turned into column numbers, in the order they were first seen.

`gpu`, `cpu` and `memory` are always columns 0, 1 and 2; named accelerators follow. *Scalars* are everything
but GPUs, because GPUs are placed device by device: scalar column = resource column - 1.
"""

from __future__ import annotations

import numpy as np

from optimus.model.queues import CORE_RESOURCES
from optimus.model.rules import is_counter
from optimus.model.workloads import Request
from optimus.state.arrays import Ints

GPU_COLUMN = 0
CPU_COLUMN = 1


class ResourceIndex:
    def __init__(self) -> None:
        self.names: list[str] = list(CORE_RESOURCES)
        self.columns: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self._named: list[int] = []
        self.models: list[str] = []
        self.model_ids: dict[str, int] = {}

    @property
    def count(self) -> int:
        return len(self.names)

    def named(self) -> list[int]:
        """Columns of named accelerators; counters are not among them."""
        return self._named

    def shared(self) -> list[int]:
        """Columns of which queues have shares: all but counters."""
        return [*range(len(CORE_RESOURCES)), *self._named]

    def column(self, name: str) -> int:
        if name not in self.columns:
            if not is_counter(name):
                self._named.append(len(self.names))
            self.columns[name] = len(self.names)
            self.names.append(name)
        return self.columns[name]

    def model(self, name: str) -> int:
        if name not in self.model_ids:
            self.model_ids[name] = len(self.models)
            self.models.append(name)
        return self.model_ids[name]

    def scalars(self, request: Request) -> Ints:
        """CPU, memory and named accelerators of one replica. Names must have been seen (`column`) before."""
        vector = np.zeros(self.count - 1, dtype=np.int64)
        vector[0] = request.cpu_milli
        vector[1] = request.memory_mib
        for name, amount in request.accelerators:
            vector[self.columns[name] - 1] = amount
        return vector
