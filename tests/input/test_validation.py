"""Descriptions that no file wrote: the checks of the domain by themselves."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.model import validation
from optimus.model.nodes import Device, ForeignUsage, Node, Taint, Toleration
from optimus.model.pools import NodePool
from optimus.model.problems import Problem
from optimus.model.queues import PoolQuota, Queue, QueuePolicy, Quota
from optimus.model.workloads import Checkpoint, Group, ModelSpeed, Request, Role, Topology, Workload


def workload(*roles: Role, **changes: object) -> Workload:
    plain = Workload(id="team/train", queue="q", gang=Group(roles=roles or (Role(name="worker"),)))
    return structs.replace(plain, **changes)


def replica(**changes: object) -> Workload:
    return workload(Role(name="worker", request=structs.replace(Request(gpu_count=1), **changes)))


def paths(problems: list[Problem]) -> list[str]:
    return [problem.path for problem in problems]


GOOD_NODE = Node(name="n", devices=(Device(index=0, model="A100"), Device(index=1, model="A100")))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": ""}, "name"),
        ({"cpu_milli": -1}, "cpu_milli"),
        ({"memory_mib": 2**60}, "memory_mib"),
        ({"accelerators": {"fpga": -1}}, "accelerators.fpga"),
        ({"devices": (Device(index=0, model="A"), Device(index=0, model="A"))}, "devices.1.index"),
        ({"devices": (Device(index=0, model="A", uuid="x"), Device(index=1, model="A", uuid="x"))}, "devices.1.uuid"),
        ({"devices": (Device(index=5000, model="A"),)}, "devices.0.index"),
        ({"taints": (Taint("", ""),)}, "taints.0.key"),
        ({"taints": (Taint("a", "", "Never"),)}, "taints.0.effect"),
        ({"foreign": ForeignUsage(gpu_milli={7: 100})}, "foreign.gpu_milli.7"),
        ({"foreign": ForeignUsage(gpu_milli={0: 1500})}, "foreign.gpu_milli.0"),
    ],
)
def test_nodes(changes: dict[str, object], path: str) -> None:
    assert validation.node_problems(GOOD_NODE) == []
    assert paths(validation.node_problems(structs.replace(GOOD_NODE, **changes))) == [path]


@pytest.mark.parametrize(
    ("pool", "path"),
    [
        (NodePool(name=""), "name"),
        (NodePool(name="any"), "name"),
        (NodePool(name="p", levels=("rack", "rack")), "levels.1"),
        (NodePool(name="p", levels=("nvlink",)), "levels.0"),
        (NodePool(name="p", interference_limit_milli=-1), "interference_limit_milli"),
    ],
)
def test_pools(pool: NodePool, path: str) -> None:
    assert paths(validation.pool_problems(pool)) == [path]


def test_queues_report_everything_at_once() -> None:
    quota = PoolQuota(pool="p", resources={"gpu": Quota(guarantee=-1, limit=-2, weight=-3)})
    policy = QueuePolicy(max_wait_ms=-1, allowed_classes=("batch",), idle_timeout_ms=0)
    queue = Queue(name="q", quotas=(quota, PoolQuota(pool="p")), policy=policy)
    assert paths(validation.queue_problems(queue)) == [
        "quotas.1.pool",
        "quotas.0.resources.gpu.guarantee",
        "quotas.0.resources.gpu.limit",
        "quotas.0.resources.gpu.weight",
        "policy.max_wait_ms",
        "policy.idle_timeout_ms",
        "policy.allowed_classes.0",
    ]


def test_a_limit_below_the_guarantee_is_legal() -> None:
    quota = PoolQuota(pool="p", resources={"gpu": Quota(guarantee=8000, limit=4000, weight=0)})
    assert validation.queue_problems(Queue(name="q", quotas=(quota,))) == []


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (workload(id="train"), "id"),
        (workload(queue=""), "queue"),
        (workload(pools=()), "pools"),
        (workload(pools=("a", "a")), "pools.1"),
        (workload(tolerations=(Toleration("a", "", "Never"),)), "tolerations.0.effect"),
        (workload(checkpoint=Checkpoint(grace_ms=-1)), "checkpoint.grace_ms"),
        (workload(checkpoint=Checkpoint(interval_ms=0)), "checkpoint.interval_ms"),
        (workload(expected_duration_ms=0), "expected_duration_ms"),
        (workload(deadline_ms=10**30), "deadline_ms"),
        (workload(speedup_percent=(100, -1)), "speedup_percent.1"),
        (workload(gang=Group()), "gang"),
        (workload(gang=Group(max=2, roles=(Role(name="w"),))), "gang"),
        (workload(Role(name="")), "gang.roles.0.name"),
        (workload(Role(name="w"), Role(name="w")), "gang.roles.1.name"),
        (workload(Role(name="w", min=-1)), "gang.roles.0.min"),
        (workload(Role(name="w", min=0)), "gang"),
        (workload(Role(name="w", min=3, max=2)), "gang.roles.0.min"),
        (workload(Role(name="w", max=4, sizes=(1, 8))), "gang.roles.0.sizes"),
        (workload(Role(name="w", max=8, sizes=(1, 4, 2))), "gang.roles.0.sizes"),
        (workload(Role(name="w", max=8, sizes=(2, 4))), "gang.roles.0.sizes"),
        (workload(Role(name="w", max=10**9)), "gang.roles.0.max"),
        (workload(gang=Group(groups=(Group(name="g"),))), "gang.groups.0"),
        (workload(gang=Group(groups=(Group(name="g", max=0, roles=(Role(name="w"),)),))), "gang.groups.0.max"),
        (replica(gpu_count=-1), "gang.roles.0.request.gpu_count"),
        (replica(gpu_milli=0), "gang.roles.0.request.gpu_milli"),
        (replica(gpu_milli=1500), "gang.roles.0.request.gpu_milli"),
        (replica(gpu_milli=500, gpu_limit_milli=200), "gang.roles.0.request.gpu_limit_milli"),
        (replica(gpu_milli=500, gpu_memory_mib=10), "gang.roles.0.request.gpu_memory_mib"),
        (replica(models=(ModelSpeed("A"), ModelSpeed("A"))), "gang.roles.0.request.models.1"),
        (replica(models=(ModelSpeed("A", 0),)), "gang.roles.0.request.models.0.speed_percent"),
        (replica(accelerators=(("b", 1), ("a", 1))), "gang.roles.0.request.accelerators"),
        (replica(accelerators=(("a", 0),)), "gang.roles.0.request.accelerators.a"),
        (replica(memory_mib=-1), "gang.roles.0.request.memory_mib"),
    ],
)
def test_workloads(bad: Workload, path: str) -> None:
    assert paths(validation.workload_problems(bad)) == [path]


def test_a_good_workload_has_no_problems() -> None:
    gang = Group(
        roles=(Role(name="driver", min=0),),
        groups=(Group(name="stage", min=2, max=4, sizes=(2, 4), roles=(Role(name="w", min=1, max=8),)),),
    )
    assert validation.workload_problems(workload(gang=gang)) == []


def test_the_tree_of_queues() -> None:
    queues = [
        Queue(name="a", parent="b"),
        Queue(name="b", parent="c"),
        Queue(name="c", parent="a"),
        Queue(name="below", parent="a"),
        Queue(name="orphan", parent="ghost"),
        Queue(name="top"),
        Queue(name="leaf", parent="top"),
        Queue(name="leaf", parent="ghost"),
    ]
    found = validation.queue_tree_problems(queues, taking_work=["top", "leaf"])
    assert [str(problem) for problem in found] == [
        "queue leaf: name: is there twice; the first one counts",
        "queue a: parent: queues are below each other: a -> b -> c -> a",
        "queue b: parent: queues are below each other: b -> c -> a -> b",
        "queue c: parent: queues are below each other: c -> a -> b -> c",
        "queue orphan: parent: there is no queue ghost",
        "queue top: takes workloads, but has queues below it; only leaves take work",
    ]


def test_names_and_levels_that_lead_nowhere() -> None:
    role = Role(name="w", topology=Topology(required="nvlink", preferred="rack"))
    bad = workload(role, queue="ghost", pools=("p", "nowhere"), gang=Group(topology=Topology("row"), roles=(role,)))
    pools = {"p": NodePool(name="p", levels=("rack",))}
    found = validation.reference_problems(bad, {}, pools)
    assert paths(found) == ["queue", "pools.1", "gang.topology.required"]
    assert "known are host, nvlink, rack" in found[-1].message
