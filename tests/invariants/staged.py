"""Small worlds staged by hand, to show that every check can fail."""

from __future__ import annotations

from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, Observation, PoolSeen, QueueSeen, SlotRunning, WorkloadSeen
from optimus.model.plans import Action, Placement, Plan, Start, Wait
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.queues import GPU, PoolQuota, Queue, Quota
from optimus.model.reasons import Code, reason
from optimus.model.settings import Settings
from optimus.model.workloads import Group, Request, Role, Topology, Workload
from optimus.testing import Cycle, Ledger

NOW_MS = 10_000_000


def node(name: str, devices: int = 4, **changes: object) -> Node:
    gpus = tuple(Device(index=i, model="a100", memory_mib=40_960, nvlink_group=i // 2) for i in range(devices))
    usual = {"labels": {"rack": f"r-{name}"}, "cpu_milli": 64_000, "memory_mib": 65_536, "devices": gpus}
    return Node(name=name, **{**usual, **changes})  # type: ignore[arg-type]


def queue(name: str, guarantee: int = 0, *, limit: int | None = None, parent: str = "", weight: int = 1) -> Queue:
    quota = Quota(guarantee=guarantee * 1000, limit=None if limit is None else limit * 1000, weight=weight)
    return Queue(name=name, parent=parent, quotas=(PoolQuota(pool=DEFAULT_POOL, resources={GPU: quota}),))


def job(name: str, queue: str, replicas: int = 1, gpus: int = 1, *, rack: bool = False, **changes: object) -> Workload:
    role = Role(name="main", min=replicas, max=replicas, request=Request(gpu_count=gpus))
    gang = Group(roles=(role,), topology=Topology(required="rack") if rack else Topology())
    return Workload(id=f"team/{name}", queue=queue, gang=gang, **{"submitted_ms": 0, **changes})  # type: ignore[arg-type]


def runs(workload: Workload, *places: tuple[str, tuple[int, ...]]) -> list[Observation]:
    found: list[Observation] = [WorkloadSeen(workload)]
    found += [SlotRunning(workload.id, "main", i, where, devices, 0) for i, (where, devices) in enumerate(places)]
    return found


def stage(*facts: Node | Queue | Workload | list[Observation]) -> Ledger:
    ledger = Ledger(Settings())
    ledger.observe(PoolSeen(NodePool(name=DEFAULT_POOL, levels=("rack",))), 0)
    for fact in facts:
        seen: list[Observation]
        match fact:
            case Node():
                seen = [NodeSeen(fact)]
            case Queue():
                seen = [QueueSeen(fact)]
            case Workload():
                seen = [WorkloadSeen(fact)]
            case _:
                seen = fact
        for each in seen:
            ledger.observe(each, 0)
    return ledger


def start(workload: str, *places: tuple[str, tuple[int, ...]], milli: int = 1000) -> Start:
    placements = tuple(Placement("main", i, where, devices, milli) for i, (where, devices) in enumerate(places))
    return Start(f"team/{workload}", DEFAULT_POOL, placements)


def played(ledger: Ledger, *actions: Action, waiting: tuple[str, ...] = ()) -> Cycle:
    """The cycle in which somebody decided just this."""
    why = reason(Code.NO_ROOM, pool=DEFAULT_POOL, asked="1 GPU", best="0")
    plan = Plan(version=1, actions=actions, waiting=tuple(Wait(f"team/{name}", why) for name in waiting))
    after = ledger.copy()
    after.carry_out(plan, NOW_MS)
    return Cycle(0, 1, NOW_MS, (), ledger, plan, after)
