"""The life of a slot, arrow by arrow, and the two ledgers that follow it."""

from __future__ import annotations

import itertools

import pytest

from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, QueueSeen, WorkloadSeen
from optimus.model.queues import PoolQuota, Queue, Quota
from optimus.model.slots import TRANSITIONS, Event, Phase, after
from optimus.model.workloads import Group, Request, Role, Workload
from optimus.state import State

DRAWN = {
    (Phase.WANTED, Event.HOLD): Phase.HELD,
    (Phase.HELD, Event.BIND): Phase.BINDING,
    (Phase.HELD, Event.CONFIRM): Phase.RUNNING,
    (Phase.HELD, Event.FORGET): Phase.WANTED,
    (Phase.HELD, Event.STOP): Phase.WANTED,
    (Phase.HELD, Event.GONE): Phase.WANTED,
    (Phase.BINDING, Event.CONFIRM): Phase.RUNNING,
    (Phase.BINDING, Event.FORGET): Phase.WANTED,
    (Phase.BINDING, Event.STOP): Phase.RELEASING,
    (Phase.BINDING, Event.GONE): Phase.WANTED,
    (Phase.RUNNING, Event.STOP): Phase.RELEASING,
    (Phase.RUNNING, Event.GONE): Phase.WANTED,
    (Phase.RELEASING, Event.GONE): Phase.WANTED,
    (Phase.RELEASING, Event.STAY): Phase.RUNNING,
}
STAYS = {(Phase.RELEASING, Event.STOP), (Phase.RELEASING, Event.CONFIRM)}
COUNTED_NOW = {Phase.HELD, Phase.BINDING, Phase.RUNNING, Phase.RELEASING}
COUNTED_COMING = {Phase.HELD, Phase.BINDING, Phase.RUNNING}


@pytest.mark.parametrize(("phase", "event"), list(itertools.product(Phase, Event)))
def test_every_arrow_and_every_missing_arrow(phase: Phase, event: Event) -> None:
    if (phase, event) in DRAWN:
        assert after(phase, event) is DRAWN[(phase, event)]
    elif (phase, event) in STAYS:
        assert after(phase, event) is phase
    else:
        assert after(phase, event) is None


def test_nothing_is_in_the_table_that_is_not_drawn() -> None:
    assert set(TRANSITIONS) == set(DRAWN) | STAYS


def one_slot_world() -> tuple[State, int]:
    state = State()
    state.apply(NodeSeen(Node(name="n", cpu_milli=8_000, devices=(Device(index=0, model="T4"),))), 0)
    quota = PoolQuota(pool="default", resources={"gpu": Quota(guarantee=1_000)})
    state.apply(QueueSeen(Queue(name="q", quotas=(quota,))), 0)
    request = Request(gpu_count=1, cpu_milli=1_000)
    gang = Group(roles=(Role(name="worker", request=request),))
    state.apply(WorkloadSeen(Workload(id="ns/w", queue="q", gang=gang)), 0)
    state.refresh()
    return state, state.workloads.row_of["ns/w"]


def hold(state: State, row: int, *, promised: bool = False) -> int:
    return state.occupancy.hold(row, 0, 0, 0, (0,), 1_000, promised=promised, until_ms=-1)


WALKS = {
    Phase.HELD: [],
    Phase.BINDING: [Event.BIND],
    Phase.RUNNING: [Event.BIND, Event.CONFIRM],
    Phase.RELEASING: [Event.BIND, Event.CONFIRM, Event.STOP],
}


def free(state: State) -> tuple[int, int, int, int]:
    """GPU thousandths and CPU free now, and coming."""
    nodes = state.nodes.columns
    return (
        int(nodes.now_gpus[0, 0]),
        int(nodes.now_scalars[0, 0]),
        int(nodes.coming_gpus[0, 0]),
        int(nodes.coming_scalars[0, 0]),
    )


@pytest.mark.parametrize("phase", list(WALKS))
def test_each_phase_counts_where_the_drawing_says(phase: Phase) -> None:
    state, row = one_slot_world()
    slot = hold(state, row)
    for event in WALKS[phase]:
        state.occupancy.move(slot, event, 10)
    now = (0, 7_000) if phase in COUNTED_NOW else (1_000, 8_000)
    coming = (0, 7_000) if phase in COUNTED_COMING else (1_000, 8_000)
    assert free(state) == (*now, *coming)
    assert state.occupancy.used_now[0, 0].tolist()[:2] == [1_000 - now[0], 8_000 - now[1]]
    assert state.occupancy.used_coming[0, 0].tolist()[:2] == [1_000 - coming[0], 8_000 - coming[1]]


@pytest.mark.parametrize(("phase", "event"), [key for key, target in DRAWN.items() if target is Phase.WANTED])
def test_whatever_way_a_slot_goes_nothing_is_left_of_it(phase: Phase, event: Event) -> None:
    state, row = one_slot_world()
    slot = hold(state, row)
    for each in WALKS[phase]:
        state.occupancy.move(slot, each, 10)
    state.occupancy.move(slot, event, 20)
    assert free(state) == (1_000, 8_000, 1_000, 8_000)
    assert not state.occupancy.used_now.any()
    assert not state.occupancy.used_coming.any()
    assert not state.workloads.slots[row]
    assert not state.workloads.leaving[row]
    assert row in state.workloads.pending, "it wants its place again"
    counts = state.workloads.columns
    assert [int(c[row]) for c in (counts.held, counts.promised, counts.releasing, counts.running, counts.rate)] == [
        0
    ] * 5


def test_a_promise_counts_only_against_what_is_coming_until_it_is_kept() -> None:
    state, row = one_slot_world()
    slot = hold(state, row, promised=True)
    assert free(state) == (1_000, 8_000, 0, 7_000)
    state.occupancy.keep(slot, -1)
    assert free(state) == (0, 7_000, 0, 7_000)


def test_an_event_that_makes_no_sense_changes_nothing() -> None:
    state, row = one_slot_world()
    slot = hold(state, row)
    before = free(state)
    state.occupancy.move(slot, Event.HOLD, 5)
    assert free(state) == before
    assert Phase(int(state.slots.columns.phase[slot])) is Phase.HELD


def test_a_late_confirmation_does_not_bring_a_leaving_slot_back() -> None:
    state, row = one_slot_world()
    slot = hold(state, row)
    for event in (Event.BIND, Event.CONFIRM, Event.STOP, Event.CONFIRM):
        state.occupancy.move(slot, event, 10)
    assert Phase(int(state.slots.columns.phase[slot])) is Phase.RELEASING
