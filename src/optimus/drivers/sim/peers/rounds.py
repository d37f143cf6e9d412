"""The frame of schedulers that decide who has what, for all jobs at once, again and again.

    allocate(jobs) ──► node of each replica, by job ──► what differs from before is stopped and placed

A peer is a function of the jobs that are there and of what they have; the frame turns the difference into places. These
peers share out GPUs and nothing else: work without GPUs starts at once, on any node, and they do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from optimus.drivers.sim.clockwork import Clockwork, News, Run, Seat
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.room import Room, refuse_impossible

Nodes = tuple[int, ...]
"""The node of each replica, in order."""


class Allocate(Protocol):
    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        """Who has what from now on. Jobs that are not named, or have no node, wait."""


Pick = Callable[[dict[int, int], int, int], Nodes]
"""Nodes for so many replicas of so many GPUs, out of what is free."""


class RoundScheduler:
    def __init__(self, name: str, allocate: Allocate, *, every_round: bool = True) -> None:
        """`every_round`: what it decides may change although nothing happened."""
        self.name = name
        self.every_round = every_round
        self._allocate = allocate
        self._held: dict[int, Nodes] = {}

    def open(self, clock: Clockwork) -> None:
        self._held = {}
        self._empty = Room(clock)
        self._some_without_gpus = any(not run.job.gpus for run in clock.runs)

    def decide(self, clock: Clockwork, news: News) -> None:
        for index in news.arrived:
            if clock.runs[index].job.least == clock.runs[index].job.replicas:
                refuse_impossible(clock, self._empty, index)
        if not clock.active:
            return
        jobs: Mapping[int, Run] = clock.active
        if self._some_without_gpus:
            self._start_without_gpus(clock)
            jobs = {index: run for index, run in clock.active.items() if run.job.gpus}
            if not jobs:
                return
        held = {index: nodes for index, nodes in self._held.items() if index in clock.running}
        wanted = {i: tuple(n) for i, n in self._allocate(jobs, held, clock).items() if n}
        changed: dict[int, Mapping[int, Seat]] = {}
        for index in sorted(held.keys() | wanted.keys()):  # in order of arrival
            nodes = wanted.get(index, ())
            if nodes != held.get(index, ()):
                changed[index] = {ordinal: Seat(node) for ordinal, node in enumerate(nodes)}
        clock.rearrange(changed)
        self._held = wanted

    def _start_without_gpus(self, clock: Clockwork) -> None:
        node = next((node for node, up in enumerate(clock.up) if up), None)
        for index, run in clock.active.items():
            if node is not None and not run.job.gpus and run.waits:
                clock.place(index, dict.fromkeys(range(run.job.replicas), Seat(node)))


def fullest_free_first(free: dict[int, int], replicas: int, gpus: int = 1) -> Nodes:
    """Replica by replica from the node with most free GPUs, as many as it has; takes them out of `free`. Nothing where
    they do not fit, which cannot happen with replicas of one GPU that fit by number."""
    nodes: list[int] = []
    while len(nodes) < replicas:
        node = max(free, key=lambda n: (free[n], -n))
        count = min(free[node] // gpus, replicas - len(nodes))
        if not count:
            return _undo(free, nodes, gpus)
        nodes += [node] * count
        free[node] -= count * gpus
    return tuple(nodes)


def together(free: dict[int, int], replicas: int, gpus: int = 1) -> Nodes:
    """As few nodes as possible, and among those that hold the rest alone the fullest; takes them out of `free`."""
    nodes: list[int] = []
    while len(nodes) < replicas:
        left = (replicas - len(nodes)) * gpus
        enough = [n for n in free if free[n] >= left]
        node = min(enough, key=lambda n: (free[n], n)) if enough else max(free, key=lambda n: (free[n], -n))
        count = min(free[node] // gpus, replicas - len(nodes))
        if not count:
            return _undo(free, nodes, gpus)
        nodes += [node] * count
        free[node] -= count * gpus
    return tuple(nodes)


def seat(clock: Clockwork, job: Job, free: dict[int, int], replicas: int = 0, how: Pick = together) -> Nodes:
    """So many replicas of a job (by default as asked for) on models it may run on; takes them out of `free`."""
    if not job.models:
        return how(free, replicas or job.replicas, job.gpus)
    allowed = {speed.model for speed in job.models}
    nodes = clock.setup.nodes
    some = {n: left for n, left in free.items() if nodes[n].devices and nodes[n].devices[0].model in allowed}
    found = how(some, replicas or job.replicas, job.gpus) if some else ()
    free.update(some)
    return found


def _undo(free: dict[int, int], nodes: list[int], gpus: int) -> Nodes:
    for node in nodes:
        free[node] += gpus
    return ()


def free_gpus(clock: Clockwork, held: Mapping[int, Nodes]) -> dict[int, int]:
    """Whole GPUs by node when only `held` is there."""
    free = {node: capacity // 1000 for node, capacity in enumerate(clock.capacity) if clock.up[node]}
    for index, nodes in held.items():
        gpus = clock.runs[index].job.gpus
        for node in nodes:
            free[node] -= gpus
    return free
