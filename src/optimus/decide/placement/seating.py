"""Whole gangs: seats for every replica of a part, with the topology rules of the part and of the parts inside it.

A part with a required level goes into one domain of that level; candidates are tried tightest first. What is inside
a part is placed largest first. Every try happens in the room itself and is undone if it fails, so the rows of "how
many fit" stay warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from optimus.decide.placement.choosing import Choice, choose_nodes
from optimus.decide.placement.devices import GapValues, pick_shares, pick_whole
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.shapes import NO_SHARE, Shape
from optimus.model.gangs import Cell, Part
from optimus.model.pools import HOST_LEVEL, NVLINK_LEVEL, Strategy
from optimus.state.arrays import Bools, Ints


@dataclass(slots=True)
class Seats:
    """Places for replicas of one role. Parallel lists, one entry per replica."""

    role_index: int
    shape: Shape
    ordinals: list[int]
    nodes: list[int]
    devices: list[tuple[int, ...]]
    milli: list[int]

    def split(self) -> list[Seats]:
        """The same, one replica each."""
        each = zip(self.ordinals, self.nodes, self.devices, self.milli, strict=True)
        return [Seats(self.role_index, self.shape, [o], [n], [d], [m]) for o, n, d, m in each]


@dataclass(slots=True)
class Seating:
    """All seats of a gang or of a step of growth, inside one pool."""

    pool: int
    seats: list[Seats] = field(default_factory=list)
    _amount: Ints | None = None

    def amount(self) -> Ints:
        """By resource, GPUs first. Ask only when all seats are there."""
        if self._amount is None:
            total = np.zeros(len(self.seats[0].shape.scalars) + 1, dtype=np.int64)
            for seats in self.seats:
                total[1:] += len(seats.nodes) * seats.shape.scalars
                total[0] += seats.shape.gpu_count * sum(seats.milli)
            self._amount = total
        return self._amount

    def nodes(self) -> set[int]:
        return {node for seats in self.seats for node in seats.nodes}

    def replicas(self) -> int:
        return sum(len(seats.ordinals) for seats in self.seats)


class Tries:
    """How many more domains may be tried; shared by everything that searches in one cycle."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.exhausted = False

    def use(self) -> bool:
        if self.left <= 0:
            self.exhausted = True
            return False
        self.left -= 1
        return True


Placing = Callable[[Part, Bools | None, Ints | None, Seating], bool]


