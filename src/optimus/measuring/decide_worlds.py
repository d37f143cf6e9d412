"""The worlds of the decision benchmarks, built through observations like every body does."""

from __future__ import annotations

from optimus.engine.engine import Engine
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, PoolSeen, QueueSeen, SlotRunning, WorkloadSeen
from optimus.model.pools import NodePool
from optimus.model.queues import PoolQuota, Queue, Quota
from optimus.model.workloads import Checkpoint, Group, Request, Role, Workload

START_MS = 10_000_000
MODELS = ("A100", "H100", "T4")


def node(number: int, *, pool: int = 0, nodes_per_rack: int = 32) -> Node:
    model = MODELS[pool]
    return Node(
        name=f"node-{number:05d}",
        labels={"pool": f"p{pool}", "rack": f"rack-{number // nodes_per_rack:04d}"},
        cpu_milli=128_000,
        memory_mib=1 << 20,
        devices=tuple(
            Device(index=d, model=model, memory_mib=81_920, nvlink_group=d // 4, numa_node=d // 4) for d in range(8)
        ),
    )


def job(
    name: str,
    queue: str,
    *,
    replicas: int = 1,
    gpus: int = 1,
    milli: int = 1000,
    cpu: int = 4_000,
    pool: int = 0,
    **more: object,
) -> Workload:
    request = Request(gpu_count=gpus, gpu_milli=milli, cpu_milli=cpu, memory_mib=16_384)
    gang = Group(roles=(Role(name="worker", min=replicas, max=replicas, request=request),))
    return Workload(id=f"bench/{name}", queue=queue, gang=gang, pools=(f"p{pool}",), **more)  # type: ignore[arg-type]


def queue(name: str, *, guarantee: int = 0, parent: str = "", pools: int = 1) -> Queue:
    quotas = tuple(
        PoolQuota(pool=f"p{p}", resources={"gpu": Quota(guarantee=guarantee * 1000, weight=1)}) for p in range(pools)
    )
    return Queue(name=name, parent=parent, quotas=quotas)


def cluster(nodes: int, *, pools: int = 1, levels: tuple[str, ...] = ()) -> Engine:
    engine = Engine(learns=False)
    for p in range(pools):
        engine.state.apply(PoolSeen(NodePool(name=f"p{p}", selector={"pool": f"p{p}"}, levels=levels)), START_MS)
    for n in range(nodes):
        engine.state.apply(NodeSeen(node(n, pool=n % pools)), START_MS)
    return engine


def submit(engine: Engine, workload: Workload, now_ms: int = START_MS) -> None:
    engine.state.apply(WorkloadSeen(workload), now_ms)


def runs_on(
    engine: Engine, workload: Workload, nodes: list[str], devices: list[tuple[int, ...]], since_ms: int
) -> None:
    submit(engine, workload, since_ms)
    for ordinal, (name, chosen) in enumerate(zip(nodes, devices, strict=True)):
        engine.state.apply(SlotRunning(workload.id, "worker", ordinal, name, chosen, since_ms), since_ms)


def empty_cluster(nodes: int = 5_000, gangs: int = 2_500) -> Engine:
    """One-GPU pods in gangs of 20 on an empty cluster, one queue."""
    engine = cluster(nodes)
    engine.state.apply(QueueSeen(queue("team")), START_MS)
    for g in range(gangs):
        submit(engine, job(f"gang-{g:06d}", "team", replicas=20))
    return engine


def many_shapes(nodes: int = 5_000, gangs: int = 2_500, queues: int = 200) -> Engine:
    """The same load in 10 shapes, 3 pools and 200 queues below 10 departments."""
    engine = cluster(nodes, pools=3)
    for d in range(10):
        engine.state.apply(QueueSeen(queue(f"dept-{d}", guarantee=100, pools=3)), START_MS)
    for q in range(queues):
        entry = queue(f"team-{q:03d}", guarantee=4, parent=f"dept-{q % 10}", pools=3)
        engine.state.apply(QueueSeen(entry), START_MS)
    for g in range(gangs):
        cpu = 2_000 + 500 * (g % 10)
        submit(engine, job(f"gang-{g:06d}", f"team-{g % queues:03d}", replicas=20, cpu=cpu, pool=g % 3))
    return engine


def steady_state(nodes: int = 4_000, pods: int = 140_000) -> Engine:
    """A busy cluster: shared GPUs, 35 pods on every node, nothing waiting."""
    engine = cluster(nodes)
    for q in range(20):
        engine.state.apply(QueueSeen(queue(f"team-{q:02d}", guarantee=500)), START_MS)
    per_node = pods // nodes
    for n in range(nodes):
        for k in range(per_node):
            workload = job(f"pod-{n:05d}-{k:02d}", f"team-{(n + k) % 20:02d}", milli=200, cpu=1_000)
            runs_on(engine, workload, [f"node-{n:05d}"], [(k % 8,)], START_MS)
    engine.state.snapshot(START_MS)
    return engine


def full_of_lent_work(nodes: int = 1_000, gang: int = 500) -> Engine:
    """Every GPU runs preemptible one-GPU work of a queue without guarantee; a gang asks for its guarantee."""
    engine = cluster(nodes)
    engine.state.apply(QueueSeen(queue("lent")), START_MS)
    engine.state.apply(QueueSeen(queue("owner", guarantee=gang)), START_MS)
    for n in range(nodes):
        for d in range(8):
            workload = job(f"lent-{n:05d}-{d}", "lent", checkpoint=Checkpoint())
            runs_on(engine, workload, [f"node-{n:05d}"], [(d,)], START_MS + (n * 7919 + d * 104729) % 1_000_000)
    submit(engine, job("gang", "owner", replicas=gang), START_MS + 2_000_000)
    return engine


def fragmented(nodes: int = 500, gangs: int = 41) -> Engine:
    """One one-GPU pod on every node; gangs of ten whole nodes wait although most GPUs are free."""
    engine = cluster(nodes)
    engine.state.apply(QueueSeen(queue("team")), START_MS)
    for n in range(nodes):
        workload = job(f"small-{n:05d}", "team", checkpoint=Checkpoint(interval_ms=60_000))
        runs_on(engine, workload, [f"node-{n:05d}"], [(n % 8,)], START_MS)
    for g in range(gangs):
        submit(engine, job(f"gang-{g:03d}", "team", replicas=10, gpus=8, cpu=64_000), START_MS + 1_000_000)
    return engine
