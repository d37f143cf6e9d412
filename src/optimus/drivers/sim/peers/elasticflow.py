"""ElasticFlow: deadlines are promises, kept with as few GPUs as suffice; the rest goes where it helps most.

    minimum satisfactory share   the smallest level of GPUs with which a job ends in time, given what jobs with earlier
                                 deadlines take in each slot until then
    admission                    a job whose deadline cannot be kept is refused at once
    the rest                     one step in size at a time, to the job with the largest gain in speed for each GPU,
                                 relative to its speed on one

Source: Gu et al., ASPLOS'23, algorithms 1 and 2, in rounds; work is declared in iterations, so what is left is known
(oracle). Jobs without a deadline are best effort: they take part in the last step only, and are never refused.
Differences: time is cut into at most 500 slots until the last deadline; the marginal return is that in speed instead of
that in GPU time, which orders jobs the same way as long as their speed-up is concave; buddy placement is left to
`place_sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus
from optimus.drivers.sim.peers.scaling import Speeds, next_size, place_sizes, sizes_of

Ints = NDArray[np.int64]

MOST_SLOTS = 500
SLOT_MS = 60_000


class ElasticFlow:
    def __init__(self) -> None:
        self._speeds = Speeds()
        self._admitted: set[int] = set()

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        self._speeds.look(jobs)
        total = sum(free_gpus(clock, {}).values())
        sizes = self._shares(jobs, clock, total)
        jobs = {index: run for index, run in jobs.items() if index in clock.active}  # some were refused
        left = total - sum(size * jobs[index].job.gpus for index, size in sizes.items())
        self._give_rest(jobs, sizes, left)
        return place_sizes(sizes, jobs, held, clock)

    def _shares(self, jobs: Mapping[int, Run], clock: Clockwork, total: int) -> dict[int, int]:
        """The minimum satisfactory shares of this slot. Who was promised is served before who asks."""
        timed = [run for run in jobs.values() if run.job.deadline_ms is not None]
        timed.sort(key=lambda run: (run.index not in self._admitted, run.job.deadline_ms, run.index))
        last = max((run.job.deadline_ms or 0 for run in timed), default=0)
        slot = max(clock.setup.interval_ms or SLOT_MS, (last - clock.now_ms) // MOST_SLOTS + 1)
        room = np.full(max((last - clock.now_ms) // slot + 1, 1), total)
        sizes: dict[int, int] = {}
        for run in timed:
            assert run.job.deadline_ms is not None
            usage = self._fill(run, room, slot, run.job.deadline_ms - clock.now_ms, clock.now_ms)
            if usage is None and run.index not in self._admitted:
                clock.reject(run.index, "its deadline cannot be kept")
                continue
            self._admitted.add(run.index)
            if usage is None:  # promised, but it has become late: a restart took time, or a node is gone
                usage = np.zeros_like(room)
                usage[0] = max((k for k in sizes_of(run) if k * run.job.gpus <= room[0]), default=0)
            room -= usage * run.job.gpus
            if usage[0]:
                sizes[run.index] = int(usage[0])
        return sizes

    def _fill(self, run: Run, room: Ints, slot: int, until_ms: int, now_ms: int) -> Ints | None:
        """Replicas in each slot at the lowest level that ends in time; None: no level does."""
        slots = until_ms // slot
        if slots <= 0:
            return None
        left = self._speeds.left_ms(run, now_ms) + run.job.restart_ms
        fits = room[:slots] // run.job.gpus
        usage = np.zeros_like(room)
        sizes = np.array((0, *sizes_of(run)))
        speed = np.array([self._speeds.of(run, int(size)) for size in sizes])
        for level in range(1, len(sizes)):
            at = np.searchsorted(sizes[: level + 1], fits, side="right") - 1
            done = np.cumsum(speed[at]) * slot
            if done[-1] >= left:
                needed = int(np.searchsorted(done, left)) + 1
                usage[:needed] = sizes[at[:needed]]
                return usage
        return None

    def _give_rest(self, jobs: Mapping[int, Run], sizes: dict[int, int], left: int) -> None:
        while left > 0:
            best, gain = -1, 0.0
            for index, run in jobs.items():
                size = sizes.get(index, 0)
                larger = next_size(run, size)
                cost = (larger - size) * run.job.gpus
                if not larger or not 0 < cost <= left:
                    continue
                more = (self._speeds.of(run, larger) - self._speeds.of(run, size)) / cost
                if more > gain:
                    best, gain = index, more
            if best < 0:
                return
            larger = next_size(jobs[best], sizes.get(best, 0))
            left -= (larger - sizes.get(best, 0)) * jobs[best].job.gpus
            sizes[best] = larger


def elasticflow() -> RoundScheduler:
    return RoundScheduler("elasticflow (oracle)", ElasticFlow())