class Seater:
    """Places parts in one room. Holds no state beyond the call but the room it changes and restores."""

    def __init__(
        self,
        room: Room,
        shape_of: Callable[[int], Shape],
        gap: GapValues,
        tries: Tries,
        rather: Bools | None = None,
    ) -> None:
        """`rather`: nodes that are tried first; the others only where these alone will not do."""
        self.room = room
        self.shape_of = shape_of
        self.gap = gap
        self.tries = tries
        self.rather = rather

    def seat(self, part: Part, *, within: Bools | None = None, near: Ints | None = None) -> Seating | None:
        """Seats for all replicas of the part, or None. The room is left as it was.

        `within`: nodes that may be used. `near`: nodes to stay close to (growth prefers the domains it is in)."""
        if self.rather is not None:
            found = self._seat(part, self.rather if within is None else within & self.rather, near)
            if found is not None:
                return found
        return self._seat(part, within, near)

    def _seat(self, part: Part, within: Bools | None, near: Ints | None) -> Seating | None:
        seating = Seating(self.room.view.index)
        if len(part.cells) == 1 and not part.parts and not part.topology.required and not part.topology.preferred:
            seats = self._find(part.cells[0], within, near)  # the common gang: nothing to try and undo
            if seats is None:
                return None
            seating.seats.append(seats)
            return seating
        if not self._place(part, within, near, seating):
            return None
        for seats in seating.seats:
            self._apply(seats, -1)
        return seating

    # -- parts ------------------------------------------------------------------------------------------------

    def _place(self, part: Part, within: Bools | None, near: Ints | None, out: Seating) -> bool:
        if part.topology.required:
            return self._in_one_domain(part, part.topology.required, within, out, self._together)
        return self._together(part, within, near, out)

    def _together(self, part: Part, within: Bools | None, near: Ints | None, out: Seating) -> bool:
        """In one domain of a preferred level, or of the narrowest that takes the whole part; else wherever it fits."""
        for level in self._levels_to_try(part, near):
            if self._in_one_domain(part, level, within, out, self._contents):
                return True
        return self._contents(part, within, near, out)

    def _levels_to_try(self, part: Part, near: Ints | None) -> list[str]:
        if part.topology.preferred:
            return list(self._levels_from(part.topology.preferred))
        several = len(part.cells) + len(part.parts) > 1
        packs = all(self.shape_of(cell.role_index).strategy is Strategy.PACK for cell in part.all_cells())
        return list(reversed(self.room.view.levels)) if several and packs and near is None else []

    def _contents(self, part: Part, within: Bools | None, near: Ints | None, out: Seating) -> bool:
        """The largest first; where that fails, those with the fewest nodes to choose from: one that may be on a single
        node finds it taken by another that could be anywhere."""
        items: list[Cell | Part] = [*part.cells, *part.parts]
        largest_first = sorted(items, key=self._size, reverse=True)
        if self._in_order(largest_first, within, near, out):
            return True
        narrowest_first = sorted(largest_first, key=self._choices)
        return narrowest_first != largest_first and self._in_order(narrowest_first, within, near, out)

    def _in_order(self, items: list[Cell | Part], within: Bools | None, near: Ints | None, out: Seating) -> bool:
        mark = len(out.seats)
        for item in items:
            placed = (
                self._cell(item, within, near, out) if isinstance(item, Cell) else self._place(item, within, near, out)
            )
            if not placed:
                self._undo(out, mark)
                return False
        return True

    def _in_one_domain(self, part: Part, level: str, within: Bools | None, out: Seating, then: Placing) -> bool:
        if level == NVLINK_LEVEL:
            return self._in_one_nvlink_group(part, within, out)
        domains = self.room.view.levels.get(level)
        if domains is None:
            return False
        for domain in self._able_domains(part, domains, within):
            if not self.tries.use():
                return False
            inside = domains == domain
            if then(part, inside if within is None else inside & within, None, out):
                return True
        return False

    def _able_domains(self, part: Part, domains: Ints, within: Bools | None) -> list[int]:
        """Domains that could hold every role by count, the tightest first (by the largest role), then by name."""
        inside = domains >= 0
        if within is not None:
            inside = inside & within
        if not inside.any():
            return []
        needed: dict[int, int] = {}
        for cell in part.all_cells():
            needed[cell.role_index] = needed.get(cell.role_index, 0) + len(cell.ordinals)
        numbers = domains[inside]
        able: Bools | None = None
        tightness: Ints | None = None
        for role in sorted(needed, key=lambda r: -self._replica_size(r) * needed[r]):
            fits = np.minimum(self.room.fits(self.shape_of(role))[inside], needed[role])
            sums = np.bincount(numbers, weights=fits).astype(np.int64)
            enough = sums >= needed[role]
            able = enough if able is None else able & enough
            if tightness is None:
                full = np.bincount(numbers, weights=self.room.fits(self.shape_of(role))[inside])
                tightness = full.astype(np.int64)
        assert able is not None and tightness is not None
        candidates = np.flatnonzero(able)
        if domains is self.room.view.levels[HOST_LEVEL] and len(candidates):
            shape = self.shape_of(max(needed, key=lambda r: self._replica_size(r) * needed[r]))
            order = np.lexsort((candidates, -self.room.score_at(shape, candidates), tightness[candidates]))
        else:
            order = np.argsort(tightness[candidates], kind="stable")
        return [int(d) for d in candidates[order]]

    def _in_one_nvlink_group(self, part: Part, within: Bools | None, out: Seating) -> bool:
        levels = self.room.view.levels
        for level in part.required_levels() - {NVLINK_LEVEL}:  # rules inside it: a group is in one rack if its node is
            if level not in levels:
                return False
            within = levels[level] >= 0 if within is None else within & (levels[level] >= 0)
        for node in self._able_domains(part, levels[HOST_LEVEL], within):
            groups = self.room.view.nvlink_group[node]
            for group in sorted({int(g) for g in groups if g >= 0}, key=lambda g: self._free_in(node, groups == g)):
                if not self.tries.use():
                    return False
                if self._all_in_group(part, node, groups == group, out):
                    return True
        return False

    def _free_in(self, node: int, members: Bools) -> int:
        return int(self.room.gpus[node, members].sum())

    def _all_in_group(self, part: Part, node: int, members: Bools, out: Seating) -> bool:
        """Every device of every replica from one NVLink group of one node."""
        mark = len(out.seats)
        needed = sum(self.shape_of(c.role_index).gpu_count * len(c.ordinals) for c in part.all_cells())
        present = self.room.view.gpu_model[node] >= 0
        if not self.room.view.assignable[node] and 0 < needed < int(present.sum()) and not members[present].all():
            return False  # somebody else picks the devices: only all of them are certain to be of one group
        for cell in sorted(part.all_cells(), key=self._size, reverse=True):
            shape = self.shape_of(cell.role_index)
            if int(self.room.fits(shape)[node]) < len(cell.ordinals):
                self._undo(out, mark)
                return False
            seats = self._seats(shape, cell, ([node], [len(cell.ordinals)]), members)
            if seats is None:
                self._undo(out, mark)
                return False
            self._apply(seats, 1)
            out.seats.append(seats)
        return True

    # -- cells ------------------------------------------------------------------------------------------------

    def _cell(self, cell: Cell, within: Bools | None, near: Ints | None, out: Seating) -> bool:
        seats = self._find(cell, within, near)
        if seats is None:
            return False
        self._apply(seats, 1)
        out.seats.append(seats)
        return True

    def _find(self, cell: Cell, within: Bools | None, near: Ints | None) -> Seats | None:
        shape = self.shape_of(cell.role_index)
        if shape.rules and len(cell.ordinals) > 1:
            return self._find_one_by_one(cell, within, near)
        fits = self.room.fits(shape)
        if within is not None:
            fits = np.where(within, fits, 0)
        choice = self._choose(shape, fits, len(cell.ordinals), near)
        return None if choice is None else self._seats(shape, cell, choice, None)

    def _find_one_by_one(self, cell: Cell, within: Bools | None, near: Ints | None) -> Seats | None:
        """Each that is placed changes what its rules leave for the next."""
        together = Seats(cell.role_index, self.shape_of(cell.role_index), [], [], [], [])
        for ordinal in cell.ordinals:
            one = self._find(Cell(cell.role_index, (ordinal,)), within, near)
            if one is None:
                break
            self._apply(one, 1)
            together.ordinals += one.ordinals
            together.nodes += one.nodes
            together.devices += one.devices
            together.milli += one.milli
        self._apply(together, -1)
        return together if len(together.ordinals) == len(cell.ordinals) else None

    def _choose(self, shape: Shape, fits: Ints, count: int, near: Ints | None) -> Choice | None:
        levels = self.room.view.levels
        score = partial(self.room.score_at, shape)
        narrow_first = [levels[name] for name in reversed(list(levels)) if name != HOST_LEVEL]
        if near is not None and len(near) and shape.strategy is Strategy.PACK:
            for domains in (levels[HOST_LEVEL], *narrow_first):
                close = np.isin(domains, domains[near]) & (domains >= 0)
                choice = choose_nodes(np.where(close, fits, 0), score, count, narrow_first, shape.strategy)
                if choice is not None:
                    return choice
        return choose_nodes(fits, score, count, narrow_first, shape.strategy)

    def _seats(self, shape: Shape, cell: Cell, choice: Choice, members: Bools | None) -> Seats | None:
        """Pick devices on the chosen nodes; None when they cannot be found there."""
        seats = Seats(cell.role_index, shape, list(cell.ordinals), [], [], [])
        for node, count in zip(*choice, strict=True):
            devices = self._devices(shape, node, count, members)
            if devices is None:
                return None
            seats.nodes.extend([node] * count)
            seats.devices.extend(devices)
            if shape.whole or not shape.gpu_count:
                seats.milli.extend([shape.request.gpu_milli if shape.gpu_count else 0] * count)
            else:
                share = shape.share[node]
                seats.milli.extend(int(share[chosen[0]]) for chosen in devices)
        return seats

    def _devices(self, shape: Shape, node: int, count: int, members: Bools | None) -> list[tuple[int, ...]] | None:
        if not shape.gpu_count:
            return [()] * count
        view = self.room.view
        free = self.room.gpus[node]
        share = shape.share[node] if members is None else np.where(members, shape.share[node], NO_SHARE)
        if shape.whole:
            able = free >= share
            if int(able.sum()) < count * shape.gpu_count:
                return None
            groups, numa = view.nvlink_group[node].tolist(), view.numa_node[node].tolist()
            return pick_whole(able.tolist(), groups, numa, shape.gpu_count, count)
        return pick_shares(shape, free.tolist(), share.tolist(), self.room.activity[node].tolist(), self.gap, count)

    # -- undo -------------------------------------------------------------------------------------------------

    def _apply(self, seats: Seats, sign: int) -> None:
        for node, devices, milli in zip(seats.nodes, seats.devices, seats.milli, strict=True):
            self.room.take(node, seats.shape.scalars, devices, milli, seats.shape.activity_milli, sign)

    def _undo(self, out: Seating, mark: int) -> None:
        while len(out.seats) > mark:
            self._apply(out.seats.pop(), -1)

    def _size(self, item: Cell | Part) -> int:
        if isinstance(item, Cell):
            return self._replica_size(item.role_index) * len(item.ordinals)
        return sum(self._size(cell) for cell in item.all_cells())

    def _choices(self, item: Cell | Part) -> int:
        """How many nodes its replicas may be on, by their rules."""
        cells = (item,) if isinstance(item, Cell) else item.all_cells()
        return min((int(self.shape_of(cell.role_index).allowed.sum()) for cell in cells), default=0)

    def _replica_size(self, role: int) -> int:
        shape = self.shape_of(role)
        return shape.gpu_count * 1_000_000 + shape.request.cpu_milli

    def _levels_from(self, preferred: str) -> Iterator[str]:
        """The preferred level, then each wider one."""
        names = list(self.room.view.levels)
        if preferred == NVLINK_LEVEL:
            yield preferred
            preferred = HOST_LEVEL
        if preferred in names:
            yield from reversed(names[: names.index(preferred) + 1])
