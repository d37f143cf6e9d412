"""Tiresias, two-dimensional least attained service with two queues.

Source: Gu et al., NSDI'19; parameters as in the Pollux artifact: one threshold of 16 GPU-hours, arrival order inside a
queue, a job that fits keeps or gets its GPUs, the rest is preempted. Placement: most free GPUs first.
Differences: none known to the artifact; the paper's promotion of starved jobs is off there and here.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus, fullest_free_first

THRESHOLD_GPU_MS = 16 * 3_600_000


class Tiresias:
    def __init__(self, threshold_gpu_ms: int = THRESHOLD_GPU_MS) -> None:
        self._threshold = threshold_gpu_ms
        self._fresh: dict[int, None] = {}
        self._worn: dict[int, None] = {}
        self._ran_ms: dict[int, int] = {}
        self._looked_ms = 0

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        passed, self._looked_ms = clock.now_ms - self._looked_ms, clock.now_ms
        self._fresh = {i: None for i in self._fresh if i in jobs}
        self._worn = {i: None for i in self._worn if i in jobs}
        for index, run in jobs.items():
            if index not in self._ran_ms:
                self._ran_ms[index] = 0
                self._fresh[index] = None
            elif index in held:
                self._ran_ms[index] += passed
                if index in self._fresh and self._ran_ms[index] * run.job.total_gpus >= self._threshold:
                    del self._fresh[index]
                    self._worn[index] = None
        left = sum(clock.capacity[n] // 1000 for n in range(len(clock.capacity)) if clock.up[n])
        chosen = []
        for index in (*self._fresh, *self._worn):
            if jobs[index].job.total_gpus <= left:
                chosen.append(index)
                left -= jobs[index].job.total_gpus
        kept = {index: held[index] for index in chosen if index in held}
        free = free_gpus(clock, kept)
        return kept | {i: fullest_free_first(free, jobs[i].job.total_gpus) for i in chosen if i not in kept}


def tiresias() -> RoundScheduler:
    return RoundScheduler("tiresias", Tiresias())
