"""Arranging: where the sizes that were chosen for elastic work go, with as few restarts as possible.

    smaller ....... gives up replicas where it is, those on its least used nodes first
    larger ........ more replicas beside its own; on other nodes where that takes fewer of them
    in the way .... small work of the same group is moved, so that scattered devices become whole nodes

Who finds no seats for its size gets the next smaller one for which there are. Everything is tried in a copy of the
coming room; `sizing` turns the result into actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.holdings import Place, places_of, seating_places
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seating
from optimus.decide.placement.shapes import Shape
from optimus.decide.world import World
from optimus.model.gangs import Cell, Part
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.workloads import Topology
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import GPU_COLUMN

NODES_TRIED = 8
"""Nodes that are looked at to gather devices for work smaller than a node."""
FOREVER_MS = 1 << 62


@dataclass(slots=True, eq=False)
class Member:
    """Elastic work whose size is being chosen."""

    row: int
    ask: Ask
    shape: Shape
    least: int
    now: int
    """Replicas it has: running, or started in this very plan; 0 while it waits."""
    runs: bool
    """It has to stop for a change."""
    sizes: tuple[int, ...] = ()
    """In replicas."""

    @property
    def gpus(self) -> int:
        """Of one replica."""
        return self.shape.gpu_count


@dataclass(slots=True, eq=False)
class Change:
    """What becomes of one member."""

    member: Member
    size: int
    dropped: tuple[int, ...] = ()
    """Slots that it gives up and goes on without."""
    seating: Seating | None = None
    """Seats that it gets."""
    anew: bool = False
    """All its seats are new: the old ones are given up."""


class Arranger:
    def __init__(
        self,
        world: World,
        pool: int,
        members: Sequence[Member],
        headroom: Ints,
        companions: Callable[[], list[Member]],
    ) -> None:
        """`headroom`: [queue above, resource] what limits still allow; changes with what is arranged. `companions`:
        other work of the group that has one size, and may be moved."""
        self._world = world
        self._pool = pool
        self._board = world.boards[pool]
        self._room = self._board.room_to_promise(FOREVER_MS)
        self._headroom = headroom
        self._empty = self._board.empty()
        self._hosts: dict[int, tuple[int, bool]] = {}
        self._places = {member.row: places_of(world, member.row) for member in members}
        self._members = {member.row: member for member in members}
        self._find_companions: Callable[[], list[Member]] | None = companions
        self.changes: dict[int, Change] = {}

    def idle(self, member: Member) -> int:
        """GPUs on which replicas of the member would fit beside everybody, as far as limits allow."""
        allowed = max(int(self._headroom[:, GPU_COLUMN].min()), 0) // WHOLE_DEVICE_MILLI
        return min(int(self._room.fits(member.shape).sum()) * member.gpus, allowed)

    def per_host(self, shape: Shape) -> int:
        """The most replicas of the shape that any node could take."""
        return self._host(shape)[0]

    def grain(self, shape: Shape) -> int:
        """Replicas by which sizes are counted: a node's, or one where nodes differ and no size is tidier."""
        most, uniform = self._host(shape)
        return most if uniform else 1

    def _host(self, shape: Shape) -> tuple[int, bool]:
        if shape.key not in self._hosts:
            fits = self._empty.fits(shape)
            most = int(fits.max(initial=0))
            self._hosts[shape.key] = max(most, 1), bool((fits[fits > 0] == most).all())
        return self._hosts[shape.key]

    def settle(self, targets: dict[int, int]) -> list[tuple[Member, int]]:
        """Seats for every member whose size changes. Returned are those that find none for theirs, with the largest
        size for which they do; members without a target stay as they are."""
        self._targets = targets = {row: member.now for row, member in self._members.items()} | targets
        missed = []
        members = list(self._members.values())
        for member in members:
            if member.runs and targets[member.row] < member.now:
                self._shrink(member, targets[member.row])
        gaining = [m for m in members if targets[m.row] > m.now]
        for member in sorted(gaining, key=lambda m: (-targets[m.row] * m.gpus, -m.now)):
            if member.row in self.changes:
                continue  # it was in the way, and has its seats elsewhere
            able = [k for k in sorted(member.sizes, reverse=True) if member.now < k <= targets[member.row]]
            found = next((size for size in able if self._enlarge(member, size)), member.now)
            if found != targets[member.row]:
                missed.append((member, found))
        return missed

    def _shrink(self, member: Member, size: int) -> None:
        world = self._world
        slots = world.slots_of(member.row)
        nodes = [int(world.node_index[world.slots.node[slot]]) for slot in slots]
        count = {node: nodes.count(node) for node in nodes}
        order = sorted(range(len(slots)), key=lambda i: (-count[nodes[i]], nodes[i], i))
        dropped = tuple(slots[i] for i in sorted(order[size:]))
        self._take(self._room, places_of(world, member.row, list(dropped)), -1)
        self._places[member.row] = places_of(world, member.row, [slot for slot in slots if slot not in dropped])
        self._allow(member, size - member.now)
        self.changes[member.row] = Change(member, size, dropped)

    def _enlarge(self, member: Member, size: int) -> bool:
        if not self._is_allowed(member, size):
            return False
        needed = -(-size // self.per_host(member.shape))
        best = self._beside(member, size)
        if best is None or best[0] > needed:
            anew = self._anew(member, size)
            if anew is not None and (best is None or anew[0] < best[0]):
                best = anew
        if best is not None and best[0] <= needed:
            self._commit(best[1])
        elif not self._gather(member, size, needed):
            if best is None:
                return False
            self._commit(best[1])
        self._allow(member, size - member.now)
        return True

    # -- three ways to more seats -----------------------------------------------------------------------------

    def _beside(self, member: Member, size: int) -> tuple[int, Change] | None:
        """More seats beside its own; with the number of nodes it has then."""
        if not member.now:
            return None
        own = {place.node for place in self._places[member.row]}
        near = np.array(sorted(own), dtype=np.int64)
        seating = self._seat(member, self._room, self._ordinals(member, size, stays=True), near=near)
        if seating is None:
            return None
        return len(own | seating.nodes()), Change(member, size, seating=seating)

    def _anew(self, member: Member, size: int) -> tuple[int, Change] | None:
        """All its seats together, wherever that is best."""
        own = self._places[member.row]
        self._take(self._room, own, -1)
        seating = self._seat(member, self._room, range(size))
        self._take(self._room, own, 1)
        if seating is None:
            return None
        return len(seating.nodes()), Change(member, size, seating=seating, anew=True)

    def _gather(self, member: Member, size: int, needed: int) -> bool:
        """Move small members of the group away, so that it has its seats on as few nodes as that takes."""
        movers = self._movers(member)
        if not movers:
            return False
        room = self._room.copy()
        self._take(room, self._places[member.row], -1)
        if size >= self.per_host(member.shape):
            sets = [self._whole_nodes(member, room, movers, needed)]
        else:
            sets = self._one_node(member, size, room, movers)
        return any(self._move_and_seat(member, size, *found) for found in sets if found is not None)

    def _movers(self, member: Member) -> dict[int, list[Member]]:
        """By node: members smaller than a node that are on this one alone and can have seats elsewhere, smallest
        first."""
        if self._find_companions is not None:
            for companion in self._find_companions():
                self._members[companion.row] = companion
                self._targets[companion.row] = companion.now
                self._places[companion.row] = places_of(self._world, companion.row)
            self._find_companions = None
        found: dict[int, list[Member]] = {}
        for other in self._members.values():
            nodes = {place.node for place in self._places[other.row]}
            change = self.changes.get(other.row)
            if other is member or len(nodes) != 1 or (change is not None and change.seating is not None):
                continue
            if self._targets[other.row] < self.per_host(other.shape):
                found.setdefault(nodes.pop(), []).append(other)
        for others in found.values():
            others.sort(key=lambda m: (self._devices(m), self._world.spec(m.row).id))
        return found

    def _devices(self, member: Member) -> int:
        """That it is to have."""
        return self._targets[member.row] * member.gpus

    def _whole_nodes(
        self, member: Member, room: Room, movers: dict[int, list[Member]], needed: int
    ) -> tuple[list[int], list[Member]] | None:
        """The nodes that are cleared with the least work moved."""
        most = self.per_host(member.shape)
        whole = np.flatnonzero(room.fits(member.shape) >= most).tolist()
        price = dict.fromkeys(whole, 0)
        for node, others in movers.items():
            if node in price:
                continue
            for other in others:
                self._take(room, self._places[other.row], -1)
            if int(room.fits(member.shape)[node]) >= most:
                price[node] = sum(self._devices(other) for other in others)
            for other in others:
                self._take(room, self._places[other.row], 1)
        own = {place.node for place in self._places[member.row]}
        nodes = sorted(price, key=lambda n: (price[n], n not in own, n))[:needed]
        if len(nodes) < needed:
            return None
        return nodes, [other for node in nodes if price[node] for other in movers[node]]

    def _one_node(
        self, member: Member, size: int, room: Room, movers: dict[int, list[Member]]
    ) -> list[tuple[list[int], list[Member]] | None]:
        """Nodes that lack least, each with the smaller work to move from it."""
        found: list[tuple[list[int], list[Member]] | None] = []
        fits = room.fits(member.shape).copy()
        for node in sorted(movers, key=lambda n: (-int(fits[n]), n))[:NODES_TRIED]:
            moved: list[Member] = []
            for other in movers[node]:
                if int(room.fits(member.shape)[node]) >= size:
                    break
                if self._devices(other) < size * member.gpus:
                    self._take(room, self._places[other.row], -1)
                    moved.append(other)
            if int(room.fits(member.shape)[node]) >= size:
                found.append(([node], list(moved)))
            for other in moved:
                self._take(room, self._places[other.row], 1)
        return found

    def _move_and_seat(self, member: Member, size: int, nodes: list[int], moved: list[Member]) -> bool:
        before, self._room = self._room, self._room.copy()
        own = self._places[member.row]
        for other in moved:
            self._take(self._room, self._places[other.row], -1)
        within = np.zeros(self._board.view.size, dtype=np.bool_)
        within[nodes] = True
        stays = bool(own) and {place.node for place in own} <= set(nodes)
        if not stays:
            self._take(self._room, own, -1)
        seating = self._seat(member, self._room, self._ordinals(member, size, stays=stays), within=within)
        changes: list[Change] = []
        if seating is not None:
            self._take(self._room, seating_places(seating), 1)
            changes.append(Change(member, size, seating=seating, anew=not stays))
            for other in sorted(moved, key=lambda m: -self._devices(m)):
                wanted = self._targets[other.row]
                elsewhere = self._seat(other, self._room, range(wanted)) if self._is_allowed(other, wanted) else None
                if elsewhere is None or len(elsewhere.nodes()) > 1:
                    break
                self._take(self._room, seating_places(elsewhere), 1)
                changes.append(Change(other, wanted, seating=elsewhere, anew=True))
        if len(changes) <= len(moved):
            self._room = before
            return False
        for change in changes[1:]:
            if change.member.row not in self.changes:  # else it was counted when it became smaller
                self._allow(change.member, change.size - change.member.now)
        self.changes.update((change.member.row, change) for change in changes)
        return True

    # -- inside -----------------------------------------------------------------------------------------------

    def _ordinals(self, member: Member, size: int, *, stays: bool) -> list[int]:
        """Of the seats that it needs: all, or those beyond what it has."""
        if not stays:
            return list(range(size))
        taken = self._world.present(member.row).get(0, set())
        taken = taken | self._world.blocked_ordinals(member.row).get(0, set())
        return [o for o in range(member.ask.signature.capacity[0]) if o not in taken][: size - member.now]

    def _seat(
        self,
        member: Member,
        room: Room,
        ordinals: Iterable[int],
        *,
        within: Bools | None = None,
        near: Ints | None = None,
    ) -> Seating | None:
        part = Part((), Topology(), (Cell(0, tuple(ordinals)),))
        return member.ask.seater(room).seat(part, within=within, near=near)

    def _commit(self, change: Change) -> None:
        assert change.seating is not None
        if change.anew:
            self._take(self._room, self._places[change.member.row], -1)
        self._take(self._room, seating_places(change.seating), 1)
        self.changes[change.member.row] = change

    def _is_allowed(self, member: Member, size: int) -> bool:
        extra = (size - member.now) * member.ask.replica_amount(self._pool, 0)
        return not ((extra > self._headroom) & (extra > 0)).any()

    def _allow(self, member: Member, replicas: int) -> None:
        self._headroom -= replicas * member.ask.replica_amount(self._pool, 0)

    def _take(self, room: Room, places: Iterable[Place], sign: int) -> None:
        for place in places:
            room.take(place.node, place.scalars, place.devices, place.milli, place.activity_milli, sign)
