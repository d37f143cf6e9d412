"""Sets of victims: what one costs, and the orders in which a search asks.

A workload that is disturbed costs its restart once, however many of its replicas go: one victim beats two halves.
No single order finds the cheapest set for every asker, so a search tries several and compares prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from optimus.decide.entitlements import Side
from optimus.decide.placement.rooms import Room
from optimus.decide.victims import Unit, with_steps_before
from optimus.decide.world import World
from optimus.state.arrays import Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import CPU_MILLI_PER_GPU, size_milli

Price = tuple[int, bool, int, int, int, int, int]


def price(units: Iterable[Unit], replicas: int = 1) -> Price:
    """Of a set: its worst tier, whether whole workloads go, their highest priority, its cost per replica gained, how
    many workloads are disturbed, how many units go."""
    tier, whole, priority, standing, count = -(1 << 62), False, 0, 1 << 62, 0
    costs: dict[int, int] = {}
    for unit in units:
        count += 1
        tier = max(tier, unit.tier)
        costs[unit.row] = max(costs.get(unit.row, 0), unit.cost)
        if unit.whole:
            priority = max(priority, unit.priority) if whole else unit.priority
            whole = True
            standing = min(standing, unit.standing)
    return (tier, whole, priority, -standing if whole else 0, sum(costs.values()) // replicas, len(costs), count)


def most_precious_first(units: Sequence[Unit]) -> list[Unit]:
    """The order in which units are spared if they can be: dear workloads before cheap ones, all of one together, those
    that give least first among equals."""
    gives: dict[int, int] = {}
    first: dict[int, int] = {}
    for i, unit in enumerate(units):
        gives[unit.row] = gives.get(unit.row, 0) + 1
        first.setdefault(unit.row, i)
    return sorted(
        units,
        key=lambda u: (
            u.tier,
            u.whole,
            u.priority,
            -u.standing,
            u.cost,
            -gives[u.row],
            first[u.row],
            int(u.amount[GPU_COLUMN]),
        ),
        reverse=True,
    )


def by_cost_for_what_they_give(units: Sequence[Unit], amount: Ints) -> list[Unit]:
    """Inside each rank of preference, workloads that give most for their cost first; more than asked for is no gain."""
    need = max(_size(amount), 1)
    whole = _column([unit.whole for unit in units])
    _, workload = np.unique(_column([unit.row for unit in units]) * 2 + whole, return_inverse=True)
    gives = np.zeros(len(units), dtype=np.int64)
    np.add.at(gives, workload, sizes(units))
    given = np.clip(gives[workload], 1, need)
    rank = (
        _column([unit.tier for unit in units]),
        whole,
        np.where(whole, _column([unit.priority for unit in units]), 0),
        _column([-unit.standing for unit in units]),
        _column([unit.cost for unit in units]) * 1000 // given,
    )
    return [units[i] for i in np.lexsort(rank[::-1]).tolist()]


def by_node(units: Sequence[Unit]) -> list[Unit]:
    """The nodes that are cheapest to empty first."""
    on_node: dict[int, list[Unit]] = {}
    for unit in units:
        for node in {place.node for place in unit.places}:
            on_node.setdefault(node, []).append(unit)
    found: dict[int, Unit] = {}
    for node in sorted(on_node, key=lambda n: (price(on_node[n]), n)):
        for unit in on_node[node]:
            found.setdefault(id(unit), unit)
    return list(found.values())


def sizes(units: Sequence[Unit]) -> Ints:
    """Of each: its GPUs, or what its CPU counts for."""
    gpus = _column([unit.amount[GPU_COLUMN] for unit in units])
    cpus = _column([unit.amount[CPU_COLUMN] for unit in units])
    return np.where(gpus > 0, gpus, cpus // CPU_MILLI_PER_GPU)


def _column(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _size(amount: Ints) -> int:
    return size_milli(int(amount[GPU_COLUMN]), int(amount[CPU_COLUMN]))


class Bundle:
    """The places of many units as arrays, so that a prefix of them can be freed at once."""

    def __init__(self, units: list[Unit]) -> None:
        self.units = units
        places = [place for unit in units for place in unit.places]
        self._place_end = np.cumsum([len(unit.places) for unit in units])
        self._nodes = np.array([place.node for place in places], dtype=np.int64)
        self._scalars = np.array([place.scalars for place in places], dtype=np.int64)
        self._device_end = np.cumsum([sum(len(place.devices) for place in unit.places) for unit in units])
        self._device_nodes = np.array([p.node for p in places for _ in p.devices], dtype=np.int64)
        self._devices = np.array([device for p in places for device in p.devices], dtype=np.int64)
        self._milli = np.array([p.milli for p in places for _ in p.devices], dtype=np.int64)
        self._activity = np.array([p.activity_milli for p in places for _ in p.devices], dtype=np.int64)

    def free(self, room: Room, count: int, sign: int) -> None:
        end, device_end = int(self._place_end[count - 1]), int(self._device_end[count - 1])
        nodes = self._nodes[:end]
        np.add.at(room.scalars, nodes, sign * self._scalars[:end])
        at = (self._device_nodes[:device_end], self._devices[:device_end])
        np.add.at(room.gpus, at, sign * self._milli[:device_end])
        if self._activity.any():
            np.subtract.at(room.activity, at, sign * self._activity[:device_end])
        room.touched(np.unique(nodes))


class Excess:
    """How much each side still has above its bound, while units are being asked for."""

    def __init__(self, world: World, pool: int, sides: Sequence[Side]) -> None:
        self._world = world
        self._left: list[list[int]] = [(world.used_coming[side.queue, pool] - side.bound).tolist() for side in sides]
        self._used: set[int] = set()

    def allows(self, unit: Unit) -> bool:
        """Whether its side is above its bound when the steps that must go before it are gone. Growth of this very plan
        is such a step: a workload that is above the bound only because of it loses no more than the growth."""
        if unit.side < 0 or id(unit) in self._used:
            return True  # its own queue or nobody's, or asked for already
        left = self._left[unit.side]
        for step in self._still_to_go(unit):
            left = _less(left, step)
        return any(left[c] > 0 for c in self._world.ordering_columns(unit.amount))

    def allowed(self, units: Sequence[Unit]) -> list[Unit]:
        """Those it allows one after the other, in their order."""
        if not self._used and all(unit.amount[GPU_COLUMN] > 0 and not unit.after for unit in units):
            return self._allowed_gpus(units)
        found = []
        for unit in units:
            if self.allows(unit):
                self.use(unit)
                found.append(unit)
        return found

    def _allowed_gpus(self, units: Sequence[Unit]) -> list[Unit]:
        """The common case, where one sum tells: each side gives GPUs until it has none left above its bound."""
        side = _column([unit.side for unit in units])
        gpus = _column([unit.amount[GPU_COLUMN] for unit in units])
        allowed = side < 0
        for number, left in enumerate(self._left):
            mine = np.flatnonzero(side == number)
            allowed[mine] = np.cumsum(gpus[mine]) - gpus[mine] < left[GPU_COLUMN]
        return [units[i] for i in np.flatnonzero(allowed).tolist()]

    def allows_all(self, units: Sequence[Unit]) -> bool:
        """Whether it allows them one after the other, the largest last."""
        before = list(self._left), set(self._used)
        allowed = True
        for unit in sorted(units, key=lambda each: _size(each.amount)):
            allowed = allowed and self.allows(unit)
            self.use(unit)
        self._left, self._used = before
        return allowed

    def use(self, unit: Unit) -> None:
        if unit.side < 0:
            return
        for each in (unit, *self._still_to_go(unit)):
            if id(each) not in self._used:
                self._used.add(id(each))
                self._left[each.side] = _less(self._left[each.side], each)

    def _still_to_go(self, unit: Unit) -> list[Unit]:
        if not unit.after:
            return []
        return [step for step in with_steps_before([unit]) if step is not unit and id(step) not in self._used]


def _less(left: list[int], unit: Unit) -> list[int]:
    return [has - gives for has, gives in zip(left, unit.amount.tolist(), strict=True)]
