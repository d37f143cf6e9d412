"""Placement in whole nodes: jobs of one node's size or less share nodes, larger ones have theirs alone.

With sizes that divide a node (1, 2, 4 of 4) and multiples of it, any choice that fits by count fits in fact, two
distributed jobs never meet on a node, and a job that keeps its size keeps its place unless a larger one needs it.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.drivers.sim.peers.rounds import Nodes


def sizes_for(per_node: int, most: int) -> tuple[int, ...]:
    """1, 2, 4 … up to a node, then whole nodes."""
    small = [1]
    while small[-1] * 2 <= per_node:
        small.append(small[-1] * 2)
    return tuple(k for k in (*small, *range(2 * per_node, most + 1, per_node)) if k <= most)


def place_whole(
    sizes: Mapping[int, int], held: Mapping[int, Nodes], nodes: list[int], per_node: int
) -> dict[int, Nodes]:
    """Nodes of each replica. Who keeps its size keeps its place, as far as that is possible."""
    kept = {i: held[i] for i, k in sizes.items() if k and len(held.get(i, ())) == k and set(held[i]) <= set(nodes)}
    free = dict.fromkeys(nodes, per_node)
    for places in kept.values():
        for node in places:
            free[node] -= 1
    placed = dict(kept)
    small_on: dict[int, list[int]] = {node: [] for node in nodes}
    for index, places in kept.items():
        if sizes[index] < per_node:
            small_on[places[0]].append(index)
    taken = {node for index, places in kept.items() if sizes[index] >= per_node for node in places}
    large = sorted((i for i, k in sizes.items() if k >= per_node and i not in kept), key=lambda i: (-sizes[i], i))
    for index in large:
        mine = set(held.get(index, ()))
        open_nodes = sorted((n for n in nodes if n not in taken), key=lambda n: (per_node - free[n], n not in mine, n))
        chosen = sorted(open_nodes[: sizes[index] // per_node])
        for node in chosen:
            for displaced in small_on[node]:
                del placed[displaced]
            small_on[node] = []
            free[node] = 0
        taken.update(chosen)
        placed[index] = tuple(node for node in chosen for _ in range(per_node))
    waiting = sorted(
        (i for i, k in sizes.items() if 0 < k < per_node and i not in placed), key=lambda i: (-sizes[i], i)
    )
    while waiting:
        index = waiting.pop(0)
        need = sizes[index]
        fitting = [n for n in nodes if free[n] >= need]
        if fitting:
            node = min(fitting, key=lambda n: (free[n], n))
        else:  # by count there is room: push smaller ones out of the node that lacks least
            node = max((n for n in nodes if n not in taken), key=lambda n: (free[n], -n))
            for other in sorted(small_on[node], key=lambda i: (sizes[i], i)):
                if free[node] >= need:
                    break
                if sizes[other] < need:
                    small_on[node].remove(other)
                    del placed[other]
                    free[node] += sizes[other]
                    waiting.append(other)
            waiting.sort(key=lambda i: (-sizes[i], i))
            if free[node] < need:
                continue
        free[node] -= need
        small_on[node].append(index)
        placed[index] = (node,) * need
    return placed
