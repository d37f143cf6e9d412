"""What a signature asks for, worked out once per layout: shapes by pool, amounts, and whether it could ever run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seater, Seating, Tries
from optimus.decide.placement.shapes import NO_SHARE, Shape
from optimus.model import gangs
from optimus.model.gangs import Part
from optimus.model.pools import NVLINK_LEVEL
from optimus.model.workloads import ANY_POOL
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import GPU_COLUMN
from optimus.state.workload_table import Signature

if TYPE_CHECKING:
    from optimus.decide.world import World

FEASIBILITY_TRIES = 64


class Known:
    """What stays true of a signature until nodes, pools or tables change. Keys are pools, of shapes pools and roles."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.minimum: Part = gangs.minimum(signature.workload.gang)
        self.shapes: dict[tuple[int, int], Shape] = {}
        self.least: dict[int, Ints] = {}
        self.most: dict[int, Ints] = {}
        self.possible: dict[int, bool] = {}
        self.speed: dict[int, int] = {}
        self.rather: dict[int, Bools | None] = {}
        self.evenly: dict[int, tuple[Bools | None, ...]] = {}
        self.pools: tuple[list[int], str] | None = None


class Ask:
    def __init__(self, world: World, signature: Signature) -> None:
        self.world = world
        self.signature = signature
        self.workload = signature.workload
        # `Known` holds on to the signature, so its id is not given away
        known = world.snapshot.worked_out.once(("ask", id(signature)), lambda: Known(signature))
        self._known = known
        self.minimum = known.minimum
        if known.pools is None:
            known.pools = self._resolve_pools()
        self.pools, self.unknown_pool = known.pools
        self.any_pool = ANY_POOL in signature.workload.pools
        """The choice among pools is ours."""

    def shape(self, pool: int, role: int) -> Shape:
        shapes = self._known.shapes
        found = shapes.get((pool, role))
        if found is None:
            found = shapes[(pool, role)] = self.world.shape(self.workload, self.signature.chains[role].role, pool)
        return found

    def plain_shape(self, pool: int) -> Shape | None:
        """The shape of its replicas where they are all alike and free to go anywhere in the pool."""
        part = self.minimum
        if len(part.cells) != 1 or part.parts or part.topology.required:
            return None
        shape = self.shape(pool, part.cells[0].role_index)
        return None if shape.rules else shape

    def shapes_in(self, pool: int) -> Callable[[int], Shape]:
        return partial(self.shape, pool)

    def replica_amount(self, pool: int, role: int) -> Ints:
        """By resource, GPU first. Shares that follow from memory count as on the device where they are smallest."""
        shape = self.shape(pool, role)
        amount = np.zeros(len(shape.scalars) + 1, dtype=np.int64)
        amount[1:] = shape.scalars
        if shape.gpu_count:
            share = int(shape.share.min(initial=NO_SHARE))
            amount[GPU_COLUMN] = shape.gpu_count * (share if share < NO_SHARE else shape.request.gpu_milli)
        return amount

    def least_amount(self, pool: int) -> Ints:
        """Of the minimum gang."""
        least = self._known.least
        if pool not in least:
            least[pool] = self._amount(pool, {r: len(o) for r, o in self.signature.minimum.items()})
        return least[pool]

    def most_amount(self, pool: int) -> Ints:
        """Of the gang at its largest."""
        most = self._known.most
        if pool not in most:
            most[pool] = self._amount(pool, dict(enumerate(gangs.maximum_replicas(self.workload.gang))))
        return most[pool]

    def _amount(self, pool: int, counts: dict[int, int]) -> Ints:
        total = np.zeros(self.world.snapshot.resources.count, dtype=np.int64)
        for role, count in counts.items():
            total += count * self.replica_amount(pool, role)
        total.flags.writeable = False
        return total

    def possible(self, pool: int) -> bool:
        """Whether the minimum fits into the pool when it is empty."""
        possible = self._known.possible
        if pool not in possible:
            possible[pool] = self._fits_empty(pool)
        return possible[pool]

    def _fits_empty(self, pool: int) -> bool:
        empty, part = self.world.boards[pool].empty(), self.minimum
        if len(part.cells) == 1 and not part.parts and not part.topology.required:
            cell = part.cells[0]
            return int(empty.fits(self.shape(pool, cell.role_index)).sum()) >= len(cell.ordinals)
        if any(level not in (NVLINK_LEVEL, *empty.view.levels) for level in part.required_levels()):
            return False
        seater = Seater(empty, self.shapes_in(pool), self.world.gap, Tries(FEASIBILITY_TRIES))
        return seater.seat(part) is not None

    def evenly(self, pool: int) -> tuple[Bools | None, ...]:
        """Nodes on which all replicas are equally fast, the fastest first: a gang is as slow as its slowest replica, so
        what it has of faster devices would be wasted. One answer of None: it makes no difference, or cannot be had."""
        known = self._known.evenly
        if pool not in known:
            known[pool] = self._find_evenly(pool) or (None,)
        return known[pool]

    def _find_evenly(self, pool: int) -> tuple[Bools, ...]:
        shape, part = self.plain_shape(pool), self.minimum
        if shape is None or len(shape.request.models) < 2 or part.replicas() < 2:
            return ()
        fits = self.world.boards[pool].empty().fits(shape)
        speeds = np.unique(shape.speed_percent[shape.allowed])[::-1]
        if len(speeds) < 2:
            return ()
        equal = [shape.allowed & (shape.speed_percent == speed) for speed in speeds.tolist()]
        return tuple(nodes for nodes in equal if int(fits[nodes].sum()) >= part.replicas())

    def home(self) -> int | None:
        """The first listed pool in which it could run."""
        return next((pool for pool in self.pools if self.possible(pool)), None)

    def seater(self, room: Room, devices: Bools | None = None, memory_mib: int = 0) -> Seater:
        """`devices`: [node, device] the only ones that may be used. `memory_mib`: the least that a device must have
        where the share of it follows from its memory."""
        pool = room.view.index
        shapes = self.shapes_in(pool)
        if devices is not None or memory_mib:
            shapes = partial(self._restricted, pool, devices, memory_mib, {})
        return Seater(room, shapes, self.world.gap, self.world.tries, self._rather(pool))

    def _rather(self, pool: int) -> Bools | None:
        """[node] without those that it avoids; None if there are none of them."""
        known = self._known.rather
        if pool not in known:
            mask = np.array([node.name not in self.workload.avoids for node in self.world.boards[pool].view.nodes])
            known[pool] = None if not self.workload.avoids or mask.all() else mask
        return known[pool]

    def is_last_resort(self, seating: Seating) -> bool:
        """Whether some of it is on nodes that it avoids."""
        rather = self._rather(seating.pool)
        return rather is not None and not all(rather[node] for node in seating.nodes())

    def memory_steps(self, pool: int) -> list[int]:
        """What to ask of devices, step by step, to be given smaller shares of them: 0, then each size of memory in the
        pool above the least."""
        if not any(chain.role.request.gpu_memory_mib for chain in self.signature.chains):
            return [0]
        view = self.world.boards[pool].view
        return [0, *np.unique(view.gpu_memory[view.gpu_model >= 0])[1:].tolist()]

    def _restricted(
        self, pool: int, devices: Bools | None, memory_mib: int, made: dict[int, Shape], role: int
    ) -> Shape:
        if role not in made:
            shape = self.shape(pool, role)
            share = shape.share if devices is None else np.where(devices, shape.share, NO_SHARE)
            if shape.request.gpu_memory_mib:
                large = self.world.boards[pool].view.gpu_memory >= memory_mib
                share = np.where(large, share, NO_SHARE)
            made[role] = replace(shape, share=share, key=self.world.next_shape_key())
        return made[role]

    def _resolve_pools(self) -> tuple[list[int], str]:
        """Numbers of the listed pools in order; and a name that is not a pool."""
        names = {board.view.pool.name: board.view.index for board in self.world.boards}
        chosen: list[int] = []
        unknown = ""
        for name in self.workload.pools:
            if name == ANY_POOL:
                everything = [p for p in names.values() if p not in chosen]
                everything.sort(key=lambda p: (-self.speed_percent(p), p))
                chosen.extend(everything)
            elif name in names:
                if names[name] not in chosen:
                    chosen.append(names[name])
            else:
                unknown = unknown or name
        return chosen, unknown

    def speed_percent(self, pool: int) -> int:
        """Of the slowest role on the best device for it in the pool."""
        speed = self._known.speed
        if pool not in speed:
            roles = range(len(self.signature.chains))
            speed[pool] = min((int(self.shape(pool, r).speed_percent.max(initial=0)) for r in roles), default=0)
        return speed[pool]
