"""What is free, as schedulers without GPU sharing see it: whole GPUs, CPU and memory by node.

A share of a GPU takes the whole device here, as it does with a device plugin. Peers that share devices keep their own
books.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimus.drivers.sim.clockwork import Clockwork, Seat
from optimus.drivers.sim.jobs import Job

Ints = NDArray[np.int64]

UNSAID_CPU_MILLI, UNSAID_MEMORY_MIB = 100, 200
"""What kube-scheduler scores a pod with that asks for nothing; it may still start anywhere."""


class Need(NamedTuple):
    """Of one replica."""

    gpus: int
    cpu_milli: int
    memory_mib: int
    models: tuple[str, ...]
    """Allowed; empty: any."""


def need_of(job: Job) -> Need:
    return Need(job.gpus, job.cpu_milli, job.memory_mib, tuple(m.model for m in job.models))


class Room:
    def __init__(self, clock: Clockwork) -> None:
        nodes = clock.setup.nodes
        self.gpus_of = np.array([len(node.devices) for node in nodes])
        self.cpu_of = np.array([node.cpu_milli for node in nodes])
        self.memory_of = np.array([node.memory_mib for node in nodes])
        self.model = [node.devices[0].model if node.devices else "" for node in nodes]
        self.up = np.array(clock.up)
        self.gpus, self.cpu, self.memory = self.gpus_of.copy(), self.cpu_of.copy(), self.memory_of.copy()
        """Free now."""
        self.all_gpus = int(self.gpus.sum())
        """Free on all nodes, up or not: a quick no."""
        self.asked_cpu, self.asked_memory = np.zeros_like(self.cpu), np.zeros_like(self.memory)
        """For scores: what the pods on a node ask for, with something for those that ask for nothing."""
        self._allowed: dict[tuple[str, ...], NDArray[np.bool_]] = {}

    def counts(self, need: Need) -> Ints:
        """How many such replicas fit on each node."""
        counts: Ints = self._fitting(need, self.gpus, self.cpu, self.memory) * self.up
        return counts

    def holds(self, need: Need, replicas: int) -> bool:
        """Whether so many fit now."""
        if need.gpus * replicas > self.all_gpus:
            return False
        return bool(self.counts(need).sum() >= replicas)

    def could_ever(self, need: Need, replicas: int) -> bool:
        """Whether the empty cluster holds them."""
        return bool(self._fitting(need, self.gpus_of, self.cpu_of, self.memory_of).sum() >= replicas)

    def move(self, need: Need, node: int, sign: int = 1) -> None:
        """A replica comes (1) or goes (-1)."""
        self.gpus[node] -= sign * need.gpus
        self.all_gpus -= sign * need.gpus
        self.cpu[node] -= sign * need.cpu_milli
        self.memory[node] -= sign * need.memory_mib
        self.asked_cpu[node] += sign * (need.cpu_milli or UNSAID_CPU_MILLI)
        self.asked_memory[node] += sign * (need.memory_mib or UNSAID_MEMORY_MIB)

    def _fitting(self, need: Need, gpus: Ints, cpu: Ints, memory: Ints) -> Ints:
        fitting = np.full(len(gpus), 1 << 30)
        for asked, free in ((need.gpus, gpus), (need.cpu_milli, cpu), (need.memory_mib, memory)):
            if asked:
                fitting = np.minimum(fitting, free // asked)
        if need.models:
            if need.models not in self._allowed:
                self._allowed[need.models] = np.array([model in need.models for model in self.model])
            fitting = fitting * self._allowed[need.models]
        return fitting


def seats_on(nodes: Iterable[int]) -> Mapping[int, Seat]:
    return {ordinal: Seat(node) for ordinal, node in enumerate(nodes)}


def refuse_impossible(clock: Clockwork, room: Room, index: int) -> bool:
    """A job that the empty cluster cannot hold is refused, for otherwise it would wait for ever."""
    job = clock.runs[index].job
    if room.could_ever(need_of(job), job.replicas):
        return False
    clock.reject(index, f"{job.replicas} x {job.gpus} GPUs do not fit into the empty cluster")
    return True
