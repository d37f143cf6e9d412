"""Matching: who gains most from the faster devices has them.

    moving up    running work goes where idle devices are faster for it
    changing     work on slow devices and work on fast ones change places, where the first gains more than the others lose

Why: work starts where there is room, which says nothing about where it runs well, and what starts on slow devices would
stay there for as long as it takes. Fast devices are worth most to whoever is slowed down most elsewhere: that is a
property of the work, known from the speeds it declares, and holds whatever is known of its run time.
Owns: moves between device models of one pool, of work that can continue from a checkpoint and has sat long enough to pay
for its restart.
Must not: touch what waits, or take anything from a queue: everybody keeps as many devices.

No livelock: every move raises the product of the speeds of running work, by a tenth at least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimus.decide.taking import Taker
from optimus.decide.world import World
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.reasons import Code, reason
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import GPU_COLUMN

FASTER_PERCENT = 110
"""A move to idle devices has to be worth this much of the present speed."""
GAINS_MORE_PERCENT = 125
"""Of two that could change places, one must gain this much of what the other loses."""
PAYBACK = 4
"""Time gained since it sits there, had it sat on the faster devices, against the cost of a restart."""


@dataclass(slots=True)
class Mover:
    row: int
    gpus: int
    speed: list[int]
    """By model, in percent; 0: not there."""
    model: int
    """-1: on several."""
    now: int
    """Its speed: that of its slowest device."""
    sat_ms: int

    def gain(self, model: int) -> float:
        return self.speed[model] / self.now


class Matcher:
    def __init__(self, world: World, taker: Taker) -> None:
        self.world = world
        self.taker = taker

    def run(self) -> None:
        for pool in range(len(self.world.boards)):
            models = self._models(pool)
            if len(models) > 1:
                self._match(pool, models)

    def _models(self, pool: int) -> list[Bools]:
        """Nodes of each device model."""
        of_node = self.world.boards[pool].view.gpu_model
        if not of_node.shape[1]:
            return []
        first = of_node[:, 0]
        return [first == model for model in np.unique(first[first >= 0]).tolist()]

    def _match(self, pool: int, models: list[Bools]) -> None:
        movers = self._movers(pool, models)
        if not movers:
            return
        free = self.world.boards[pool].starting.gpus
        idle = [int((free[nodes] >= WHOLE_DEVICE_MILLI).sum()) for nodes in models]
        movers = self._move_up(pool, models, movers, idle)
        self._change(pool, models, movers, idle)

    def _movers(self, pool: int, models: list[Bools]) -> list[Mover]:
        world, found = self.world, []
        for unit in self.taker.movable(pool):
            ask = world.ask(unit.row)
            shape = ask.plain_shape(pool)
            if shape is None or not shape.whole or not shape.request.models:
                continue
            speed = [int(shape.speed_percent[nodes & shape.allowed].max(initial=0)) for nodes in models]
            nodes = [place.node for place in unit.places]
            here = [m for m, mask in enumerate(models) if mask[nodes].any()]
            now = int(shape.speed_percent[nodes].min())
            if max(speed) * 100 < now * FASTER_PERCENT and len(set(speed)) == 1:
                continue
            sat_ms = world.now_ms - int(world.columns.started[unit.row])
            gpus = int(unit.amount[GPU_COLUMN]) // WHOLE_DEVICE_MILLI
            found.append(Mover(unit.row, gpus, speed, here[0] if len(here) == 1 else -1, max(now, 1), sat_ms))
        return found

    def _pays(self, mover: Mover, model: int) -> bool:
        """Whether the time it would have gained while it sat here pays for the restart."""
        cost = self.world.spec(mover.row).restart_cost_ms * PAYBACK
        return mover.sat_ms * (mover.speed[model] - mover.now) >= cost * mover.speed[model]

    def _move_up(self, pool: int, models: list[Bools], movers: list[Mover], idle: list[int]) -> list[Mover]:
        stay = []
        for mover in sorted(movers, key=lambda m: (-max(m.speed) / m.now, m.row)):
            for model in sorted(range(len(models)), key=lambda k: (-mover.speed[k], k)):
                faster = mover.speed[model] * 100 >= mover.now * FASTER_PERCENT
                if faster and idle[model] >= mover.gpus and self._pays(mover, model):
                    if self._move(pool, [(mover, models[model])]):
                        idle[model] -= mover.gpus
                        break
            else:
                stay.append(mover)
        return stay

    def _change(self, pool: int, models: list[Bools], movers: list[Mover], idle: list[int]) -> None:
        order = sorted(range(len(models)), key=lambda k: -sum(m.speed[k] for m in movers))
        gone: set[int] = set()
        for a, fast in enumerate(order):
            for slow in reversed(order[a + 1 :]):
                self._change_between(pool, models, movers, idle, fast, slow, gone)

    def _change_between(
        self, pool: int, models: list[Bools], movers: list[Mover], idle: list[int], fast: int, slow: int, gone: set[int]
    ) -> None:
        def gain(mover: Mover) -> float:
            return mover.speed[fast] / max(mover.speed[slow], 1)

        up = [m for m in movers if m.model == slow and m.row not in gone and m.speed[fast] > m.speed[slow]]
        down = [m for m in movers if m.model == fast and m.row not in gone and m.speed[slow] > 0]
        up.sort(key=lambda m: (-gain(m), m.row))
        down.sort(key=lambda m: (gain(m), m.row))
        for mover in up:
            if mover.row in gone or not self._pays(mover, fast):
                continue
            worse = [m for m in down if m.row not in gone and gain(mover) * 100 >= gain(m) * GAINS_MORE_PERCENT]
            out: list[Mover] = []
            freed = idle[fast]
            for other in worse:
                if freed >= mover.gpus:
                    break
                cost = self.world.spec(other.row).restart_cost_ms * PAYBACK
                if other.sat_ms >= cost and sum(m.gpus for m in out) + other.gpus <= mover.gpus + idle[slow]:
                    out.append(other)
                    freed += other.gpus
            if out and freed >= mover.gpus:
                if self._move(pool, [(mover, models[fast]), *((m, models[slow]) for m in out)]):
                    gone |= {mover.row, *(m.row for m in out)}
                    idle[fast] += sum(m.gpus for m in out) - mover.gpus
                    idle[slow] += mover.gpus - sum(m.gpus for m in out)

    def _move(self, pool: int, moves: list[tuple[Mover, Bools]]) -> bool:
        world = self.world
        board = world.boards[pool]
        ids = [world.spec(mover.row).id for mover, _ in moves]
        for mover, _ in moves:
            cause = reason(Code.MOVED, beneficiary=ids[0])
            world.evict(mover.row, cause, beneficiary=ids[0], if_not_moved=cause)
        grace = max(world.spec(mover.row).grace_ms for mover, _ in moves)
        for mover, nodes in sorted(moves, key=lambda move: -move[0].gpus):
            ask = world.ask(mover.row)
            seating = ask.seater(board.promising).seat(ask.minimum, within=nodes)
            assert seating is not None
            world.promise(mover.row, seating, world.now_ms + grace + world.settings.hold_ms, ids)
        return True
