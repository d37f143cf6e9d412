"""Since when a replica has been on an unhealthy device: a fact of two observations, the node's and the replica's.

Where devices are only counted nobody knows which replica is on which; there it is never said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimus.model.nodes import Node

if TYPE_CHECKING:
    from optimus.state.state import State


def note_health(state: State, node: int, now_ms: int, before: Node | None = None) -> None:
    """After a node, or a replica on it, was seen. `before`: how the node was described until now."""
    described = state.nodes.nodes[node]
    if described is None or (not _sick(described) and (before is None or not _sick(before))):
        return
    sick = _sick(described) if described.assignable else set()
    since = state.slots.columns.sick_since
    for slot in np.flatnonzero(state.slots.columns.view("node") == node).tolist():
        if sick.isdisjoint(state.slots.devices[slot]):
            since[slot] = -1
        elif since[slot] < 0:
            since[slot] = now_ms


def _sick(node: Node) -> set[int]:
    return {device.index for device in node.devices if not device.healthy}
