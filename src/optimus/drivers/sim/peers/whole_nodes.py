"""Placement in whole nodes: jobs of one node's size or less share nodes, larger ones have theirs alone.

With sizes that divide a node (1, 2, 4 of 4) and multiples of it, any choice that fits by count fits in fact, two
distributed jobs never meet on a node, and a job that keeps its size keeps its place unless a larger one needs it.
Replicas of several GPUs are that many places side by side. Where somebody has another size (3 GPUs of a node of 4, a
rigid job as it was asked for), choices are seated as far as they go, and what is left goes to the next (`seating`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, seat
from optimus.drivers.sim.peers.seating import fill


def sizes_for(per_node: int, most: int) -> tuple[int, ...]:
    """1, 2, 4 … up to a node, then whole nodes."""
    small = [1]
    while small[-1] * 2 <= per_node:
        small.append(small[-1] * 2)
    return tuple(k for k in (*small, *range(2 * per_node, most + 1, per_node)) if k <= most)


def gpu_sizes(run: Run, per_node: int, total: int, most: int) -> list[int]:
    """GPUs it may have: of those for a node, or as asked for where it has one size; `most` replicas."""
    job = run.job
    if job.least == job.most:
        return [job.total_gpus] if job.gpus <= per_node and job.total_gpus <= total else []
    allowed = {size * job.gpus for size in job.sizes or range(job.least, job.most + 1) if size <= most}
    return [size for size in sizes_for(per_node, total) if size in allowed]


def place_gpus(
    gpus: Mapping[int, int],
    jobs: Mapping[int, Run],
    held: Mapping[int, Nodes],
    nodes: list[int],
    per_node: int,
    clock: Clockwork,
    others: Mapping[int, Sequence[int]],
) -> dict[int, Nodes]:
    """Nodes of each replica, for so many GPUs of each job. `others` may have so many in the place of who finds none."""
    each = {index: jobs[index].job.gpus for index in gpus}
    tidy = set(sizes_for(per_node, per_node * len(nodes)))
    if all(size in tidy for size in gpus.values() if size) and all(per_node % count == 0 for count in each.values()):
        side_by_side = {i: tuple(n for n in places for _ in range(each[i])) for i, places in held.items() if i in each}
        placed = place_whole(gpus, side_by_side, nodes, per_node)
        return {index: places[:: each[index]] for index, places in placed.items()}
    sizes = {index: size // each[index] for index, size in gpus.items() if size}
    kept = {index: held[index] for index, size in sizes.items() if len(held.get(index, ())) == size}
    free = dict.fromkeys(nodes, per_node)
    for index, places in kept.items():
        for node in places:
            free[node] -= each[index]
    moved = sorted((i for i in sizes if i not in kept), key=lambda i: (-gpus[i], i))
    placed = kept | {index: seat(clock, jobs[index].job, free, sizes[index]) for index in moved}
    if all(placed.values()):
        return placed

    def tries(index: int) -> list[int]:
        return [sizes[index]] if index in sizes else [size // jobs[index].job.gpus for size in reversed(others[index])]

    return placed | fill((*sizes, *others), tries, jobs, held, placed, free, clock)


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
