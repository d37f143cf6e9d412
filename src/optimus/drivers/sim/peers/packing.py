"""FGD and Best-Fit as schedulers: first in, first out, each pod where the rule says.

    line         in the order of arrival; all pods of a job or none; who does not fit is passed, nobody is preempted
    placement    `placement.Fgd` or `placement.BestFit`, pod by pod, down to the device and to parts of one

Source: Weng et al., ATC'23, and its artifact, whose rules place a stream of pods each of which runs or is turned away;
see `placement` for the rules, and for how closely they meet the published figures.
Differences: here jobs end, and who finds no room waits for it. The frequencies of fgd, which the artifact counts over
the whole list, are those of the jobs that came so far, counted anew whenever their number has doubled: nobody knows
what will come. What sharing a device costs is the set-up's to say (`neighbours`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork, News, Seat
from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.peers.lines import Line
from optimus.drivers.sim.peers.placement import WHOLE, BestFit, Cluster, Fgd, Placer, Pod, Rule, Spot

MakeRule = Callable[[Cluster, Mapping[Pod, int]], Rule]
"""With how many pods of each kind came so far."""


class Packing:
    def __init__(self, name: str, rule: MakeRule) -> None:
        self.name = name
        self.every_round = False
        self._make_rule = rule

    def open(self, clock: Clockwork) -> None:
        nodes = clock.setup.nodes
        self._nodes = sorted(range(len(nodes)), key=lambda number: nodes[number].name)
        """Of the set-up, by row of the cluster: equal nodes are taken in the order of their names."""
        self._row = {node: row for row, node in enumerate(self._nodes)}
        most = max((len(node.devices) for node in nodes), default=0)
        inside = [nodes[number] for number in self._nodes]
        gpus = np.array([[WHOLE * (d < len(node.devices)) for d in range(max(most, 1))] for node in inside])
        self._device = [[device.index for device in node.devices] for node in inside]
        self._cluster = Cluster(
            gpus,
            np.array([node.cpu_milli for node in inside]),
            np.array([node.memory_mib for node in inside]),
            [node.devices[0].model if node.devices else "" for node in inside],
        )
        self._empty = Cluster(gpus, self._cluster.cpu, self._cluster.memory, self._cluster.models)
        self._came: Counter[Pod] = Counter()
        self._learn_at = 1
        self._line = Line()
        self._spots: dict[int, list[Spot]] = {}

    def decide(self, clock: Clockwork, news: News) -> None:
        self._take_back(clock, news)
        for index in news.arrived:
            job = clock.runs[index].job
            self._came[pod_of(job)] += job.replicas
            if not fits_empty(self._empty, pod_of(job), job.replicas):
                clock.reject(index, f"{job.replicas} x {job.gpus} GPUs do not fit into the empty cluster")
                continue
            self._wait(clock, index)
        if self._came.total() >= self._learn_at:
            self._learn_at = 2 * self._came.total()
            self._placer = Placer(self._cluster, self._make_rule(self._cluster, self._came))
        self._line.serve(lambda index: self._start(clock, index))

    def _wait(self, clock: Clockwork, index: int) -> None:
        job = clock.runs[index].job
        self._line.add((pod_of(job), job.replicas), index, index)

    def _take_back(self, clock: Clockwork, news: News) -> None:
        for node in news.nodes_down:
            self._cluster.close(self._row[node])
        for node in news.nodes_up:
            self._cluster.close(self._row[node], -1)
        lost = sorted({index for index, _ in news.gone if index in clock.active})
        for index in (*news.ended, *lost):
            for spot in self._spots.pop(index, ()):
                self._cluster.take_back(pod_of(clock.runs[index].job), spot)
        for index in lost:
            self._wait(clock, index)
        if news.ended or news.gone or news.nodes_up:
            self._line.open_all()

    def _start(self, clock: Clockwork, index: int) -> bool:
        job = clock.runs[index].job
        pod = pod_of(job)
        spots: list[Spot] = []
        for _ in range(job.replicas):
            spot = self._placer.place(pod)
            if spot is None:
                for taken in spots:
                    self._cluster.take_back(pod, taken)
                return False
            spots.append(spot)
        self._spots[index] = spots
        clock.place(index, {ordinal: self._seat(spot) for ordinal, spot in enumerate(spots)})
        return True

    def _seat(self, spot: Spot) -> Seat:
        return Seat(self._nodes[spot.node], tuple(self._device[spot.node][device] for device in spot.devices))


def pod_of(job: Job) -> Pod:
    """Parts of several devices are whole devices to these rules."""
    milli = 0 if not job.gpus else WHOLE if job.gpus > 1 else job.gpu_milli
    return Pod(job.cpu_milli, job.memory_mib, job.gpus, milli, tuple(sorted(speed.model for speed in job.models)))


def fits_empty(cluster: Cluster, pod: Pod, replicas: int) -> bool:
    """Whether so many fit when nothing else is there."""
    counts = np.full(len(cluster.cpu), replicas)
    for asked, free in ((pod.cpu_milli, cluster.cpu), (pod.memory_mib, cluster.memory)):
        if asked:
            counts = np.minimum(counts, free // asked)
    if pod.gpu_count:
        counts = np.minimum(counts, (cluster.gpus // pod.gpu_milli).sum(axis=1) // pod.gpu_count)
        counts *= np.array([not pod.models or model in pod.models for model in cluster.models])
    return bool(counts.sum() >= replicas)


def fgd() -> Packing:
    return Packing("fgd", Fgd)


def best_fit() -> Packing:
    return Packing("best-fit", lambda _cluster, _came: BestFit())
