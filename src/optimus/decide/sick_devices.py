"""Replicas on a device that has become unhealthy, and of which the body says nothing: a hung process is the usual case.

For as long as a loss may take to be replaced there is only a condition: the body may still say what became of them, or
the device may come back. Then they count as lost: the gang goes on without its surplus, has them replaced, or restarts
as a whole, as it says itself.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.world import World
from optimus.model.plans import Condition
from optimus.model.reasons import Code, counted, reason
from optimus.model.slots import Phase
from optimus.model.units import format_duration_ms, format_moment_ms
from optimus.model.workloads import OnLoss

DEVICE_UNHEALTHY = "DeviceUnhealthy"


def give_up_on_sick_devices(world: World) -> None:
    slots = world.slots
    started = np.isin(slots.view("phase"), (Phase.BINDING, Phase.RUNNING))
    sick = np.flatnonzero((slots.view("sick_since") >= 0) & started)
    rows, silent = {int(row) for row in slots.workload[sick]}, set(sick.tolist())
    for row in sorted(rows, key=world.table.names.__getitem__):
        mine = [slot for slot in world.slots_of(row) if slot in silent]
        draft = world.drafts.get(row)
        if not mine or not world.columns.alive[row] or (draft is not None and draft.evicted):
            continue
        grace = world.spec(row).loss_grace_ms
        lost = [slot for slot in mine if world.now_ms - int(slots.sick_since[slot]) >= grace]
        if lost:
            _lose(world, row, lost, grace)
        else:
            _warn(world, row, mine, grace)


def _lose(world: World, row: int, lost: list[int], grace: int) -> None:
    replicas = counted(len(lost), "replica")
    where = ", ".join(dict.fromkeys(_where(world, slot) for slot in lost))
    cause = reason(Code.DEVICE_FAILED, replicas=replicas, where=where, grace=format_duration_ms(grace))
    left: dict[int, set[int]] = {}
    for slot in world.slots_of(row):
        if slot not in lost and not world.slots.promised[slot]:
            left.setdefault(int(world.slots.role[slot]), set()).add(int(world.slots.ordinal[slot]))
    may_be_replaced = world.spec(row).on_loss is OnLoss.REPLACE and grace > 0
    if left and (may_be_replaced or world.signature(row).is_whole(left)):
        world.shrink(row, lost, cause)
    else:
        world.evict(row, cause)


def _warn(world: World, row: int, slots: list[int], grace: int) -> None:
    chains = world.signature(row).chains
    names = [f"{chains[int(world.slots.role[s])].role.name}-{int(world.slots.ordinal[s])}" for s in slots]
    told = [f"replica {name} is on {_where(world, slot)}" for name, slot in zip(names, slots, strict=True)]
    at_ms = min(int(world.slots.sick_since[slot]) for slot in slots) + grace
    message = (
        f"{', '.join(told)}, which is unhealthy; it counts as lost from {format_moment_ms(at_ms, world.now_ms)} on"
    )
    world.conditions.append(Condition(f"workload {world.spec(row).id}", DEVICE_UNHEALTHY, message))


def _where(world: World, slot: int) -> str:
    """`device 2 of node n-0`: those of its devices that are unhealthy."""
    view = world.boards[world.pool_of_slot(slot)].view
    node = view.nodes[int(world.node_index[world.slots.node[slot]])]
    sick = [str(d.index) for d in node.devices if not d.healthy and d.index in world.snapshot.slots.devices[slot]]
    return f"{'device' if len(sick) == 1 else 'devices'} {', '.join(sick)} of node {node.name}"
