"""Work that was told to leave, and that somebody keeps where it is."""

from __future__ import annotations

from optimus.engine.engine import Engine
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, QueueSeen, SlotRunning, SlotStays, WorkloadSeen
from optimus.model.plans import Evict, Hold, Start
from optimus.model.queues import PoolQuota, Queue, Quota
from optimus.model.workloads import Group, Request, Role, Workload


def a_world() -> Engine:
    """Lent room is full, and its owner comes."""
    engine = Engine()
    devices = tuple(Device(index=i, model="t4") for i in range(2))
    quota = PoolQuota(pool="default", resources={"gpu": Quota(guarantee=2_000)})
    gang = Group(roles=(Role(name="worker", min=2, max=2, request=Request(gpu_count=1)),))
    engine.step(
        [
            NodeSeen(Node(name="n", cpu_milli=8_000, devices=devices)),
            QueueSeen(Queue(name="owner", quotas=(quota,))),
            QueueSeen(Queue(name="guest")),
            WorkloadSeen(Workload(id="a/guest", queue="guest", gang=gang)),
        ],
        0,
    )
    engine.step([SlotRunning("a/guest", "worker", ordinal) for ordinal in range(2)], 1_000)
    plan = engine.step([WorkloadSeen(Workload(id="a/owner", queue="owner", gang=gang))], 400_000)
    assert [type(action) for action in plan.actions] == [Evict, Hold]
    return engine


def test_the_room_is_promised_to_nobody_and_it_is_not_asked_again_at_once() -> None:
    engine = a_world()
    refused = [SlotStays("a/guest", "worker", ordinal, "a budget", 30_000) for ordinal in range(2)]
    plan = engine.step(refused, 401_000)
    assert [wait.workload for wait in plan.waiting] == ["a/owner"]
    assert not any(isinstance(action, Evict | Hold | Start) for action in plan.actions)
    columns, row = engine.state.workloads.columns, engine.state.workloads.row_of["a/guest"]
    assert (columns.running[row], columns.held[row], columns.releasing[row]) == (2, 2, 0)
    assert engine.step([], 420_000).actions == ()
    later = engine.step([], 432_000)
    assert [type(action) for action in later.actions] == [Evict, Hold], "and then it is"


def test_the_same_word_twice_changes_nothing() -> None:
    engine = a_world()
    refused = [SlotStays("a/guest", "worker", ordinal, "a budget", 30_000) for ordinal in range(2)]
    engine.step(refused, 401_000)
    before = engine.state.occupancy.in_use()
    engine.step(refused, 401_000)
    assert engine.state.occupancy.in_use() == before


def test_one_of_two_that_stays_takes_the_promise_with_it() -> None:
    engine = a_world()
    plan = engine.step([SlotStays("a/guest", "worker", 1, "a budget", 30_000)], 401_000)
    assert not any(isinstance(action, Hold | Start) for action in plan.actions)
    assert engine.state.workloads.columns.promised[engine.state.workloads.row_of["a/owner"]] == 0
