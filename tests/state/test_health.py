"""Since when a replica is on an unhealthy device: noted once, whatever is seen first, forgotten when it recovers."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, Observation, QueueSeen, SlotRunning, WorkloadSeen
from optimus.model.queues import Queue
from optimus.model.workloads import Group, Request, Role, Workload
from optimus.state import State
from optimus.state.keyframe import dump, restore

GANG = Group(roles=(Role(name="worker", min=2, max=2, request=Request(gpu_count=1)),))
RUNNING = [SlotRunning("ml/train", "worker", ordinal, "n", (ordinal,)) for ordinal in (0, 1)]


def node(*, healthy: bool, assignable: bool = True) -> Node:
    devices = (Device(index=0, model="a100"), Device(index=1, model="a100", healthy=healthy))
    return Node(name="n", cpu_milli=1000, devices=devices, assignable=assignable)


def cluster(*facts: Observation, assignable: bool = True) -> State:
    state = State()
    state.apply(NodeSeen(node(healthy=True, assignable=assignable)), 0)
    state.apply(QueueSeen(Queue(name="q")), 0)
    state.apply(WorkloadSeen(Workload(id="ml/train", queue="q", gang=GANG)), 0)
    for fact in facts:
        assert not state.apply(fact, 10)
    return state


def since(state: State) -> dict[int, int]:
    slots = state.workloads.slots[state.workloads.row_of["ml/train"]]
    return {ordinal: int(state.slots.columns.sick_since[slot]) for (_, ordinal), slot in sorted(slots.items())}


@pytest.mark.parametrize("node_first", [True, False])
def test_it_is_noted_whatever_is_seen_first(node_first: bool) -> None:
    dead = [NodeSeen(node(healthy=False))]
    state = cluster(*(dead + RUNNING if node_first else RUNNING + dead))
    assert since(state) == {0: -1, 1: 10}
    state.apply(NodeSeen(structs.replace(node(healthy=False), cordoned=True)), 20)
    state.apply(RUNNING[1], 30)
    assert since(state) == {0: -1, 1: 10}, "the first time counts"
    assert since(restore(dump(state))) == {0: -1, 1: 10}
    state.apply(NodeSeen(node(healthy=True)), 40)
    assert since(state) == {0: -1, 1: -1}


def test_where_devices_are_only_counted_nobody_knows() -> None:
    assert since(cluster(*RUNNING, NodeSeen(node(healthy=False, assignable=False)), assignable=False)) == {0: -1, 1: -1}
