"""How many replicas fit: counted over arrays and on one node alone, the answer is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optimus.decide.placement.shapes import Shape, build_shape, count_fits, count_fits_on
from optimus.model.nodes import Device, Node
from optimus.model.observations import NodeSeen, PoolSeen
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.workloads import Group, ModelSpeed, Request, Role, Workload
from optimus.state.state import State

DEVICES = 4
REQUESTS = st.builds(
    Request,
    gpu_count=st.integers(0, 3),
    gpu_milli=st.sampled_from([100, 250, 333, 500, 1000]),
    gpu_memory_mib=st.sampled_from([0, 0, 7_000, 24_000]),
    cpu_milli=st.sampled_from([0, 500, 3_000]),
    memory_mib=st.sampled_from([0, 2_048]),
    models=st.sampled_from([(), (ModelSpeed("A100", 100),)]),
    activity_milli=st.sampled_from([0, 300]),
)


def shape_on_two_kinds_of_nodes(request: Request, *, ready: bool) -> Shape:
    state = State()
    state.apply(PoolSeen(NodePool(name=DEFAULT_POOL, interference_limit_milli=900)), 0)
    for name, model, memory in (("a", "A100", 40_000), ("t", "T4", 16_000)):
        devices = tuple(Device(index=i, model=model, memory_mib=memory) for i in range(DEVICES))
        node = Node(name=name, cpu_milli=16_000, memory_mib=65_536, devices=devices, ready=ready)
        assert state.apply(NodeSeen(node), 0) == []
    snapshot = state.snapshot(0)
    workload = Workload(id="w", queue="q", gang=Group(roles=(Role(name="worker", request=request),)))
    return build_shape(workload, Role(name="worker", request=request), snapshot.pools[0], snapshot)


@given(
    request=REQUESTS,
    ready=st.booleans(),
    free=st.lists(st.integers(-200, 1_000), min_size=DEVICES, max_size=DEVICES),
    activity=st.lists(st.integers(0, 1_200), min_size=DEVICES, max_size=DEVICES),
    cpu=st.integers(-1_000, 16_000),
    memory=st.integers(-1_000, 65_536),
)
def test_one_node_is_counted_as_all_are(
    request: Request, ready: bool, free: list[int], activity: list[int], cpu: int, memory: int
) -> None:
    shape = shape_on_two_kinds_of_nodes(request, ready=ready)
    scalars = np.tile(np.array([cpu, memory], dtype=np.int64), (2, 1))
    gpus, busy = np.tile(np.array(free), (2, 1)), np.tile(np.array(activity), (2, 1))
    of_all = count_fits(shape, scalars, gpus, busy, slice(None)).tolist()
    assert of_all == [count_fits_on(shape, node, scalars[node], gpus[node], busy[node]) for node in (0, 1)]
