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
"""Nodes evaluated at once. Larger temporaries leave the cache and cost page faults: about twice as slow."""
_TIE_MARGIN = 1e-6
"""Keeps rounding noise of sums from deciding a gain that lies half-way between two quanta."""
_IMPOSSIBLE = -1e9
_ROWS = np.arange(CHUNK)
_ONES = np.ones(1024)


class Gains(NamedTuple):
    gain: Ints
    """By node, in hundredths of a device; the larger the better, mostly negative."""
    device: Ints
    """By node: where a share goes best (the first of several: see `best_devices`); -1 for whole devices and none."""


class Ask(NamedTuple):
    """A request, prepared once by `CompiledTables.ask` and used for every row of nodes.

    The columns have one entry for each state of a node: before; after. A share has two states after: on the best
    device that is in use already, and on a fully free device.
    """

    shares: bool
    """Takes less than the whole of a device."""
    gpu_count: int
    cpu: Ints
    memory: Ints
    free_devices: Ints
    gap: Floats
    change: Floats
    """Change of the gap value by free thousandths of a device; impossible where the request does not fit."""
    change_in_use: Floats
    """The same, impossible on a fully free device."""
    price: Floats
    """By model, and last for no device: minus what is to pay, impossible where the model is not allowed."""
    allowed: Bools | None
    """By model, and last for no device; None where all are."""
    priced: bool
    """Prices or allowed models make a difference."""


class Feeds(NamedTuple):
    """Idle GPU that CPU, or memory, can feed; [bin, 1, 1], so that [state, node] times it is [bin, state, node]."""

    per_unit: Floats
    without: Floats
    """What needs nothing is fed without."""
    some_need_nothing: bool


