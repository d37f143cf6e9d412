"""Nodes and pools of a random world: mixed devices, NVLink groups, MIG, accelerators, counted and ailing nodes."""

from __future__ import annotations

from msgspec import structs

from optimus.model.nodes import Device, ForeignUsage, Node, Taint
from optimus.model.pools import DEFAULT_POOL, NodePool, Strategy
from optimus.testing.drawing import Draw

MODELS = (("t4", 16_384), ("a100", 40_960), ("h100", 81_920))
MIG_PROFILES = ("1g.5gb", "3g.20gb")
LEVELS = ((), ("rack",), ("rack",), ("zone", "rack"), ("zone", "block", "rack"))
TAINT_KEYS = ("dedicated", "maintenance")
ACCELERATORS = ("fpga", "tpu")


def draw_pools(draw: Draw) -> tuple[NodePool, ...]:
    count = draw.weighted(((5, 1), (3, 2), (2, 3)))
    names = [DEFAULT_POOL, "alpha", "beta"][: max(count, 1)]
    if draw.chance(30):
        names = ["alpha", "beta", "gamma"][:count]  # nothing but an implied default pool beside them
    return tuple(
        NodePool(
            name=name,
            selector={} if name == DEFAULT_POOL else {"pool": name},
            levels=draw.pick(LEVELS),
            strategy=_strategy(draw),
            interference_limit_milli=draw.weighted(((8, 0), (1, 800), (1, 1000))),
        )
        for name in names
    )


def _strategy(draw: Draw) -> dict[str, Strategy]:
    if draw.chance(70):
        return {}
    if draw.chance(50):
        return {"default": Strategy.SPREAD}
    return {"inference": Strategy.SPREAD, "default": Strategy.PACK}


def draw_nodes(draw: Draw, pools: tuple[NodePool, ...], count: int, most_devices: int) -> tuple[Node, ...]:
    usual = draw.pick(MODELS)
    nodes = []
    for number in range(count):
        pool = draw.pick(pools)
        nodes.append(_node(draw, f"n{number:02}", pool, usual, most_devices))
    return tuple(nodes)


def alike(nodes: tuple[Node, ...], devices: int = 4) -> tuple[Node, ...]:
    """The same nodes where they are, each with as many devices, all well and of one model."""
    model, memory = MODELS[0]
    same = tuple(Device(index=i, model=model, memory_mib=memory) for i in range(devices))
    room = {"cpu_milli": 8000 * devices, "memory_mib": 32_768 * devices}
    return tuple(
        structs.replace(node, devices=same, foreign=ForeignUsage(), ready=True, cordoned=False, **room)
        for node in nodes
    )


def _node(draw: Draw, name: str, pool: NodePool, usual: tuple[str, int], most_devices: int) -> Node:
    labels = dict(pool.selector)
    for level in pool.levels:
        if not draw.chance(4):  # a node that nobody has labelled yet
            labels[level] = f"{level}{draw.between(0, 1 if level != 'rack' else 2)}"
    if draw.chance(30):
        labels["tier"] = draw.pick(("gold", "silver"))
    if draw.chance(4):
        labels.pop("pool", None)  # falls into the default pool
    devices = () if draw.chance(15) else _devices(draw, usual, most_devices)
    cores = draw.weighted(((6, 8), (2, 4), (1, 2))) * max(1, len(devices))
    accelerators = {}
    if draw.chance(15):
        accelerators[draw.pick(ACCELERATORS)] = draw.between(1, 4)
    return Node(
        name=name,
        labels=labels,
        taints=(Taint(draw.pick(TAINT_KEYS), effect=_effect(draw)),) if draw.chance(8) else (),
        cpu_milli=cores * 1000,
        memory_mib=cores * draw.pick((2048, 4096, 8192)),
        accelerators=accelerators,
        devices=devices,
        assignable=not draw.chance(15),
        ready=not draw.chance(4),
        cordoned=draw.chance(4),
        foreign=_foreign(draw, devices, cores),
    )


def _effect(draw: Draw) -> str:
    return draw.weighted(((3, "NoSchedule"), (1, "NoExecute"), (1, "PreferNoSchedule")))


def _devices(draw: Draw, usual: tuple[str, int], most: int) -> tuple[Device, ...]:
    count = draw.pick([n for n in (1, 2, 4, 4, 8) if n <= most])
    model, memory = usual if draw.chance(60) else draw.pick(MODELS)
    group_size = draw.pick((1, 2, 2, 4, 8))
    first = draw.weighted(((30, 0), (1, 1)))  # indices need not begin at nothing
    partitioned = draw.chance(10)
    mixed = draw.chance(6)
    found = []
    for i in range(count):
        own = draw.pick(MODELS) if mixed else (model, memory)
        mig = {draw.pick(MIG_PROFILES): draw.between(1, 4)} if partitioned and draw.chance(50) else {}
        found.append(
            Device(
                index=first + i,
                model=own[0],
                memory_mib=own[1],
                nvlink_group=i // group_size,
                numa_node=i * 2 // count,
                healthy=not draw.chance(3),
                mig=mig,
            )
        )
    return tuple(found)


def _foreign(draw: Draw, devices: tuple[Device, ...], cores: int) -> ForeignUsage:
    if not draw.chance(10):
        return ForeignUsage()
    gpu = {draw.pick(devices).index: draw.pick((200, 500, 1000))} if devices and draw.chance(40) else {}
    return ForeignUsage(cpu_milli=draw.between(0, cores * 300), memory_mib=draw.between(0, 2048), gpu_milli=gpu)
