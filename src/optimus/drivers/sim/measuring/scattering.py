"""Scattering: which of the free GPUs are of no use to the jobs that there are, device by device.

Why: ten half-free devices are five free GPUs in every sum, and no place for a single whole one.
Owns: the mix of requests, what the room on one node is to it, and sums over nodes that follow the clockwork.
Must not: decide when it is looked at, or ask for room that jobs do not ask for.

Fragmentation after Weng et al. (FGD, ATC'23), for a replica drawn from the mix of all jobs:

    F_n(m) = all free GPU of node n, if a replica of class m cannot run there (devices, CPU, memory, model);
             else the free parts of devices that are smaller than it needs of each
    F      = sum over nodes n and classes m of (share of m among the jobs) x F_n(m)

Jobs without GPUs are in no class: they can use none, wherever it is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring.columns import Ints

_PLENTY = 1 << 40
_REMEMBERED = 5_000
"""Rooms whose worth is kept; with whole devices there are a handful, with shares and CPU no end of them."""


class Need(NamedTuple):
    """Of one replica. Replicas that ask for the same are one class."""

    gpus: int
    gpu_milli: int
    """Of each device."""
    cpu_milli: int
    memory_mib: int
    models: tuple[str, ...]
    """Allowed; empty: any."""


def need_of(job: Job) -> Need:
    models = tuple(sorted(speed.model for speed in job.models))
    return Need(job.gpus, job.gpu_milli, job.cpu_milli, job.memory_mib, models)


class Room(NamedTuple):
    """What is free on a node. Nodes with the same room are worth the same."""

    devices: tuple[int, ...]
    """Thousandths of each, in rising order."""
    cpu_milli: int
    memory_mib: int
    model: str


class Worth(NamedTuple):
    free_milli: int
    fragments: int
    """Thousandths of GPUs that are of no use, summed over all jobs of the mix."""
    replicas: Ints
    """How many fit, by class."""


class Mix:
    def __init__(self, jobs: Iterable[Job]) -> None:
        asking = [job for job in jobs if job.gpus]
        classes = Counter(map(need_of, asking))
        self.jobs = len(asking)
        self.needs = sorted(classes)
        self.feeds = any(need.cpu_milli or need.memory_mib for need in self.needs)
        """Whether anybody asks for CPU or memory; if not, they make no difference."""
        self._count = np.array([classes[need] for need in self.needs], np.int64)
        columns = np.array([need[:4] for need in self.needs], np.int64).reshape(-1, 4)
        self._gpus, self._milli, self._cpu, self._memory = columns.T
        self._known: dict[Room, Worth] = {}
        number = {need: i for i, need in enumerate(self.needs)}
        gangs = {(job.least * job.gpu_milli_per_replica, number[need_of(job)], job.least) for job in asking}
        self._gangs = np.array(sorted(gangs), np.int64).reshape(-1, 3)
        """GPUs in all, class and replicas of every job at its least size; the largest is the last."""

    def worth(self, room: Room) -> Worth:
        found = self._known.get(room)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[room] = self._weigh(room)
        return found

    def largest(self, replicas: Ints) -> int:
        """Thousandths of GPUs of the largest job that could start where so many of each class fit."""
        fits = np.flatnonzero(replicas[self._gangs[:, 1]] >= self._gangs[:, 2])
        return int(self._gangs[fits[-1], 0]) if len(fits) else 0

    def _weigh(self, room: Room) -> Worth:
        free = np.array(room.devices, np.int64)
        replicas = self._fitting(free // self._milli[:, None])
        for asked, left in ((self._cpu, room.cpu_milli), (self._memory, room.memory_mib)):
            replicas = np.minimum(replicas, np.where(asked > 0, max(left, 0) // np.maximum(asked, 1), _PLENTY))
        replicas = replicas * [not need.models or room.model in need.models for need in self.needs]
        small = np.where(free < self._milli[:, None], free, 0).sum(axis=1)
        useless = np.where(replicas > 0, small, free.sum())
        return Worth(int(free.sum()), int(self._count @ useless), replicas)

    def _fitting(self, parts: Ints) -> Ints:
        """How many replicas have all their devices, each on another one; `parts` go into the devices, by class."""
        replicas: Ints = parts.sum(axis=1) // self._gpus
        while (short := np.minimum(parts, replicas[:, None]).sum(axis=1) < replicas * self._gpus).any():
            replicas = replicas - short
        return replicas


class Scattering:
    """Sums over all nodes that are up; only nodes on which something changed are looked at again."""

    def __init__(self, clock: Clockwork) -> None:
        self.mix = Mix(run.job for run in clock.runs)
        nothing = Worth(0, 0, np.zeros(len(self.mix.needs), np.int64))
        self._worth = [nothing] * len(clock.setup.nodes)
        self._nothing = nothing
        self._free = self._fragments = 0
        self._replicas = nothing.replicas.copy()
        clock.touched.update(range(len(clock.setup.nodes)))

    def look(self, clock: Clockwork) -> tuple[float, float, float]:
        """Free GPUs, fragments among them, and GPUs of the largest job that could start at once."""
        for node in clock.touched:
            old, new = self._worth[node], self._at(clock, node)
            if new is not old:
                self._worth[node] = new
                self._free += new.free_milli - old.free_milli
                self._fragments += new.fragments - old.fragments
                self._replicas += new.replicas - old.replicas
        clock.touched.clear()
        scattered = self._fragments / max(self.mix.jobs, 1)
        return self._free / 1000, scattered / 1000, self.mix.largest(self._replicas) / 1000

    def _at(self, clock: Clockwork, node: int) -> Worth:
        if not clock.up[node]:
            return self._nothing
        machine = clock.setup.nodes[node]
        model = machine.devices[0].model if machine.devices else ""
        cpu, memory = self._left(clock, node) if self.mix.feeds else (0, 0)
        return self.mix.worth(Room(tuple(clock.free_devices(node)), cpu, memory, model))

    def _left(self, clock: Clockwork, node: int) -> Sequence[int]:
        machine = clock.setup.nodes[node]
        cpu, memory = machine.cpu_milli, machine.memory_mib
        for index, replicas in clock.neighbours(node).items():
            job = clock.runs[index].job
            cpu -= replicas * job.cpu_milli
            memory -= replicas * job.memory_mib
        return cpu, memory
