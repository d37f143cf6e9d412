"""Matching: who gains most from the faster devices has them.

    moving up         running work goes where idle devices are faster for it
    changing places   work on slow devices and work on fast ones, where the first gains more than the others lose

Why: work starts where there is room, which says nothing about where it runs well, and what starts on slow devices would
stay there to its end. Fast devices are worth most to whoever is slowed down most elsewhere: a property of the work,
known from the speeds it declares, whatever is known of its run time.
Owns: moves between device models inside a pool, of work that can continue from a checkpoint and has sat long enough to
pay for its restart. The setting `consolidation` turns them off.
Must not: touch what waits, what is reserved, or who holds how much: everybody keeps as many devices.

No livelock: every move raises the product of the speeds of running work by a tenth at least, and it is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimus.decide.boards import Board
from optimus.decide.durations import end_ms
from optimus.decide.holdings import Place, seating_places
from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seating
from optimus.decide.taking import Taker
from optimus.decide.turns import RATIO
from optimus.decide.world import World
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.reasons import Code, reason
from optimus.model.slots import Phase
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import GPU_COLUMN

FASTER_PERCENT = 110
"""A move to idle devices has to be worth this much of the present speed."""
GAINS_MORE_PERCENT = 125
"""Of two that could change places, one must gain this much of what the other loses."""
PAYBACK = 4
"""Restarts that must be paid for by what it would have gained, had it sat on the faster devices from the start."""


@dataclass(slots=True)
class Mover:
    row: int
    gpus: int
    places: list[Place]
    speed: list[int]
    """By model, in percent; 0: it cannot run there."""
    model: int
    """-1: it sits on several."""
    now: int
    """Its speed: that of its slowest device."""
    sat_ms: int

    def gain(self, fast: int, slow: int) -> int:
        """How many times as fast, in parts of RATIO."""
        return self.speed[fast] * RATIO // max(self.speed[slow], 1)


Move = tuple[Mover, int]
"""And the model it goes to."""


class Matcher:
    def __init__(self, world: World, taker: Taker) -> None:
        self._world = world
        self._taker = taker
        self._models = [_nodes_by_model(board.view.gpu_model) for board in world.boards]

    def run(self) -> None:
        if not self._world.settings.consolidation:
            return
        for pool, models in enumerate(self._models):
            if len(models) > 1:
                while self._match(pool):
                    pass

    def _match(self, pool: int) -> bool:
        """Whether anybody was moved."""
        movers = self._movers(pool)
        free = self._world.boards[pool].starting.gpus
        idle = [int((free[nodes] >= WHOLE_DEVICE_MILLI).sum()) for nodes in self._models[pool]]
        moved = {mover.row for mover in movers if self._moves_up(pool, mover, idle)}
        movers = [mover for mover in movers if mover.row not in moved]
        by_speed = sorted(range(len(idle)), key=lambda model: (-sum(mover.speed[model] for mover in movers), model))
        for at, fast in enumerate(by_speed):
            for slow in reversed(by_speed[at + 1 :]):
                moved |= self._change_places(pool, movers, moved, idle, fast, slow)
        return bool(moved)

    def _movers(self, pool: int) -> list[Mover]:
        """Work that could be faster somewhere, who gains most first."""
        world, models, found = self._world, self._models[pool], []
        for unit in self._taker.movable(pool):
            shape = world.ask(unit.row).plain_shape(pool)
            if shape is None or not shape.whole or len(shape.request.models) < 2:
                continue
            if any(world.slots.phase[slot] != Phase.RUNNING for slot in world.slots_of(unit.row)):
                continue  # a part of it has not even begun where it is
            nodes = [place.node for place in unit.places]
            speed = [int(shape.speed_percent[mask & shape.allowed].max(initial=0)) for mask in models]
            here = [model for model, mask in enumerate(models) if mask[nodes].any()]
            now = max(int(shape.speed_percent[nodes].min()), 1)
            sat_ms = world.now_ms - int(world.columns.started[unit.row])
            gpus = int(unit.amount[GPU_COLUMN]) // WHOLE_DEVICE_MILLI
            model = here[0] if len(here) == 1 else -1
            found.append(Mover(unit.row, gpus, unit.places, speed, model, now, sat_ms))
        return sorted(found, key=lambda mover: (-(max(mover.speed) * RATIO // mover.now), world.spec(mover.row).id))

    def _moves_up(self, pool: int, mover: Mover, idle: list[int]) -> bool:
        for model in sorted(range(len(idle)), key=lambda model: (-mover.speed[model], model)):
            if mover.speed[model] * 100 < mover.now * FASTER_PERCENT or not self._pays(mover, model):
                return False  # nor is any of the slower ones
            if idle[model] >= mover.gpus and self._move(pool, [(mover, model)]):
                idle[model] -= mover.gpus
                return True
        return False

    def _pays(self, mover: Mover, model: int) -> bool:
        cost = PAYBACK * self._world.spec(mover.row).restart_cost_ms
        return mover.sat_ms * (mover.speed[model] - mover.now) >= cost * mover.speed[model]

    def _change_places(
        self, pool: int, movers: list[Mover], moved: set[int], idle: list[int], fast: int, slow: int
    ) -> set[int]:
        """One that goes up, and as many as it needs that go down in its stead. Those who have moved."""
        up = [m for m in movers if m.model == slow and m.row not in moved and m.speed[fast] > m.speed[slow]]
        down = [m for m in movers if m.model == fast and m.row not in moved and m.speed[slow]]
        up.sort(key=lambda m: -m.gain(fast, slow))
        down.sort(key=lambda m: m.gain(fast, slow))
        gone: set[int] = set()
        for mover in up:
            if not self._pays(mover, fast):
                continue
            bound = mover.gain(fast, slow) * 100 // GAINS_MORE_PERCENT
            others = [m for m in down if m.row not in gone and m.gain(fast, slow) <= bound]
            out = self._make_way(others, mover.gpus - idle[fast], mover.gpus + idle[slow])
            if out and self._move(pool, [(mover, fast), *((other, slow) for other in out)]):
                gone |= {mover.row, *(other.row for other in out)}
                change = sum(other.gpus for other in out) - mover.gpus
                idle[fast] += change
                idle[slow] -= change
        return gone

    def _make_way(self, others: list[Mover], need: int, room: int) -> list[Mover]:
        """Those who lose least, so that `need` devices come free and no more than `room` are taken elsewhere."""
        out: list[Mover] = []
        for other in others:
            if need <= 0:
                break
            rested = other.sat_ms >= PAYBACK * self._world.spec(other.row).restart_cost_ms
            if rested and other.gpus <= room:
                out.append(other)
                need, room = need - other.gpus, room - other.gpus
        return out if need <= 0 else []

    def _move(self, pool: int, moves: list[Move]) -> bool:
        """All of them or nobody."""
        world, first = self._world, moves[0][0]
        seatings = self._seats(pool, moves)
        if seatings is None:
            return False
        names = [world.spec(mover.row).id for mover, _ in moves]
        for mover, model in moves:
            cause = reason(Code.GAVE_FASTER, beneficiary=names[0])
            if mover is first:
                cause = reason(Code.FASTER_DEVICES, gain=f"{mover.speed[model] / mover.now:.1f}")
            world.evict(mover.row, cause, beneficiary=names[0], if_not_moved=cause)
        until = world.now_ms + max(world.spec(mover.row).grace_ms for mover, _ in moves) + world.settings.hold_ms
        for (mover, _), seating in zip(moves, seatings, strict=True):
            world.promise(mover.row, seating, until, names)
        return True

    def _seats(self, pool: int, moves: list[Move]) -> list[Seating] | None:
        """Seats for all, once they have left theirs: each other's, which is nobody else's concern; else idle ones."""
        board = self._world.boards[pool]
        theirs = board.starting.copy()
        theirs.gpus[:] = 0
        found = self._seats_in(theirs, moves) if len(moves) > 1 else None
        if found is None:
            found = self._seats_in(self._idle_room(board, moves).copy(), moves)
        return found

    def _idle_room(self, board: Board, moves: list[Move]) -> Room:
        """Beside reservations, unless the devices that are given back would do for them as well."""
        world, pool = self._world, board.view.index
        end = max(end_ms(world, mover.row) for mover, _ in moves)
        given = sorted({place.node for mover, _ in moves for place in mover.places})
        for shadow in board.outlasted(end):
            shape = world.ask(shadow.row).plain_shape(pool)
            if shape is None or not shape.allowed[given].all():
                return board.starting_beside(end)
        return board.starting

    def _seats_in(self, room: Room, moves: list[Move]) -> list[Seating] | None:
        for mover, _ in moves:
            for place in mover.places:
                room.take(place.node, place.scalars, place.devices, place.milli, place.activity_milli, -1)
        found: dict[int, Seating] = {}
        for mover, model in sorted(moves, key=lambda move: -move[0].gpus):
            ask = self._world.ask(mover.row)
            shape = ask.plain_shape(room.view.index)
            if shape is None:
                return None
            fast_enough = shape.speed_percent >= mover.speed[model]  # nodes with several models are not all alike
            seating = ask.seater(room).seat(ask.minimum, within=self._models[room.view.index][model] & fast_enough)
            if seating is None:
                return None
            for place in seating_places(seating):
                room.take(place.node, place.scalars, place.devices, place.milli, place.activity_milli, 1)
            found[mover.row] = seating
        return [found[mover.row] for mover, _ in moves]


def _nodes_by_model(gpu_model: Ints) -> list[Bools]:
    """Nodes of each device model; of the first device, where a node has several."""
    first = gpu_model[:, 0] if gpu_model.shape[1] else np.full(len(gpu_model), -1)
    return [first == model for model in np.unique(first[first >= 0]).tolist()]
