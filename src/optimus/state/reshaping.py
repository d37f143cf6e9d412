"""A gang that changes while it has replicas: roles come and go, and those with replicas keep them.

    a role with replicas    its name, its request and its groups stay; its minimum and maximum may change
    a role without any      comes, goes and changes as it likes; others get another number by that
    a role whose replicas have not begun, or have ended well    may go, and they are forgotten with it

Why: in the tables a replica is known by the number of its role, which is a place in the description of the gang.
Owns: what may change, and the new numbers.
Must not: place or stop anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimus.model.gangs import chains, same_places
from optimus.model.slots import Event, Phase
from optimus.model.workloads import Group

if TYPE_CHECKING:
    from optimus.state.state import State


def may_become(state: State, row: int, gang: Group) -> bool:
    workloads, before = state.workloads, state.workloads.spec(row).gang
    if gang == before:
        return True
    roles, columns, staying = _role_names(state, row), state.slots.columns, _names(gang)
    held = {
        roles[role]
        for (role, _), slot in workloads.slots[row].items()
        if roles[role] in staying or (columns.phase[slot] == Phase.RUNNING and not columns.done[slot])
    }
    leaving = {roles[role] for role, _ in workloads.leaving[row]}
    return same_places(before, gang, held) and leaving <= staying


def leave_roles(state: State, row: int, gang: Group, now_ms: int) -> None:
    """Before it changes: replicas of roles that it will not have any more."""
    roles, staying = _role_names(state, row), _names(gang)
    if not staying.issuperset(roles):
        for (role, _), slot in list(state.workloads.slots[row].items()):
            if roles[role] not in staying:
                state.occupancy.move(slot, Event.GONE, now_ms)


def renumber(state: State, row: int, before: tuple[str, ...]) -> None:
    """After it has changed. `before`: the names of its roles as they were numbered."""
    index, workloads = state.workloads.signature(row).role_index, state.workloads
    if tuple(index) == before:
        return
    for table in (workloads.slots, workloads.leaving):
        table[row] = {(index[before[role]], ordinal): slot for (role, ordinal), slot in table[row].items()}
        for (role, _), slot in table[row].items():
            state.slots.columns.role[slot] = role


def _role_names(state: State, row: int) -> tuple[str, ...]:
    return tuple(state.workloads.signature(row).role_index)


def _names(gang: Group) -> set[str]:
    return {chain.role.name for chain in chains(gang)}
