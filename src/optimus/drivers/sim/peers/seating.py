"""Places for those who were chosen by the number of their GPUs.

Why: papers count GPUs, and with replicas of one GPU that is all there is to it. Replicas of several GPUs need them on
one node: a job may find no place although there are enough GPUs for it, and they must not idle while others wait.
Owns: what happens then. Those chosen behind it leave their places, the last first, as far as that helps; what still has
no place is passed; what is free in the end goes to whoever can take it. Where every replica has one GPU, and any GPU
will do, none of this ever happens.
Must not: choose an order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, Pick, free_gpus, seat, together

Tries = Callable[[int], Iterable[int]]
"""Numbers of replicas that a job may be given, the best first."""


def seat_in_order(
    order: Sequence[int],
    jobs: Mapping[int, Run],
    held: Mapping[int, Nodes],
    clock: Clockwork,
    *,
    how: Pick = together,
    firm: Mapping[int, Nodes] | None = None,
) -> dict[int, Nodes]:
    """What each asks for, the first in line first; `firm` are not in line and keep what they have."""
    placed = dict(firm or {})
    free = free_gpus(clock, placed)
    left = sum(free.values())
    chosen = []
    for index in order:
        if jobs[index].job.total_gpus <= left:
            chosen.append(index)
            left -= jobs[index].job.total_gpus
        if not left:
            break
    kept = {index: held[index] for index in chosen if index in held}
    for index, nodes in kept.items():
        _take(free, nodes, jobs[index].job.gpus)
    for index in chosen:
        nodes = kept.pop(index, ()) or seat(clock, jobs[index].job, free, how=how)
        nodes = nodes or _instead_of_others(index, jobs, kept, free, clock, how)
        if nodes:
            placed[index] = nodes
    return placed | fill(order, lambda i: (jobs[i].job.replicas,), jobs, held, placed, free, clock, how)


def _instead_of_others(
    index: int, jobs: Mapping[int, Run], kept: dict[int, Nodes], free: dict[int, int], clock: Clockwork, how: Pick
) -> Nodes:
    """A place for one that has none, if others leave theirs; who did not have to leave takes its place again."""
    before = dict(free)
    nodes: Nodes = ()
    gone = []
    for other in reversed(kept):
        _take(free, kept[other], -jobs[other].job.gpus)
        gone.append(other)
        nodes = seat(clock, jobs[index].job, free, how=how)
        if nodes:
            break
    if not nodes:
        free.update(before)
        return ()
    for other in reversed(gone):
        if not _take(free, kept[other], jobs[other].job.gpus):
            del kept[other]
    return nodes


def fill(
    order: Iterable[int],
    tries: Tries,
    jobs: Mapping[int, Run],
    held: Mapping[int, Nodes],
    placed: Mapping[int, Nodes],
    free: dict[int, int],
    clock: Clockwork,
    how: Pick = together,
) -> dict[int, Nodes]:
    """Places for more of them in what is free, which is taken; where they were, if they can stay there."""
    more: dict[int, Nodes] = {}
    in_vain: set[tuple[object, ...]] = set()
    left = sum(free.values())
    for index in order:
        if left <= 0:
            break
        if placed.get(index):
            continue
        job = jobs[index].job
        nodes = held.get(index, ())
        if not nodes or not _take(free, nodes, job.gpus):
            nodes = ()
            for size in tries(index):
                asked = (size, job.gpus, job.models)
                if size * job.gpus > left or asked in in_vain:
                    continue
                nodes = seat(clock, job, free, size, how)
                if nodes:
                    break
                in_vain.add(asked)  # there will only be less
        if nodes:
            more[index] = nodes
            left -= len(nodes) * job.gpus
    return more


def _take(free: dict[int, int], nodes: Nodes, gpus: int) -> bool:
    """Whether replicas of so many GPUs fit exactly there; then they take them. Below 0: they give them back."""
    for node in nodes:
        free[node] -= gpus
    if all(free[node] >= 0 for node in nodes):
        return True
    for node in nodes:
        free[node] += gpus
    return False
