"""A replica that has ended well gives its room back, and its gang goes on as if it were there."""

from __future__ import annotations

import numpy as np

from optimus.engine.engine import Engine
from optimus.model.nodes import Device, Node
from optimus.model.observations import (
    NodeGone,
    NodeSeen,
    Observation,
    QueueSeen,
    SlotDone,
    SlotGone,
    SlotRunning,
    WorkloadEnded,
    WorkloadSeen,
)
from optimus.model.plans import Start
from optimus.model.queues import Queue
from optimus.model.workloads import Group, Request, Role, Workload

HOUR_MS = 3_600_000


def gang(name: str, replicas: int) -> Workload:
    request = Request(gpu_count=1, cpu_milli=1000, memory_mib=1024)
    role = Role(name="worker", min=replicas, max=replicas, request=request)
    return Workload(id=f"team/{name}", queue="q", gang=Group(roles=(role,)))


def node(name: str) -> Node:
    devices = tuple(Device(index=i, model="a100") for i in range(2))
    return Node(name=name, devices=devices, cpu_milli=8000, memory_mib=8192)


def running() -> Engine:
    """Two replicas that fill a node, and one that waits for it."""
    engine = Engine()
    engine.step([NodeSeen(node("n")), QueueSeen(Queue(name="q")), WorkloadSeen(gang("pair", 2))], 0)
    engine.step([SlotRunning("team/pair", "worker", 0), SlotRunning("team/pair", "worker", 1)], 1)
    plan = engine.step([WorkloadSeen(gang("next", 1))], 2)
    assert [wait.workload for wait in plan.waiting] == ["team/next"]
    return engine


def test_its_room_goes_to_others_at_once() -> None:
    engine = running()
    plan = engine.step([SlotDone("team/pair", "worker", 0)], 3)
    (start,) = plan.actions
    assert isinstance(start, Start)
    assert start.workload == "team/next" and start.placements[0].devices == (0,)


def test_its_gang_is_not_short_of_it_however_long_it_goes_on() -> None:
    engine = running()
    engine.step([SlotDone("team/pair", "worker", 0)], 3)
    assert engine.step([SlotRunning("team/next", "worker", 0)], 4).actions == ()
    assert engine.step([], HOUR_MS).actions == ()


def test_to_hear_it_twice_or_late_changes_nothing() -> None:
    engine = running()
    engine.step([SlotDone("team/pair", "worker", 0)], 3)
    columns = engine.state.nodes.columns
    free = columns.now_gpus.copy(), columns.now_scalars.copy()
    engine.observe([SlotDone("team/pair", "worker", 0), SlotRunning("team/pair", "worker", 0)], 4)
    assert np.array_equal(free[0], columns.now_gpus) and np.array_equal(free[1], columns.now_scalars)


def test_a_copy_of_the_state_knows_it() -> None:
    engine, twin = running(), Engine()
    engine.observe([SlotDone("team/pair", "worker", 0)], 3)
    twin.restore(engine.dump())
    assert twin.dump() == engine.dump()
    assert twin.decide(4) == engine.decide(4)


def test_when_it_is_over_everything_is_free() -> None:
    engine = running()
    engine.step([SlotDone("team/pair", "worker", 0)], 3)
    ended: list[Observation] = [
        WorkloadEnded("team/pair"),
        SlotGone("team/pair", "worker", 0),
        SlotGone("team/pair", "worker", 1),
    ]
    engine.step([*ended, WorkloadEnded("team/next")], 4)
    assert engine.state.nodes.columns.now_gpus[0].tolist()[:2] == [1000, 1000]
    assert not engine.state.workloads.row_of


def test_the_node_it_was_on_may_go_and_its_gang_goes_on() -> None:
    engine = Engine()
    spread: list[Observation] = [
        NodeSeen(node("a")),
        NodeSeen(node("b")),
        QueueSeen(Queue(name="q")),
        WorkloadSeen(gang("four", 4)),
    ]
    engine.step(spread, 0)
    engine.step([SlotRunning("team/four", "worker", i) for i in range(4)], 1)
    on_a = [
        int(ordinal)
        for (_, ordinal), slot in engine.state.workloads.slots[0].items()
        if engine.state.nodes.name(int(engine.state.slots.columns.node[slot])) == "a"
    ]
    engine.step([*(SlotDone("team/four", "worker", i) for i in on_a), NodeGone("a")], 2)
    assert engine.step([], HOUR_MS).actions == ()
    engine.step([NodeSeen(node("a"))], 2 * HOUR_MS)
    assert engine.state.nodes.columns.now_gpus[0].tolist()[:2] == [1000, 1000]


def test_with_all_its_nodes_it_is_gone() -> None:
    engine = running()
    engine.step([SlotDone("team/pair", "worker", 0), NodeGone("n")], 3)
    assert sorted(engine.state.workloads.pending) == [0, 1]
