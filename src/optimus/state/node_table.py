"""Nodes as rows: what each has, what is free now, what will be free.

Free = capacity - used, and may be negative: a device can die or a foreign pod can land under running work.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node, accelerator_counts
from optimus.model.rules import implied_capacity, is_counter
from optimus.state.arrays import Columns, Ints
from optimus.state.resources import ResourceIndex

NOW = "now"
COMING = "coming"
_FREE = {ledger: (f"{ledger}_scalars", f"{ledger}_gpus", f"{ledger}_activity") for ledger in (NOW, COMING)}


class NodeTable:
    def __init__(self, resources: ResourceIndex) -> None:
        self.resources = resources
        self.version = 0
        """Changes whenever a description changes; tells when views of the nodes must be made anew."""
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        scalars = resources.count - 1
        self.columns = Columns(
            capacity_scalars=(0, scalars),
            capacity_gpus=(0, 8),
            now_scalars=(0, scalars),
            now_gpus=(0, 8),
            coming_scalars=(0, scalars),
            coming_gpus=(0, 8),
            now_activity=(0, 8),
            coming_activity=(0, 8),
            gpu_model=(-1, 8),
            gpu_memory=(0, 8),
            nvlink_group=(-1, 8),
            numa_node=(-1, 8),
            unready_since=-1,
        )

    def put(self, node: Node, now_ms: int) -> int:
        """Add a node or take over its new description; what is used stays used."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self.columns.add()
            self.row_of[node.name] = row
            if row == len(self.nodes):
                self.nodes.append(node)
        self.nodes[row] = node
        accelerators = accelerator_counts(node)
        for name in (*accelerators, *filter(is_counter, node.foreign.accelerators)):
            self.resources.column(name)
        width = max((device.index + 1 for device in node.devices), default=0)
        self._widen(width)
        self._set_capacity(row, node, accelerators)
        columns = self.columns
        for name in ("gpu_model", "nvlink_group", "numa_node"):
            getattr(columns, name)[row] = -1
        columns.gpu_memory[row] = 0
        for device in node.devices:
            if device.mig:
                continue  # its instances are accelerators; as a GPU it is not there
            columns.gpu_model[row, device.index] = self.resources.model(device.model)
            columns.gpu_memory[row, device.index] = device.memory_mib
            columns.nvlink_group[row, device.index] = device.nvlink_group
            columns.numa_node[row, device.index] = device.numa_node
        if node.ready:
            columns.unready_since[row] = -1
        elif columns.unready_since[row] < 0:
            columns.unready_since[row] = now_ms
        self.version += 1
        return row

    def remove(self, name: str) -> None:
        row = self.row_of.pop(name)
        self.nodes[row] = None
        self.columns.free(row)
        self.version += 1

    def take(
        self, ledger: str, row: int, scalars: Ints, devices: Sequence[int], milli: int, activity_milli: int
    ) -> None:
        """Count a replica against one of the ledgers; a negative replica gives back."""
        free_scalars, free_gpus, load = _FREE[ledger]
        getattr(self.columns, free_scalars)[row] -= scalars
        if devices:
            gpus: Ints = getattr(self.columns, free_gpus)
            for device in devices:
                gpus[row, device] -= milli
            if activity_milli:
                activity: Ints = getattr(self.columns, load)
                for device in devices:
                    activity[row, device] += activity_milli

    def is_over_promised(self, row: int) -> bool:
        """Whether more is in use or promised than there will be."""
        return bool((self.columns.coming_scalars[row] < 0).any() or (self.columns.coming_gpus[row] < 0).any())

    def name(self, row: int) -> str:
        node = self.nodes[row]
        assert node is not None
        return node.name

    def _widen(self, devices: int) -> None:
        columns = self.columns
        scalars = self.resources.count - 1
        known = columns.capacity_scalars.shape[1]
        for name in ("capacity_scalars", "now_scalars", "coming_scalars"):
            columns.widen(name, scalars)
            for column in range(known, scalars):
                getattr(columns, name)[list(self.row_of.values()), column] = self._implied(column)
        for ledger in (NOW, COMING):
            columns.widen(f"{ledger}_gpus", devices)
            columns.widen(f"{ledger}_activity", devices)
        for name in ("capacity_gpus", "gpu_model", "gpu_memory", "nvlink_group", "numa_node"):
            columns.widen(name, devices)

    def widen_scalars(self) -> None:
        """After a workload named an accelerator that no node has."""
        self._widen(0)

    def _implied(self, column: int) -> int:
        """What a node has of it without saying so: of counters only."""
        name = self.resources.names[column + 1]
        return implied_capacity(name) if is_counter(name) else 0

    def _set_capacity(self, row: int, node: Node, accelerators: dict[str, int]) -> None:
        columns = self.columns
        scalars = columns.capacity_scalars[row].copy()
        scalars[:] = 0
        scalars[0] = node.cpu_milli - node.foreign.cpu_milli
        scalars[1] = node.memory_mib - node.foreign.memory_mib
        for column in range(2, len(scalars)):
            scalars[column] = self._implied(column) - node.foreign.accelerators.get(self.resources.names[column + 1], 0)
        for name, count in accelerators.items():
            scalars[self.resources.columns[name] - 1] = count - node.foreign.accelerators.get(name, 0)
        gpus = columns.capacity_gpus[row].copy()
        gpus[:] = 0
        for device in node.devices:
            if device.healthy and not device.mig:
                gpus[device.index] = WHOLE_DEVICE_MILLI - node.foreign.gpu_milli.get(device.index, 0)
        for ledger in (NOW, COMING):
            getattr(columns, f"{ledger}_scalars")[row] += scalars - columns.capacity_scalars[row]
            getattr(columns, f"{ledger}_gpus")[row] += gpus - columns.capacity_gpus[row]
        columns.capacity_scalars[row] = scalars
        columns.capacity_gpus[row] = gpus
