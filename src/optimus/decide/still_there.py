"""Still there: who is leaving is a neighbour until they have left.

Why: room for somebody is looked for as if those who leave were gone; a start at once has to do with those who are not.
Near is kept by them as well; apart and spread may be broken by each of them in the domain of a seat.
Owns: whether a start has to wait for them, where amounts alone would let it begin.
Must not: choose places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from optimus.decide.placement.neighbours import Rule
from optimus.decide.placement.seating import Seating
from optimus.decide.world import World
from optimus.model.rules import Bond
from optimus.model.slots import Phase


def blocks(world: World, seating: Seating) -> bool:
    """Whether somebody who is leaving stands against a rule about neighbours on these seats."""
    return any(breaks(world, seats.shape.rules, seating.pool, seats.nodes) for seats in seating.seats)


def breaks(world: World, rules: Sequence[Rule], pool: int, nodes: Collection[int]) -> bool:
    strict = [rule for rule in rules if rule.rule.bond is not Bond.NEAR]
    if not strict:
        return False
    mine = [{int(rule.domain[pool][node]) for node in nodes} - {-1} for rule in strict]
    for slot in _leaving(world):
        row = int(world.slots.node[slot])
        where, index = int(world.snapshot.node_pool[row]), int(world.node_index[row])
        if where < 0:
            continue
        for rule, domains in zip(strict, mine, strict=True):
            if world.slots.amount[slot][rule.column + 1] and int(rule.domain[where][index]) in domains:
                return True
    return False


def _leaving(world: World) -> Iterator[int]:
    """Slots of those who run and have been told to go, by an earlier plan or by this one."""
    yield from np.flatnonzero(world.slots.view("phase") == Phase.RELEASING).tolist()
    for draft in world.drafts.values():
        for slot in draft.removed:
            if int(world.slots.phase[slot]) in (Phase.BINDING, Phase.RUNNING):
                yield slot
