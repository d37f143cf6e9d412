"""Tiresias, two-dimensional least attained service with two queues.

Source: Gu et al., NSDI'19; parameters as in the Pollux artifact: one threshold of 16 GPU-hours, arrival order inside a
queue, a job that fits keeps or gets its GPUs, the rest is preempted. Placement: most free GPUs first.
Differences: the artifact, like the paper's simulator, counts GPUs and has replicas of one GPU; here replicas may have
several, which need them on one node (`seating` says what happens to a job that finds none; on the artifact's own jobs
nothing differs). The paper's promotion of starved jobs is off, there and here.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, fullest_free_first
from optimus.drivers.sim.peers.seating import seat_in_order

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
        for queue in (self._fresh, self._worn):
            for index in [index for index in queue if index not in jobs]:
                del queue[index]
        placed = seat_in_order((*self._fresh, *self._worn), jobs, held, clock, how=fullest_free_first)
        for index in placed:
            if index in self._fresh and index not in held:
                self._remind(jobs[index], clock)
        return placed

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
            if index in jobs:
                arrived.append(index)
        for index in reversed(arrived):
            self._ran_ms[index] = 0
            self._fresh[index] = None
            self._last = index

    def _remind(self, run: Run, clock: Clockwork) -> None:
        """Of the time when it is demoted."""
        clock.remind(run.index, clock.now_ms - self._ran_ms[run.index] - -self._threshold // run.job.total_gpus)


def tiresias() -> RoundScheduler:
    return RoundScheduler("tiresias", Tiresias(), every_round=False)
