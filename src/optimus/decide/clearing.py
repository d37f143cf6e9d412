"""Which work to move so that scattered devices come together: for askers that want whole devices on one node.

Moving makes no room, it only gathers it. So a node is worth clearing when few devices are missing there and what sits
on them fits into holes of other nodes. Counting devices answers that in a moment; whether CPU, memory and models agree
is for the search that gets the few units chosen here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimus.decide.victims import Unit
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.state.arrays import Bools, Ints

NODES_TRIED = 16
"""Nodes that are looked at for each replica, those that lack least first."""


def whole_free(gpus: Ints) -> list[int]:
    """Free devices by node."""
    free: list[int] = (gpus >= WHOLE_DEVICE_MILLI).sum(axis=1).tolist()
    return free


def movers_by_node(units: Sequence[Unit]) -> dict[int, list[Unit]]:
    """Work that takes whole devices of a node, smallest and cheapest first. A gang moves as one."""
    found: dict[int, list[Unit]] = {}
    for unit in units:
        if any(place.devices and place.milli != WHOLE_DEVICE_MILLI for place in unit.places):
            continue
        for node in {place.node for place in unit.places if place.devices}:
            found.setdefault(node, []).append(unit)
    for movers in found.values():
        movers.sort(key=lambda unit: (_devices(unit), unit.cost))
    return found


def to_move(free: list[int], movers: dict[int, list[Unit]], allowed: Bools, devices: int, replicas: int) -> list[Unit]:
    """The units to move for so many replicas of so many devices; empty when counting says that it cannot be done."""
    holes, gone = list(free), set[int]()
    chosen: list[Unit] = []
    able = np.flatnonzero(allowed).tolist()
    for _ in range(replicas):
        room = [node for node in able if holes[node] >= devices]
        if room:
            holes[min(room, key=lambda node: (holes[node], node))] -= devices
            continue
        best: tuple[int, int, int, list[Unit], list[int]] | None = None
        candidates = sorted((node for node in able if node in movers), key=lambda node: (-holes[node], node))
        for node in candidates[:NODES_TRIED]:
            found = _clear(node, devices - holes[node], movers[node], holes, gone)
            if found is not None:
                units, after = found
                price = (sum(unit.cost for unit in units), len(units), node, units, after)
                if best is None or price[:3] < best[:3]:
                    best = price
        if best is None:
            return []
        _, _, node, units, holes = best
        holes[node] -= devices
        gone.update(id(unit) for unit in units)
        chosen += units
    return chosen


def _clear(
    node: int, missing: int, movers: list[Unit], holes: list[int], gone: set[int]
) -> tuple[list[Unit], list[int]] | None:
    """Units that free the missing devices of a node and fit elsewhere, and the holes after that."""
    after = list(holes)
    units: list[Unit] = []
    for unit in movers:
        if missing <= 0:
            break
        if id(unit) in gone:
            continue
        moved = _move(unit, node, after)
        if moved is None:
            continue
        missing -= moved[node] - after[node]
        after = moved
        units.append(unit)
    return (units, after) if missing <= 0 else None


def _move(unit: Unit, away_from: int, holes: list[int]) -> list[int] | None:
    """The holes when the unit has left its places and sits in others; None if there are none for it."""
    after = list(holes)
    sizes = sorted((len(place.devices) for place in unit.places if place.devices), reverse=True)
    for place in unit.places:
        after[place.node] += len(place.devices)
    for need in sizes:
        hole = _tightest(after, away_from, need)
        if hole < 0:
            return None
        after[hole] -= need
    return after


def _tightest(holes: list[int], not_here: int, need: int) -> int:
    """The node with the smallest hole that is large enough; -1: none."""
    best, size = -1, 1 << 30
    for node, hole in enumerate(holes):
        if need <= hole < size and node != not_here:
            best, size = node, hole
            if hole == need:
                break
    return best


def _devices(unit: Unit) -> int:
    return sum(len(place.devices) for place in unit.places)
