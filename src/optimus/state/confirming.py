"""Where replicas really are: what the body says, laid over what was planned.

The plan is a proposal. Somebody else may have picked the node or the devices, or started a replica that was never
placed; from here on what is true counts. Counting itself is `occupancy`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimus.model.observations import SlotRunning
from optimus.model.problems import Problem
from optimus.model.slots import Event, Phase
from optimus.model.units import LARGEST
from optimus.model.workloads import Request, share_milli

if TYPE_CHECKING:
    from optimus.state.state import State


def confirm(state: State, observation: SlotRunning, slot: int | None, now_ms: int) -> list[Problem]:
    """A replica runs: at its place, at another one (somebody else chose), or without ever having been placed."""
    row = state.workloads.row_of.get(observation.workload)
    subject = f"workload {observation.workload}"
    if row is None:
        return [Problem(subject, "", "a replica runs, but the workload is unknown")]
    role = state.workloads.signature(row).role_index.get(observation.role)
    if role is None:
        return [Problem(subject, "", f"a replica of the unknown role {observation.role} runs")]
    if not 0 <= observation.ordinal <= LARGEST:
        return [Problem(subject, "", f"a replica with the number {observation.ordinal} runs; at most {LARGEST}")]
    devices = observation.devices
    if slot is not None and state.slots.columns.done[slot]:
        return []  # a late word
    if slot is not None:
        there = int(state.slots.columns.node[slot])
        node = state.nodes.row_of.get(observation.node, there) if observation.node else there
        if node == there and devices and _only_counts(state, node):
            _learn_devices(state, slot, devices)
        elif node != there or (devices and devices != state.slots.devices[slot]):
            phase = Phase(int(state.slots.columns.phase[slot]))
            state.occupancy.drop(slot)
            slot = _adopt(state, row, role, observation.ordinal, node, devices, phase)
        elif state.slots.columns.promised[slot]:
            state.occupancy.keep(slot, -1)
    else:
        node_row = state.nodes.row_of.get(observation.node)
        if node_row is None:
            return [Problem(subject, "", f"a replica runs on the unknown node {observation.node!r}")]
        slot = _adopt(state, row, role, observation.ordinal, node_row, devices, Phase.HELD)
        if state.workloads.columns.lost_since[row] < 0 and state.occupancy.is_short(row):
            state.workloads.columns.lost_since[row] = now_ms  # until the others are seen as well
    since = now_ms if observation.since_ms is None else min(observation.since_ms, now_ms)
    if since < now_ms and not state.workloads.columns.running[row]:
        state.workloads.count_service(row, since)
        state.workloads.columns.counted_at[row] = since
    if devices:
        state.slots.columns.known[slot] = 1
    state.occupancy.move(slot, Event.CONFIRM, since)
    return []


def _only_counts(state: State, node: int) -> bool:
    found = state.nodes.nodes[node]
    return found is not None and not found.assignable


def _learn_devices(state: State, slot: int, devices: tuple[int, ...]) -> None:
    """Somebody else picked the devices. Whoever was only booked on them gets those that are given up instead."""
    slots = state.slots
    given_up = [d for d in slots.devices[slot] if d not in devices]
    taken = {d for d in devices if d not in slots.devices[slot]}
    on_node = np.flatnonzero(slots.columns.view("node") == slots.columns.node[slot]).tolist()
    for other in on_node:
        clash = taken.intersection(slots.devices[other])
        if other == slot or not clash or slots.columns.known[other]:
            continue
        booked = list(slots.devices[other])
        for device in sorted(clash):
            if given_up:
                booked[booked.index(device)] = given_up.pop(0)
                taken.discard(device)
        state.occupancy.rebook(other, tuple(sorted(booked)))
    state.occupancy.rebook(slot, devices)


def rebook_unknown(state: State, node: int) -> None:
    """A node whose devices are only counted has changed: whoever is booked on a device that is not there any more,
    and may in truth be on another, is booked on one that looks free."""
    slots, nodes = state.slots, state.nodes.columns
    capacity, free = nodes.capacity_gpus[node], nodes.now_gpus[node]
    for slot in np.flatnonzero(slots.columns.view("node") == node).tolist():
        milli, own = int(slots.columns.milli[slot]), slots.devices[slot]
        lost = [d for d in own if capacity[d] <= 0]
        spare = [d for d in range(len(capacity)) if capacity[d] > 0 and free[d] >= milli and d not in own]
        if lost and spare and not slots.columns.known[slot]:
            moved = dict(zip(lost, spare, strict=False))
            state.occupancy.rebook(slot, tuple(sorted(moved.get(d, d) for d in own)))


def _adopt(state: State, row: int, role: int, ordinal: int, node: int, devices: tuple[int, ...], phase: Phase) -> int:
    """Count a replica that is where it is, whatever the plan was."""
    state.refresh()
    request = state.workloads.signature(row).chains[role].role.request
    if request.gpu_count and not devices:
        devices = _likely_devices(state, node, request)
    measured = _measured(state, node, devices, request)
    memory = min((int(state.nodes.columns.gpu_memory[node, d]) for d in measured), default=0)
    milli = share_milli(request, memory) if devices else 0
    return state.occupancy.hold(row, role, ordinal, node, devices, milli, promised=False, until_ms=-1, phase=phase)


def _measured(state: State, node: int, devices: tuple[int, ...], request: Request) -> list[int]:
    """Devices whose memory says how large the share is: its own, or for several, which take the same share of each,
    all that it could have got on the node."""
    if request.gpu_count < 2:
        return list(devices)
    columns, resources = state.nodes.columns, state.resources
    named = {resources.model_ids.get(each.model) for each in request.models}
    models, memory = columns.gpu_model[node].tolist(), columns.gpu_memory[node].tolist()
    able = [
        d
        for d, model in enumerate(models)
        if model >= 0 and (not named or model in named) and memory[d] >= request.gpu_memory_mib
    ]
    return able or list(devices)


def _likely_devices(state: State, node: int, request: Request) -> tuple[int, ...]:
    """Devices for a replica whose body did not say which: the freest, by index."""
    columns = state.nodes.columns
    free = columns.now_gpus[node]
    usable = [d for d in range(len(free)) if columns.gpu_model[node, d] >= 0]
    usable.sort(key=lambda d: (-int(free[d]) if request.gpu_milli >= 1000 else (free[d] < request.gpu_milli), d))
    return tuple(sorted(usable[: request.gpu_count]))
