"""Count a plan as done before the body has done it, so that the next cycle builds on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimus.model.plans import Drop, Evict, Grow, Hold, Plan, Reject, Shrink, Start
from optimus.model.slots import Event

if TYPE_CHECKING:
    from optimus.state.state import State


def assume(state: State, plan: Plan, now_ms: int) -> None:
    occupancy = state.occupancy
    rows = state.workloads.row_of
    for action in plan.actions:
        row = rows.get(action.workload)
        if row is None:
            continue
        slots = state.workloads.slots[row]
        roles = state.workloads.signature(row).role_index
        if isinstance(action, Start | Grow | Hold):
            promised = isinstance(action, Hold)
            until = action.until_ms if isinstance(action, Hold) else now_ms + state.settings.hold_ms
            for placement in action.placements:
                key = (roles[placement.role], placement.ordinal)
                slot = slots.get(key)
                if slot is not None and state.slots.columns.promised[slot]:
                    occupancy.keep(slot, until)
                    continue
                occupancy.hold(
                    row,
                    *key,
                    state.nodes.row_of[placement.node],
                    placement.devices,
                    placement.gpu_milli,
                    promised=promised,
                    until_ms=until,
                )
            if isinstance(action, Grow):
                state.workloads.columns.resized[row] = now_ms
        elif isinstance(action, Shrink):
            for role, ordinal in action.slots:
                slot = slots.get((roles[role], ordinal))
                if slot is not None:
                    occupancy.move(slot, Event.STOP, now_ms)
            state.workloads.columns.resized[row] = now_ms
        elif isinstance(action, Drop):
            for role, ordinal in action.slots:
                slot = slots.get((roles[role], ordinal))
                if slot is not None:
                    occupancy.move(slot, Event.FORGET, now_ms)
        elif isinstance(action, Evict):
            if action.final:
                occupancy.end(row, now_ms)
                continue
            for slot in list(slots.values()):
                occupancy.move(slot, Event.STOP, now_ms)
            occupancy.restart(row)
        elif isinstance(action, Reject):
            state.rejected[action.workload] = action.cause.code
            occupancy.end(row, now_ms)
