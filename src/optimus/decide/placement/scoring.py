"""What is better: one number per node from layers, each dominating the next.

    device model speed, weighed against scarcity     where the workload names models with speeds
    the policy's own layer                           if it brings one
    least loss of usable capacity                    or most free, where the strategy is to spread
    predicted interference                           quietest device, for shared devices
    name                                             node order

Topology comes before all of these: `choosing` and `seating` pick domains first.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.placement.rooms import Room
from optimus.decide.placement.shapes import NO_SHARE, Shape
from optimus.decide.placement.usable import Ask as UsableAsk
from optimus.decide.placement.usable import CompiledTables, gain
from optimus.decide.policies.columns import NodeColumns
from optimus.decide.policies.policy import Policy, placement_keys
from optimus.model.packing import GAP_MILLI, GAP_STEPS, PackingTables
from optimus.model.plans import Condition
from optimus.model.pools import Strategy
from optimus.state.arrays import Ints
from optimus.state.resources import ResourceIndex

USABLE_BITS = 26
ACTIVITY_BITS = 8
POLICY_BITS = 20
SCARCITY_PERCENT = 10
"""A model that is asked for twice as much as there is idle counts this much slower."""
MOST_ASKS = 4096
"""So many prepared requests are kept."""


class Tables:
    """The packing tables in the forms that scores need; they change rarely."""

    def __init__(self, tables: PackingTables, resources: ResourceIndex) -> None:
        self.compiled = CompiledTables(tables, resources.models)
        self.price = np.array([tables.model_price.get(model, 0.0) for model in resources.models] + [0.0])
        values = self.compiled.gap[np.arange(GAP_STEPS + 1) * GAP_MILLI]
        self.gap: list[int] = [round(float(v) * 1000) for v in values]
        self._asks: dict[int, UsableAsk] = {}

    def ask(self, shape: Shape) -> UsableAsk:
        found = self._asks.get(shape.key)
        if found is None:
            request = shape.request
            milli = request.gpu_milli
            if request.gpu_memory_mib:
                milli = min(int(shape.share.min(initial=NO_SHARE)), 1000)
            found = self.compiled.ask(
                gpu_count=request.gpu_count,
                gpu_milli=milli,
                cpu_milli=request.cpu_milli,
                memory_mib=request.memory_mib,
                allowed=shape.model_ok[:-1] if request.models else None,
            )
            if len(self._asks) >= MOST_ASKS:
                self._asks.clear()
            self._asks[shape.key] = found
        return found


class Scorer:
    def __init__(self, tables: Tables, policy: Policy) -> None:
        self._tables = tables
        self._policy = policy
        self.conditions: list[Condition] = []

    def score(self, room: Room, shape: Shape, at: Ints | slice) -> Ints:
        spread = shape.strategy is Strategy.SPREAD
        usable = _emptiness(room, at) if spread else self._usable(room, shape, at)
        half = 1 << (USABLE_BITS - 1)
        total = np.minimum(np.maximum(usable, -half), half - 1) << ACTIVITY_BITS
        if shape.gpu_count and not shape.whole and shape.activity_milli:
            total += (1 << ACTIVITY_BITS) - 1 - _quietest(room, shape, at)
        if self._policy.placement is not None:
            total -= self._own_layer(room, shape, at) << (USABLE_BITS + ACTIVITY_BITS)
        if shape.request.models:
            total += self._speed(room, shape, at) << (USABLE_BITS + ACTIVITY_BITS + POLICY_BITS)
        return total

    def _usable(self, room: Room, shape: Shape, at: Ints | slice) -> Ints:
        tables, scalars = self._tables, room.scalars[at]
        free = (room.gpus[at], room.view.gpu_model[at], scalars[:, 0], scalars[:, 1])
        return gain(tables.compiled, tables.ask(shape), *free).gain

    def _speed(self, room: Room, shape: Shape, at: Ints | slice) -> Ints:
        """Percent of the fastest, less what the scarcity of that model is worth."""
        models = room.view.gpu_model[at]
        scarcity = np.where(shape.share[at] < NO_SHARE, self._tables.price[models], 0.0).max(axis=1, initial=0.0)
        speed: Ints = shape.speed_percent[at] - np.floor(scarcity * SCARCITY_PERCENT).astype(np.int64)
        return speed

    def _own_layer(self, room: Room, shape: Shape, at: Ints | slice) -> Ints:
        gpus, capacity = np.maximum(room.gpus[at], 0), np.maximum(room.view.capacity_gpus[at], 0)
        columns = NodeColumns(
            asked_gpu_milli=shape.request.gpu_count * shape.request.gpu_milli,
            asked_cpu_milli=shape.request.cpu_milli,
            asked_memory_mib=shape.request.memory_mib,
            free_gpu_milli=gpus.sum(axis=1),
            total_gpu_milli=capacity.sum(axis=1),
            free_cpu_milli=room.scalars[at][:, 0],
            free_memory_mib=room.scalars[at][:, 1],
            free_devices=(gpus >= 1000).sum(axis=1),
        )
        keys, condition = placement_keys(self._policy, columns)
        if condition is not None and condition not in self.conditions:
            self.conditions.append(condition)
        return np.clip(keys, 0, (1 << POLICY_BITS) - 1)


def _emptiness(room: Room, at: Ints | slice) -> Ints:
    """How free the node is, in thousandths of its GPUs and of its CPU together."""
    gpus = np.maximum(room.gpus[at], 0).sum(axis=1) * 1000 // np.maximum(room.view.capacity_gpus[at].sum(axis=1), 1)
    cpu = np.maximum(room.scalars[at][:, 0], 0) * 1000 // np.maximum(room.view.capacity_scalars[at][:, 0], 1)
    emptiness: Ints = gpus * 1001 + cpu
    return emptiness


def _quietest(room: Room, shape: Shape, at: Ints | slice) -> Ints:
    """Activity of the quietest device that has room, in steps of a 100th."""
    able = room.gpus[at] >= shape.share[at]
    activity = np.where(able, room.activity[at], 2550).min(axis=1, initial=2550)
    steps: Ints = np.clip(activity // 10, 0, (1 << ACTIVITY_BITS) - 1)
    return steps
