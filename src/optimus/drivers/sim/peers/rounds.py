"""The frame of schedulers that decide who has what, for all jobs at once, again and again.

    allocate(jobs) ──► node of each replica, by job ──► what differs from before is stopped and placed

A peer is a function of the jobs that are there and of what they have; the frame turns the difference into places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from optimus.drivers.sim.clockwork import Clockwork, News, Run, Seat

Nodes = tuple[int, ...]
"""The node of each replica, in order."""


class Allocate(Protocol):
    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        """Who has what from now on. Jobs that are not named, or have no node, wait."""


class RoundScheduler:
    def __init__(self, name: str, allocate: Allocate) -> None:
        self.name = name
        self.every_round = True
        self._allocate = allocate
        self._held: dict[int, Nodes] = {}

    def open(self, clock: Clockwork) -> None:  # noqa: ARG002  (a peer knows nothing before its first round)
        self._held = {}

    def decide(self, clock: Clockwork, news: News) -> None:  # noqa: ARG002  (it looks at everything anew)
        if not clock.active:
            return
        held = {index: nodes for index, nodes in self._held.items() if index in clock.running}
        wanted = {i: tuple(n) for i, n in self._allocate(clock.active, held, clock).items() if n}
        changed: dict[int, Mapping[int, Seat]] = {}
        for index in clock.active:
            nodes = wanted.get(index, ())
            if nodes != held.get(index, ()):
                changed[index] = {ordinal: Seat(node) for ordinal, node in enumerate(nodes)}
        clock.rearrange(changed)
        self._held = wanted


def fullest_free_first(free: dict[int, int], replicas: int) -> Nodes:
    """Replica by replica from the node with most free GPUs, as many as it has; takes them out of `free`."""
    nodes: list[int] = []
    while len(nodes) < replicas:
        node = max(free, key=lambda n: (free[n], -n))
        count = min(free[node], replicas - len(nodes))
        nodes += [node] * count
        free[node] -= count
    return tuple(nodes)


def free_gpus(clock: Clockwork, held: Mapping[int, Nodes]) -> dict[int, int]:
    """Whole GPUs by node when only `held` is there."""
    free = {node: capacity // 1000 for node, capacity in enumerate(clock.capacity) if clock.up[node]}
    for nodes in held.values():
        for node in nodes:
            free[node] -= 1
    return free
