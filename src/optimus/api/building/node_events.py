"""Events of nodes and devices: they fail, recover, are cordoned, removed or changed.

Why: a node is reported whole, so every event is its new description.
Owns: those descriptions.
Must not: touch what runs there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from optimus.api.building.world import World
from optimus.api.locating import locate_node
from optimus.api.marks import Loc
from optimus.api.specs.cycles import FailSpec, NodePatch, RecoverSpec
from optimus.model.nodes import Node
from optimus.model.observations import NodeGone, NodeSeen, Observation
from optimus.model.validation import node_problems


class NodeEvents:
    def __init__(self, world: World) -> None:
        self.world = world

    def fail(self, spec: FailSpec, loc: Loc) -> list[Observation]:
        found = self._set(spec.nodes, (*loc, "nodes"), ready=False)
        return found + self._devices(spec.devices, (*loc, "devices"), healthy=False)

    def recover(self, spec: RecoverSpec, loc: Loc) -> list[Observation]:
        found = self._set(spec.nodes, (*loc, "nodes"), ready=True)
        return found + self._devices(spec.devices, (*loc, "devices"), healthy=True)

    def cordon(self, names: tuple[str, ...], loc: Loc, *, cordoned: bool) -> list[Observation]:
        return self._set(names, loc, cordoned=cordoned)

    def remove(self, names: tuple[str, ...], loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for name in names:
            for node in self.world.find_nodes(name, loc):
                del self.world.nodes[node]
                found.append(NodeGone(node))
        return found

    def change(self, patches: tuple[NodePatch, ...], loc: Loc) -> list[Observation]:
        found: list[Observation] = []
        for i, patch in enumerate(patches):
            for name in self.world.find_nodes(patch.name, (*loc, i, "name")):
                node = _patched(self.world.nodes[name], patch)
                if not self.world.report.problems((*loc, i), node_problems(node), locate_node):
                    found += self.seen([node])
        return found

    def seen(self, nodes: Iterable[Node]) -> list[Observation]:
        found: list[Observation] = []
        for node in nodes:
            self.world.nodes[node.name] = node
            found.append(NodeSeen(node))
        return found

    def _set(self, names: tuple[str, ...], loc: Loc, **fields: Any) -> list[Observation]:
        nodes = [self.world.nodes[node] for name in names for node in self.world.find_nodes(name, loc)]
        return self.seen([structs.replace(node, **fields) for node in nodes])

    def _devices(self, by_node: dict[str, tuple[int, ...]], loc: Loc, *, healthy: bool) -> list[Observation]:
        found: list[Observation] = []
        for name, indices in by_node.items():
            for node in self.world.find_nodes(name, (*loc, name)):
                before = self.world.nodes[node]
                unknown = set(indices) - {device.index for device in before.devices}
                if unknown:
                    self.world.report.add((*loc, name), f"node {node} has no device {min(unknown)}")
                devices = tuple(
                    structs.replace(device, healthy=healthy) if device.index in indices else device
                    for device in before.devices
                )
                found += self.seen([structs.replace(before, devices=devices)])
        return found


def _patched(node: Node, patch: NodePatch) -> Node:
    return structs.replace(
        node,
        labels=node.labels if patch.labels is None else {**node.labels, **patch.labels},
        taints=node.taints if patch.taints is None else tuple(taint.to_taint() for taint in patch.taints),
        cpu_milli=node.cpu_milli if patch.cpu is None else patch.cpu,
        memory_mib=node.memory_mib if patch.memory is None else patch.memory,
        accelerators=node.accelerators if patch.accelerators is None else dict(patch.accelerators),
    )
