"""The mix of requests seen so far: what the packing tables are learned from.

Counts are halved when they grow large, so that a mix that drifts is followed.
"""

from __future__ import annotations

from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.packing import MixEntry
from optimus.state.workload_table import Signature

FORGET_AT = 20_000
Key = tuple[int, int, int, int, tuple[str, ...]]


class Mix:
    def __init__(self) -> None:
        self.counts: dict[Key, int] = {}
        self.arrivals = 0
        """Replicas ever counted."""
        self._weight = 0

    def arrived(self, signature: Signature) -> None:
        for role_index, ordinals in signature.minimum.items():
            request = signature.chains[role_index].role.request
            milli = WHOLE_DEVICE_MILLI if request.gpu_memory_mib else request.gpu_milli
            models = tuple(sorted(m.model for m in request.models))
            key = (request.cpu_milli, request.memory_mib, request.gpu_count, milli if request.gpu_count else 0, models)
            self.add(key, len(ordinals))

    def add(self, key: Key, count: int) -> None:
        self.counts[key] = self.counts.get(key, 0) + count
        self.arrivals += count
        self._weight += count
        if self._weight > FORGET_AT:
            self.counts = {k: n // 2 for k, n in self.counts.items() if n > 1}
            self._weight = sum(self.counts.values())

    def entries(self) -> tuple[MixEntry, ...]:
        return tuple(MixEntry(count, *key) for key, count in sorted(self.counts.items()))
