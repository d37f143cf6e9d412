"""The whole state as one message, and back: keyframes of the journal, copies for forecasts, warm restarts.

A restored state gives the same plans as the one it was taken from (a test proves it). Rows may be numbered
differently; nothing may depend on that.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from optimus.model.nodes import Node
from optimus.model.packing import PackingTables
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.settings import Settings
from optimus.model.slots import Phase
from optimus.model.workloads import Workload
from optimus.state.history import RunTimes
from optimus.state.mix import Key
from optimus.state.state import State

WORKLOAD_COLUMNS = (
    "alive",
    "submitted",
    "started",
    "resized",
    "lost_since",
    "retry_at",
    "checkpoint_at",
    "busy_at",
    "expected",
    "attained",
    "elapsed",
    "counted_at",
    "restarts",
    "resizes",
    "worked",
    "saves_in_time",
    "stays_until",
)
"""What cannot be worked out again from descriptions and slots."""


class WorkloadFrame(Struct, frozen=True):
    workload: Workload
    numbers: tuple[int, ...]
    pending: bool
    failure: str = ""


class SlotFrame(Struct, frozen=True):
    workload: str
    role: int
    ordinal: int
    node: str
    devices: tuple[int, ...]
    milli: int
    phase: int
    promised: bool
    known: bool
    until_ms: int
    sick_since: int = -1
    done: bool = False


class UseFrame(Struct, frozen=True):
    """Past use of one queue, pool and resource."""

    queue: str
    pool: str
    resource: str
    amount: str
    """In digits: it may need more than 64 bits."""


class Keyframe(Struct, frozen=True):
    now_ms: int
    version: int
    settings: Settings
    nodes: tuple[tuple[Node, int], ...]
    """With the time since which each is unready, or -1."""
    pools: tuple[NodePool, ...]
    queues: tuple[Queue, ...]
    resources: tuple[str, ...]
    models: tuple[str, ...]
    workloads: tuple[WorkloadFrame, ...]
    slots: tuple[SlotFrame, ...]
    queue_times: dict[str, list[int]]
    family_times: dict[str, list[int]]
    past_use_at: int
    mix: tuple[tuple[Key, int], ...]
    mix_arrivals: int
    tables: PackingTables
    rejected: dict[str, str]
    uses: tuple[UseFrame, ...] = ()
    family_work: dict[str, list[int]] = {}
    family_speeds: dict[str, tuple[int, ...]] = {}


def dump(state: State) -> bytes:
    return msgspec.msgpack.encode(_keyframe(state))


def restore(data: bytes) -> State:
    return _state(msgspec.msgpack.decode(data, type=Keyframe))


def _keyframe(state: State) -> Keyframe:
    nodes = state.nodes
    workloads = state.workloads
    return Keyframe(
        now_ms=state.now_ms,
        version=state.version,
        settings=state.settings,
        nodes=tuple(
            (node, int(nodes.columns.unready_since[row]))
            for row in nodes.row_of.values()
            if (node := nodes.nodes[row]) is not None
        ),
        pools=tuple(state.pools.values()),
        queues=tuple(state.queues.values()),
        resources=tuple(state.resources.names),
        models=tuple(state.resources.models),
        workloads=tuple(
            WorkloadFrame(
                workloads.spec(row),
                tuple(int(getattr(workloads.columns, name)[row]) for name in WORKLOAD_COLUMNS),
                row in workloads.pending,
                workloads.failures.get(row, ""),
            )
            for row in _pending_last(state)
        ),
        slots=tuple(_slot_frames(state)),
        queue_times={name: times.recent() for name, times in state.history.by_queue.items()},
        family_times={name: times.recent() for name, times in state.history.by_family.items()},
        family_work={name: times.recent() for name, times in state.history.work_by_family.items()},
        family_speeds=dict(state.history.speeds_by_family),
        past_use_at=state.history.past_use_at,
        mix=tuple(state.mix.counts.items()),
        mix_arrivals=state.mix.arrivals,
        tables=state.tables,
        rejected=dict(state.rejected),
        uses=tuple(UseFrame(*use, str(amount)) for use, amount in state.history.past_use.items()),
    )


def _pending_last(state: State) -> list[int]:
    """Running work first; then those that wait, in the order of the pending set."""
    pending = state.workloads.pending
    return [row for row in state.workloads.row_of.values() if row not in pending] + list(pending)


def _slot_frames(state: State) -> list[SlotFrame]:
    slots = state.slots.columns
    frames = []
    for workload, row in state.workloads.row_of.items():
        for places in (state.workloads.leaving[row], state.workloads.slots[row]):
            for (role, ordinal), slot in sorted(places.items()):
                frames.append(
                    SlotFrame(
                        workload,
                        role,
                        ordinal,
                        state.nodes.name(int(slots.node[slot])),
                        state.slots.devices[slot],
                        int(slots.milli[slot]),
                        int(slots.phase[slot]),
                        bool(slots.promised[slot]),
                        bool(slots.known[slot]),
                        int(slots.until[slot]),
                        int(slots.sick_since[slot]),
                        bool(slots.done[slot]),
                    )
                )
    return frames


def _state(frame: Keyframe) -> State:
    state = State(frame.settings)
    for name in frame.resources:
        state.resources.column(name)
    for name in frame.models:
        state.resources.model(name)
    state.widen()
    for node, unready_since in frame.nodes:
        row = state.nodes.put(node, frame.now_ms)
        state.nodes.columns.unready_since[row] = unready_since
    state.pools = {pool.name: pool for pool in frame.pools}
    state.queues = {queue.name: queue for queue in frame.queues}
    for entry in frame.workloads:
        row = state.workloads.put(entry.workload)
        if not entry.pending:
            state.workloads.pending.pop(row, None)
        if entry.failure:
            state.workloads.failures[row] = entry.failure
    state.refresh()
    for slot in frame.slots:
        _put_slot(state, slot)
    for entry in frame.workloads:
        row = state.workloads.row_of[entry.workload.id]
        for name, number in zip(WORKLOAD_COLUMNS, entry.numbers, strict=False):  # older frames have fewer
            getattr(state.workloads.columns, name)[row] = number
    state.history.by_queue = {name: RunTimes(times) for name, times in frame.queue_times.items()}
    state.history.by_family = {name: RunTimes(times) for name, times in frame.family_times.items()}
    state.history.work_by_family = {name: RunTimes(times) for name, times in frame.family_work.items()}
    state.history.speeds_by_family = dict(frame.family_speeds)
    state.history.past_use = {(use.queue, use.pool, use.resource): int(use.amount) for use in frame.uses}
    state.history.past_use_at = frame.past_use_at
    for key, count in frame.mix:
        state.mix.add(key, count)
    state.mix.arrivals = frame.mix_arrivals
    state.tables = frame.tables
    state.rejected = dict(frame.rejected)
    state.now_ms, state.version = frame.now_ms, frame.version
    return state


def _put_slot(state: State, frame: SlotFrame) -> None:
    row = state.workloads.row_of[frame.workload]
    state.occupancy.place(
        row,
        frame.role,
        frame.ordinal,
        state.nodes.row_of[frame.node],
        frame.devices,
        frame.milli,
        promised=frame.promised,
        known=frame.known,
        until_ms=frame.until_ms,
        phase=Phase(frame.phase),
        done=frame.done,
    )
    places = state.workloads.leaving if frame.phase == Phase.RELEASING else state.workloads.slots
    state.slots.columns.sick_since[places[row][(frame.role, frame.ordinal)]] = frame.sick_since
