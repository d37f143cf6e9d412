"""Learning what idle room is worth, from the mix of requests that has arrived.

The value of a node ("usable capacity", in thousandths of a device) is

    E + sum_b w_b min(E, CPU / c_b, memory / m_b) + price[model] * idle + sum_j B_j * (places for class j)
    gap   part that CPU and memory can feed       scarce models          intact blocks for multi-GPU work

with E the sum of gap values over the devices of the node. A replica goes where this value drops least.

Owns: making `PackingTables` between cycles.
Must not: look at a single placement (see `optimus.decide.placement.usable`), or know the future: the mix holds
counts of arrivals so far. Order of the mix is irrelevant; same input, same tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimus.decide.cutting_stock import best_fill_values
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.packing import GAP_MILLI, GAP_STEPS, Block, MixEntry, PackingTables, StrandingBin

Ints = NDArray[np.int64]

BEST_FILL_WEIGHT = 0.7 * 800
RANDOM_FILL_WEIGHT = 0.3
WHOLENESS_WEIGHT = 0.03
"""Of gaps that the mix would use equally well, the smallest is filled: devices stay whole for what is to come."""
PATIENCE = 0.01
"""Share of arrivals for which a gap stays open though nothing that fits has come."""
STRANDING_BINS = 8
HIGHEST_PRICE = 2.0
BLOCK_WEIGHT = 0.07
BLOCK_EXPONENT = 1.5
SAFETY_DEVIATIONS = 2.0
MOST_SCARCE = 2.0


class Room(NamedTuple):
    """What is free on the nodes, as arrays over nodes (and devices)."""

    gpus: Ints
    """[node, device] free thousandths; 0 or less where there is no usable device."""
    device_model: Ints
    """[node, device] position in `models`; -1 where there is no device."""
    cpu: Ints
    memory: Ints
    models: tuple[str, ...]


def idle_by_model(room: Room) -> dict[str, int]:
    usable = np.maximum(room.gpus, 0)
    return {name: int(usable[room.device_model == index].sum()) for index, name in enumerate(room.models)}


def learn(mix: Sequence[MixEntry], idle: Mapping[str, int], room: Room) -> PackingTables:
    """Tables for the mix seen so far; without any GPU request in it they stay empty ("nothing learned yet")."""
    arrivals = sum(entry.count for entry in mix)
    asked = sorted((e for e in mix if e.count > 0 and e.gpu_count > 0 and e.gpu_milli > 0), key=_stable)
    if not asked:
        return PackingTables(arrivals=arrivals)
    return PackingTables(
        gap_value=gap_values(asked),
        stranding=stranding_bins(asked),
        model_price=model_prices(asked, idle),
        blocks=blocks(asked, sum(idle.values()), room),
        arrivals=arrivals,
    )


def usual_mix(room: Room) -> tuple[MixEntry, ...]:
    """What is to be expected on such nodes while little has been seen: mostly single GPUs, some shares, and gangs that
    want a half or a whole node; each with the CPU and memory that go with its GPUs."""
    devices = (room.device_model >= 0).sum(axis=1)
    with_gpus = devices > 0
    if not with_gpus.any():
        return ()
    largest = int(devices.max())
    cpu = int((room.cpu[with_gpus] // devices[with_gpus]).min()) // 2
    memory = int((room.memory[with_gpus] // devices[with_gpus]).min()) // 2
    sizes = {1: 6, 2: 2, largest // 2: 1, largest: 1}
    whole = tuple(
        MixEntry(count, max(k * cpu, 0), max(k * memory, 0), k, WHOLE_DEVICE_MILLI, ())
        for k, count in sorted(sizes.items())
        if 0 < k <= largest
    )
    half = WHOLE_DEVICE_MILLI // 2
    return (*whole, MixEntry(1, max(cpu, 0) // 2, max(memory, 0) // 2, 1, half, ()))


def gap_values(asked: Sequence[MixEntry]) -> tuple[float, ...]:
    """Best fill says which combinations are efficient and has many ties; chance and wholeness break them."""
    sizes: defaultdict[int, float] = defaultdict(float)
    for entry in asked:
        sizes[_steps(entry.gpu_milli)] += entry.count * entry.gpu_count
    values = BEST_FILL_WEIGHT * best_fill_values(sizes) + RANDOM_FILL_WEIGHT * random_fill_milli(sizes)
    free = np.arange(GAP_STEPS + 1) * GAP_MILLI
    values = np.maximum.accumulate(values) + WHOLENESS_WEIGHT * free * free / WHOLE_DEVICE_MILLI
    return tuple(values.tolist())


def random_fill_milli(sizes: Mapping[int, float]) -> NDArray[np.float64]:
    """Expected thousandths that get used of a gap of 0 … `GAP_STEPS` steps if shares arrive at random."""
    total = sum(sizes.values())
    share = np.zeros(GAP_STEPS + 1)
    for size, count in sizes.items():
        share[size] = count / total
    size_milli = np.arange(GAP_STEPS + 1) * float(GAP_MILLI)
    filled = np.zeros(GAP_STEPS + 1)
    for gap in range(1, GAP_STEPS + 1):
        fitting = share[1 : gap + 1]
        filled[gap] = fitting @ (size_milli[1 : gap + 1] + filled[gap - 1 :: -1]) / (fitting.sum() + PATIENCE)
    return filled


def stranding_bins(asked: Sequence[MixEntry]) -> tuple[StrandingBin, ...]:
    """One-GPU classes by CPU per GPU, cut into bins of equal weight: the company that idle GPU needs to be used."""
    single = [e for e in asked if e.gpu_count == 1] or list(asked)
    gpu = np.array([e.gpu_count * e.gpu_milli for e in single], dtype=np.float64)
    cpu = np.array([e.cpu_milli for e in single]) / gpu
    memory = np.array([e.memory_mib for e in single]) / gpu
    weight = np.array([e.count for e in single]) * np.sqrt(gpu)
    order = np.lexsort((memory, cpu))
    cpu, memory, weight = cpu[order], memory[order], weight[order] / weight.sum()
    upper = np.cumsum(weight)
    lower = upper - weight
    bins = []
    for index in range(STRANDING_BINS):
        start, end = index / STRANDING_BINS, (index + 1) / STRANDING_BINS
        inside = np.maximum(np.minimum(upper, end) - np.maximum(lower, start), 0.0)
        total = float(inside.sum())
        if total > 0:
            bins.append(StrandingBin(total, float(inside @ cpu) / total, float(inside @ memory) / total))
    return tuple(bins)


def model_prices(asked: Sequence[MixEntry], idle: Mapping[str, int]) -> dict[str, float]:
    """What one thousandth of a model costs beyond its use: demand tied to it against what is idle of it."""
    total_idle = sum(idle.values())
    total_demand = sum(_demand(e) for e in asked)
    tied: defaultdict[str, float] = defaultdict(float)
    for entry in asked:
        candidates = {model: max(idle.get(model, 0), 1) for model in entry.models}
        for model, amount in candidates.items():
            tied[model] += _demand(entry) * amount / sum(candidates.values())
    return {
        model: min(HIGHEST_PRICE, tied[model] / total_demand * total_idle / max(idle.get(model, 0), 1))
        for model in sorted(tied)
    }


def blocks(asked: Sequence[MixEntry], idle_milli: int, room: Room) -> tuple[Block, ...]:
    """Value of every place for a class of multi-GPU replicas: high where places are few against what may come."""
    whole = [e for e in asked if e.gpu_count > 1 and e.gpu_milli >= WHOLE_DEVICE_MILLI]
    total_demand = sum(_demand(e) for e in asked)
    free = {models: _free_devices(models, room) for models in {e.models for e in whole}}
    found = []
    for entry in whole:
        k = entry.gpu_count
        larger_demand = sum(_demand(e) for e in whole if e.gpu_count >= k)
        expected = larger_demand / total_demand * idle_milli / (WHOLE_DEVICE_MILLI * k)
        needed = expected + SAFETY_DEVIATIONS * sqrt(expected)
        available = _places(entry, free[entry.models], room)
        scarcity = min(MOST_SCARCE, needed / available) if available else MOST_SCARCE
        share = entry.count / sum(e.count for e in whole if e.gpu_count == k)
        value = BLOCK_WEIGHT * scarcity**BLOCK_EXPONENT * WHOLE_DEVICE_MILLI * k * share
        found.append(Block(k, entry.cpu_milli, entry.memory_mib, entry.models, value))
    return tuple(found)


def _free_devices(models: tuple[str, ...], room: Room) -> Ints:
    """By node: fully free devices of the models; of any if none is named."""
    free = room.gpus >= WHOLE_DEVICE_MILLI
    if models:
        free &= np.isin(room.device_model, [i for i, name in enumerate(room.models) if name in models])
    counts: Ints = free.sum(axis=1)
    return counts


def _places(entry: MixEntry, free: Ints, room: Room) -> int:
    """How many replicas of the class would fit on the free devices, with the CPU and memory beside them."""
    fit = free // entry.gpu_count
    if entry.cpu_milli:
        fit = np.minimum(fit, room.cpu // entry.cpu_milli)
    if entry.memory_mib:
        fit = np.minimum(fit, room.memory // entry.memory_mib)
    return int(np.maximum(fit, 0).sum())


def _steps(gpu_milli: int) -> int:
    """Rounded down, so that three times 333 or eight times 125 still fill a device."""
    return min(max(gpu_milli // GAP_MILLI, 1), GAP_STEPS)


def _demand(entry: MixEntry) -> int:
    return entry.count * entry.gpu_count * entry.gpu_milli


def _stable(entry: MixEntry) -> tuple[int, int, int, int, tuple[str, ...], int]:
    return entry.gpu_count, entry.gpu_milli, entry.cpu_milli, entry.memory_mib, entry.models, entry.count