class CompiledTables:
    """Packing tables as arrays, in hundredths of a device. Make a new one when tables or list of models change."""

    def __init__(self, tables: PackingTables, models: Sequence[str]) -> None:
        free = np.arange(WHOLE_DEVICE_MILLI + 1)
        if tables.gap_value:
            gap: Floats = np.array(tables.gap_value)[free // GAP_MILLI]
        else:  # nothing learned yet: the fuller a device, the sooner it is filled up
            gap = free * free / WHOLE_DEVICE_MILLI
        self.gap = gap / QUANTUM_MILLI
        self.price: Floats = np.array([tables.model_price.get(model, 0.0) for model in models] + [0.0]) / QUANTUM_MILLI
        self.blocks = BlockTable(tables.blocks, models, 1.0 / QUANTUM_MILLI)
        self.bin_weight: Floats = np.array([each.weight for each in tables.stranding])
        self.cpu_feeds = _feeds([each.cpu_per_gpu_milli for each in tables.stranding])
        self.memory_feeds = _feeds([each.memory_per_gpu_milli for each in tables.stranding])

    def ask(
        self,
        *,
        gpu_count: int,
        gpu_milli: int,  # of each device
        cpu_milli: int,
        memory_mib: int,
        allowed: ArrayLike | None = None,  # by model; None allows all
    ) -> Ask:
        shares = gpu_count > 0 and gpu_milli < WHOLE_DEVICE_MILLI
        one_share = shares and gpu_count == 1
        milli = min(gpu_milli, WHOLE_DEVICE_MILLI) if gpu_count else 0
        change = np.full(WHOLE_DEVICE_MILLI + 1, _IMPOSSIBLE)
        change[milli:] = self.gap[: WHOLE_DEVICE_MILLI + 1 - milli] - self.gap[milli:]
        in_use, on_free = change.copy(), float(change[-1])
        in_use[-1] = _IMPOSSIBLE
        may = np.ones(len(self.price), dtype=bool)
        if allowed is not None and gpu_count:
            may[:-1] = np.asarray(allowed, dtype=bool)
        price = np.where(may, -self.price * milli * (1 if shares else gpu_count), _IMPOSSIBLE)
        return Ask(
            shares=shares,
            gpu_count=gpu_count,
            cpu=_column(0, cpu_milli, cpu_milli) if one_share else _column(0, cpu_milli),
            memory=_column(0, memory_mib, memory_mib) if one_share else _column(0, memory_mib),
            free_devices=_column(0, 0, 1) if one_share else _column(0, gpu_count),
            gap=np.array([[0.0], [0.0], [on_free]] if one_share else [[0.0], [on_free * gpu_count]]),
            change=change,
            change_in_use=in_use,
            price=price,
            allowed=None if may.all() else may,
            priced=bool(price.any()),
        )

    def value(self, gap: Floats, free: Floats, cpu: Ints, memory: Ints, model: Ints) -> Floats:
        """Usable capacity, but for the prices of models; `model` is by node, the others are [state, node]."""
        value = gap
        if len(self.bin_weight):
            fed = _fed(cpu, self.cpu_feeds)
            np.minimum(fed, _fed(memory, self.memory_feeds), out=fed)
            np.minimum(fed, gap, out=fed)
            value = value + np.dot(self.bin_weight, fed.reshape(len(fed), -1)).reshape(gap.shape)
        if self.blocks.worth_anything:
            value = value + self.blocks.value(free, cpu, memory, model)
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
    if gpus.shape[1] == 0:
        return Gains(np.zeros(len(gpus), dtype=np.int64), np.full(len(gpus), -1))
    if ask.shares and ask.gpu_count > 1:
        return _gain_of_several_shares(tables, ask, gpus, device_model, cpu, memory)
    rows = _ROWS[: len(gpus)]
    ones = _ONES[: gpus.shape[1]]
    is_free = gpus >= WHOLE_DEVICE_MILLI
    usable = is_free if ask.allowed is None else is_free & ask.allowed[device_model]
    first_free = usable.argmax(axis=1)
    model = device_model[rows, first_free]
    gap = np.dot(tables.gap.take(gpus, mode="clip"), ones) + ask.gap
    free = np.dot(is_free, ones) - ask.free_devices
    if not ask.shares:
        before, after = tables.value(gap, free, cpu - ask.cpu, memory - ask.memory, model)
        if ask.priced:
            after += ask.price[model]
        return Gains(_rounded(after - before), np.full(len(gpus), -1))
    change = ask.change_in_use.take(gpus, mode="clip")
    in_use = (change + ask.price[device_model] if ask.priced else change).argmax(axis=1)
    gap[1] += change[rows, in_use]
    before, on_used, on_free = tables.value(gap, free, cpu - ask.cpu, memory - ask.memory, model)
    if ask.priced:
        on_used += ask.price[device_model[rows, in_use]]
        on_free += ask.price[model]
    better_free = (on_free > on_used) & usable[rows, first_free]
    after = np.where(better_free, on_free, on_used)
    return Gains(_rounded(after - before), np.where(better_free, first_free, in_use))


def best_devices(ask: Ask, gpus: Ints, device_model: Ints) -> Ints:
    """[node, share] where the shares of a request for several devices go, best first."""
    change = ask.change.take(gpus, mode="clip") + ask.price[device_model]
    return np.argsort(-change, axis=1, kind="stable")[:, : ask.gpu_count]


def _gain_of_several_shares(
    tables: CompiledTables, ask: Ask, gpus: Ints, device_model: Ints, cpu: Ints, memory: Ints
) -> Gains:
    """Each share on the device that loses least by itself; what that does to blocks is counted, not optimised."""
    devices = best_devices(ask, gpus, device_model)
    is_free = gpus >= WHOLE_DEVICE_MILLI
    taken_from = np.take_along_axis(gpus, devices, axis=1)
    model = np.take_along_axis(device_model, is_free.argmax(axis=1)[:, None], axis=1)[:, 0]
    gap = tables.gap.take(gpus, mode="clip").sum(axis=1)
    gaps = np.stack((gap, gap + ask.change.take(taken_from, mode="clip").sum(axis=1)))
    free = is_free.sum(axis=1)
    left = np.stack((free, free - (taken_from >= WHOLE_DEVICE_MILLI).sum(axis=1)))
    before, after = tables.value(gaps, left.astype(np.float64), cpu - ask.cpu, memory - ask.memory, model)
    after += ask.price[np.take_along_axis(device_model, devices, axis=1)].sum(axis=1)
    return Gains(_rounded(after - before), devices[:, 0])


def _rounded(change: Floats) -> Ints:
    return np.floor(change + (0.5 + _TIE_MARGIN)).astype(np.int64)


def _column(*values: int) -> Ints:
    return np.array(values, dtype=np.int64).reshape(-1, 1)


def _feeds(milli_needs: list[float]) -> Feeds:
    needs = np.array(milli_needs).reshape(-1, 1, 1)
    nothing = needs <= 0.0
    return Feeds(
        1.0 / QUANTUM_MILLI / np.where(nothing, np.inf, needs),
        np.where(nothing, -_IMPOSSIBLE, 0.0),
        bool(nothing.any()),
    )


def _fed(amount: Ints, feeds: Feeds) -> Floats:
    fed: Floats = amount * feeds.per_unit
    if feeds.some_need_nothing:
        fed += feeds.without
    return fed
