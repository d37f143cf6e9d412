"""Read-only views of the state for one decision.

Nodes appear by pool and, inside a pool, by name, so that no decision depends on the order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optimus.model.nodes import Node
from optimus.model.pools import DEFAULT_POOL, HOST_LEVEL, NodePool
from optimus.state.arrays import Bools, Ints
from optimus.state.node_table import NodeTable

if TYPE_CHECKING:
    from optimus.state.state import State


@dataclass(frozen=True, slots=True)
class PoolView:
    """The nodes of one pool in name order; changes only when a description changes."""

    pool: NodePool
    index: int
    rows: Ints
    nodes: list[Node]
    usable: Bools
    """Ready and not cordoned."""
    tainted: list[int]
    assignable: Bools
    capacity_scalars: Ints
    capacity_gpus: Ints
    gpu_model: Ints
    gpu_memory: Ints
    nvlink_group: Ints
    numa_node: Ints
    unready_since: Ints
    levels: dict[str, Ints]
    """Level -> domain number of each node, -1 where the node carries no such label. Widest level first, host last."""
    domain_names: dict[str, list[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.nodes)


class Snapshot:
    """Valid until the next `apply` or `assume` of its state; `version` tells."""

    def __init__(self, state: State) -> None:
        self.version = state.version
        self.now_ms = state.now_ms
        self.settings = state.settings
        self.resources = state.resources
        self.tables = state.tables
        self.tree = state.tree
        self.pools = state.pool_views
        self.overlaps = state.overlaps
        self.node_pool = state.node_pool
        self.history = state.history
        self.worked_out = state.worked_out
        nodes = state.nodes.columns
        self.now_scalars = nodes.view("now_scalars")
        self.now_gpus = nodes.view("now_gpus")
        self.coming_scalars = nodes.view("coming_scalars")
        self.coming_gpus = nodes.view("coming_gpus")
        self.now_activity = nodes.view("now_activity")
        self.coming_activity = nodes.view("coming_activity")
        self.used_now = _read_only(state.occupancy.used_now)
        self.used_coming = _read_only(state.occupancy.used_coming)
        self.workloads = state.workloads
        """The table itself: decide reads columns and lists, and writes nothing (a test proves it)."""
        self.slots = state.slots


def view_pools(table: NodeTable, pools: Sequence[NodePool]) -> tuple[tuple[PoolView, ...], Ints]:
    """Sort the nodes into pools. Also returns the pool number of every node row."""
    fallback = next((i for i, pool in enumerate(pools) if pool.name == DEFAULT_POOL), 0)
    members: list[list[int]] = [[] for _ in pools]
    node_pool = np.zeros(len(table.nodes), dtype=np.int64)
    for name in sorted(table.row_of):
        row = table.row_of[name]
        node = table.nodes[row]
        assert node is not None
        number = pool_of(node, pools, fallback)
        members[number].append(row)
        node_pool[row] = number
    return tuple(
        _view(table, pool, i, rows) for i, (pool, rows) in enumerate(zip(pools, members, strict=True))
    ), node_pool


def overlapping_pools(nodes: Sequence[Node], pools: Sequence[NodePool]) -> dict[str, list[str]]:
    """Pool -> nodes that match it too but belong to a pool with an earlier name."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        matching = [p for p in pools if p.selector and p.selector.items() <= node.labels.items()]
        for pool in matching[1:]:
            found.setdefault(pool.name, []).append(node.name)
    return found


def pool_of(node: Node, pools: Sequence[NodePool], fallback: int) -> int:
    """The first pool, by name, whose selector matches; pools without a selector take nothing by themselves."""
    for i, pool in enumerate(pools):
        if pool.selector and pool.selector.items() <= node.labels.items():
            return i
    return fallback


def _view(table: NodeTable, pool: NodePool, index: int, members: list[int]) -> PoolView:
    rows = np.array(members, dtype=np.int64)
    columns = table.columns
    nodes = [node for row in members if (node := table.nodes[row]) is not None]
    width = max((device.index + 1 for node in nodes for device in node.devices), default=0)
    levels, names = _domains(pool, nodes)
    return PoolView(
        pool=pool,
        index=index,
        rows=rows,
        nodes=nodes,
        usable=np.array([node.ready and not node.cordoned for node in nodes], dtype=np.bool_),
        tainted=[i for i, node in enumerate(nodes) if node.taints],
        assignable=np.array([node.assignable for node in nodes], dtype=np.bool_),
        capacity_scalars=columns.capacity_scalars[rows],
        capacity_gpus=columns.capacity_gpus[rows, :width],
        gpu_model=columns.gpu_model[rows, :width],
        gpu_memory=columns.gpu_memory[rows, :width],
        nvlink_group=columns.nvlink_group[rows, :width],
        numa_node=columns.numa_node[rows, :width],
        unready_since=columns.unready_since[rows],
        levels=levels,
        domain_names=names,
    )


def _domains(pool: NodePool, nodes: list[Node]) -> tuple[dict[str, Ints], dict[str, list[str]]]:
    """Domains are told apart by all labels from the widest level down: rack 1 of zone a is not rack 1 of zone b."""
    levels: dict[str, Ints] = {}
    names: dict[str, list[str]] = {}
    for depth, key in enumerate(pool.levels):
        numbers: dict[tuple[str, ...], int] = {}
        column = np.full(len(nodes), -1, dtype=np.int64)
        for i, node in enumerate(nodes):
            if all(above in node.labels for above in pool.levels[: depth + 1]):
                full = tuple(node.labels[above] for above in pool.levels[: depth + 1])
                column[i] = numbers.setdefault(full, len(numbers))
        levels[key] = column
        names[key] = ["/".join(full) for full in numbers]
    levels[HOST_LEVEL] = np.arange(len(nodes), dtype=np.int64)
    names[HOST_LEVEL] = [node.name for node in nodes]
    return levels, names


def _read_only(array: Ints) -> Ints:
    view = array.view()
    view.flags.writeable = False
    return view
