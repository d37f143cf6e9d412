"""Count a plan as done before the body has done it, so that the next cycle builds on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimus.model.plans import Action, Drop, Evict, Grow, Hold, Plan, Reject, Shrink, Start
from optimus.model.slots import Event

if TYPE_CHECKING:
    from optimus.state.state import State


def assume(state: State, plan: Plan, now_ms: int) -> None:
    for action in plan.actions:
        row = state.workloads.row_of.get(action.workload)
        if row is not None:
            _assume_one(state, row, action, now_ms)


def _assume_one(state: State, row: int, action: Action, now_ms: int) -> None:
    occupancy = state.occupancy
    match action:
        case Start() | Grow() | Hold():
            _place(state, row, action, now_ms)
        case Shrink():
            _stop(state, row, action.slots, Event.STOP, now_ms)
            _note_resize(state, row, now_ms)
        case Drop():
            _stop(state, row, action.slots, Event.FORGET, now_ms)
            if state.workloads.slots[row]:
                state.workloads.columns.resized[row] = now_ms
        case Evict(final=True):
            occupancy.end(row, now_ms)
        case Evict():
            for slot in list(state.workloads.slots[row].values()):
                occupancy.move(slot, Event.STOP, now_ms)
            occupancy.restart(row)
        case Reject():
            state.rejected[action.workload] = action.cause.code
            occupancy.end(row, now_ms)


def _place(state: State, row: int, action: Start | Grow | Hold, now_ms: int) -> None:
    roles = state.workloads.signature(row).role_index
    slots = state.workloads.slots[row]
    promised = isinstance(action, Hold)
    until = action.until_ms if isinstance(action, Hold) else now_ms + state.settings.hold_ms
    for placement in action.placements:
        key = (roles[placement.role], placement.ordinal)
        slot = slots.get(key)
        if slot is not None and state.slots.columns.promised[slot]:
            state.occupancy.keep(slot, until)
            continue
        node = state.nodes.row_of[placement.node]
        state.occupancy.hold(row, *key, node, placement.devices, placement.gpu_milli, promised=promised, until_ms=until)
    if isinstance(action, Grow):
        _note_resize(state, row, now_ms)


def _note_resize(state: State, row: int, now_ms: int) -> None:
    columns = state.workloads.columns
    columns.resizes[row] += columns.started[row] >= 0
    columns.resized[row] = now_ms


def _stop(state: State, row: int, replicas: tuple[tuple[str, int], ...], event: Event, now_ms: int) -> None:
    roles = state.workloads.signature(row).role_index
    for role, ordinal in replicas:
        slot = state.workloads.slots[row].get((roles[role], ordinal))
        if slot is not None:
            state.occupancy.move(slot, event, now_ms)
