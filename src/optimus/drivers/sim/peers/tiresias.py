"""Tiresias, two-dimensional least attained service with two queues.

Source: Gu et al., NSDI'19; parameters as in the Pollux artifact: one threshold of 16 GPU-hours, arrival order inside a
queue, a job that fits keeps or gets its GPUs, the rest is preempted. Placement: most free GPUs first.
Differences: none known to the artifact; the paper's promotion of starved jobs is off there and here.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus, fullest_free_first, seat

THRESHOLD_GPU_MS = 16 * 3_600_000


class Tiresias:
    def __init__(self, threshold_gpu_ms: int = THRESHOLD_GPU_MS) -> None:
        self._threshold = threshold_gpu_ms
        self._fresh: dict[int, None] = {}
        self._worn: dict[int, None] = {}
        self._ran_ms: dict[int, int] = {}
        self._looked_ms = 0
        self._last = -1

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        self._account(jobs, held, clock)
        left = sum(clock.capacity[n] // 1000 for n in range(len(clock.capacity)) if clock.up[n])
        chosen = []
        for queue in (self._fresh, self._worn):
            over = []
            for index in queue:
                if index not in jobs:
                    over.append(index)
                elif jobs[index].job.total_gpus <= left:
                    chosen.append(index)
                    left -= jobs[index].job.total_gpus
                if not left:
                    break
            for index in over:
                del queue[index]
        kept = {index: held[index] for index in chosen if index in held}
        free = free_gpus(clock, kept)
        new = {i: self._place(jobs[i], free, clock) for i in chosen if i not in kept}
        return kept | new

    def _account(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> None:
        passed, self._looked_ms = clock.now_ms - self._looked_ms, clock.now_ms
        for index in held:
            self._ran_ms[index] += passed
            if index in self._fresh and self._ran_ms[index] * jobs[index].job.total_gpus >= self._threshold:
                del self._fresh[index]
                self._worn[index] = None
        arrived = []
        for index in reversed(clock.active):  # in order of arrival, so the new ones are last
            if index <= self._last:
                break
            arrived.append(index)
        for index in reversed(arrived):
            self._ran_ms[index] = 0
            self._fresh[index] = None
            self._last = index

    def _place(self, run: Run, free: dict[int, int], clock: Clockwork) -> Nodes:
        job, ran = run.job, self._ran_ms[run.index]
        if run.index in self._fresh and job.total_gpus:
            clock.remind(run.index, clock.now_ms - ran - -self._threshold // job.total_gpus)  # when it is demoted
        return seat(clock, job, free, how=fullest_free_first)


def tiresias() -> RoundScheduler:
    return RoundScheduler("tiresias", Tiresias(), every_round=False)
