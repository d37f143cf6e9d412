"""Nodes on which a start has failed: others are taken before them, and they are taken before none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from optimus.engine.engine import Engine, ReplayEngine
from optimus.engine.journal import JournalWriter, replay
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, Observation, PoolSeen, QueueSeen, SlotFailed, WorkloadSeen
from optimus.model.plans import Start
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.workloads import ANY_POOL, Group, Request, Role, Topology, Workload


def node(name: str, gpus: int = 2, **labels: str) -> Node:
    devices = tuple(Device(index=i, model="a100") for i in range(gpus))
    return Node(name=name, cpu_milli=64_000, memory_mib=1 << 18, devices=devices, labels=labels)


def work(
    name: str = "w", *, replicas: int = 1, gpus: int = 1, avoids: tuple[str, ...] = (), **more: object
) -> Workload:
    topology = Topology(required=str(more.pop("together", "")))
    role = Role(name="worker", min=replicas, max=replicas, request=Request(gpu_count=gpus))
    gang = Group(topology=topology, roles=(role,))
    return Workload(id=f"team/{name}", queue="q", gang=gang, avoids=avoids, **more)  # type: ignore[arg-type]


class Small:
    """A cluster of a few nodes."""

    def __init__(self, *nodes: Node, pools: tuple[NodePool, ...] = ()) -> None:
        self.engine, self.now_ms = Engine(), 0
        self.tell(QueueSeen(Queue(name="q")), *map(PoolSeen, pools), *map(NodeSeen, nodes))

    def tell(self, *facts: Observation) -> None:
        self.engine.observe(facts, self.now_ms)
        assert self.engine.problems == []

    def starts(self, *workloads: Workload) -> dict[str, list[str]]:
        """Where each of them starts."""
        plan = self.engine.step([WorkloadSeen(one) for one in workloads], self.now_ms)
        return {
            one.workload.removeprefix("team/"): sorted(place.node for place in one.placements)
            for one in plan.actions
            if isinstance(one, Start)
        }


def test_others_are_taken_first() -> None:
    assert Small(node("a"), node("b")).starts(work()) == {"w": ["a"]}
    assert Small(node("a"), node("b")).starts(work(avoids=("a",))) == {"w": ["b"]}
    assert Small(node("a"), node("b")).starts(work(avoids=("gone",))) == {"w": ["a"]}


def test_where_no_other_is_left_it_is_taken_again() -> None:
    assert Small(node("a")).starts(work(avoids=("a",))) == {"w": ["a"]}
    assert Small(node("a"), node("b", 1)).starts(work(gpus=2, avoids=("a",))) == {"w": ["a"]}, "the other is too small"
    both = Small(node("a"), node("b")).starts(work(replicas=2, gpus=2, avoids=("a",)))
    assert both == {"w": ["a", "b"]}, "a gang that needs all there are"


def test_who_has_not_failed_there_goes_there() -> None:
    """The same request, and a refusal or place of one is none of the other."""
    small = Small(node("a", 1), node("b", 1))
    assert small.starts(work("burnt", avoids=("a",)), work("fresh")) == {"burnt": ["b"], "fresh": ["a"]}


def test_a_whole_rack_is_tried_elsewhere_first() -> None:
    racks = [node("a", rack="1"), node("b", rack="1"), node("c", rack="2"), node("d", rack="2")]
    pool = NodePool(name="default", levels=("rack",))
    gang = work(replicas=2, gpus=2, avoids=("b",), together="rack")
    assert Small(*racks, pools=(pool,)).starts(gang) == {"w": ["c", "d"]}


@pytest.mark.parametrize("pools", [("one", "two"), (ANY_POOL,)])
def test_another_pool_is_another_place(pools: tuple[str, ...]) -> None:
    two = [NodePool(name=name, selector={"pool": name}) for name in ("one", "two")]
    nodes = node("a", pool="one"), node("b", pool="two")
    assert Small(*nodes, pools=tuple(two)).starts(work(pools=pools, avoids=("a",))) == {"w": ["b"]}
    assert Small(nodes[0], pools=tuple(two)).starts(work(pools=pools, avoids=("a",))) == {"w": ["a"]}


def test_it_is_told_while_it_runs_and_nothing_moves() -> None:
    small = Small(node("a"), node("b"))
    assert small.starts(work()) == {"w": ["a"]}
    assert small.starts(work(avoids=("a",))) == {}


def test_a_failed_start_waits_for_its_pause_and_then_goes_elsewhere() -> None:
    small = Small(node("a"), node("b"))
    assert small.starts(work()) == {"w": ["a"]}
    small.tell(SlotFailed("team/w", "worker", 0, "no volume", 5_000))
    small.now_ms = 1_000
    assert small.starts(work(avoids=("a",))) == {}, "backing off"
    small.now_ms = 6_000
    assert small.starts() == {"w": ["b"]}


def test_a_journal_replays_and_one_that_knows_nothing_of_it_is_read(tmp_path: Path) -> None:
    engine = Engine()
    engine.keep_journal(JournalWriter(tmp_path, dump=engine.dump), 0)
    facts: list[Observation] = [
        QueueSeen(Queue(name="q")),
        NodeSeen(node("a")),
        NodeSeen(node("b")),
        WorkloadSeen(work(avoids=("a",))),
    ]
    (start,) = engine.step(facts, 1_000).actions
    assert isinstance(start, Start) and start.placements[0].node == "b"
    engine.step([WorkloadSeen(work())], 2_000)
    again = list(replay(tmp_path, ReplayEngine))
    assert len(again) == 2 and all(one.equal for one in again)
    older = msgspec.msgpack.decode(msgspec.msgpack.encode(work()))
    del older["avoids"]
    assert msgspec.convert(older, Workload, strict=False) == work()
