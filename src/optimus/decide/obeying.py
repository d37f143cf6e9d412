"""Seats that break no rule, where the share of a device follows from its memory.

The best seats can be too much for a limit or a guarantee while seats on larger devices, where the same memory is a
smaller share, are not. So work that fits capacity and quota is not refused because of the device it would like best.
"""

from __future__ import annotations

from optimus.decide.placement.rooms import Room
from optimus.decide.placement.seating import Seating
from optimus.decide.quotas import breaks_rules
from optimus.decide.world import World
from optimus.model.gangs import Part
from optimus.model.reasons import Reason
from optimus.state.arrays import Bools, Ints


def lawful_seats(
    world: World,
    row: int,
    room: Room,
    part: Part,
    *,
    grows: bool,
    within: Bools | None = None,
    near: Ints | None = None,
    devices: Bools | None = None,
) -> Seating | Reason | None:
    """The best seats that limits and guarantee allow; else which rule the best ones break; None if there are none."""
    ask, refusal = world.ask(row), None
    for memory_mib in ask.memory_steps(room.view.index):
        seating = ask.seater(room, devices, memory_mib).seat(part, within=within, near=near)
        if seating is None:
            break
        broken = breaks_rules(world, row, seating, grows=grows)
        if broken is None:
            return seating
        refusal = refusal or broken
    return refusal
