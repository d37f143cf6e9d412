"""ElasticFlow: deadlines are promises, kept with as few GPUs as suffice; the rest goes where it helps most.

    minimum satisfactory share   the smallest level of GPUs with which a job ends in time, given what jobs with earlier
                                 deadlines take in each slot until then
    admission                    a newcomer is refused at once if its deadline, or one that was promised, could not be
                                 kept with it
    the rest                     one step in size at a time: first to those that have nothing, then to the job with the
                                 largest gain in speed for each GPU, relative to its speed on one
    late                         who was promised and cannot be in time any more (a restart took time, a node is gone)
                                 is best effort from then on: it takes part in the last step only

Source: Gu et al., ASPLOS'23, algorithms 1 and 2, and its artifact: slots of 60 s, decisions after arrivals and ends;
work is declared in iterations, so what is left is known (oracle). Jobs without a deadline are best effort too, and are
never refused.
Differences: plans count the pause of a start or a change of size, where the artifact adds it later; slots far away are
longer, by 2 % of the time until them; a level holds from now on (algorithm 1), where the artifact takes the smaller
level first and the larger one near the deadline; the marginal return is that in speed instead of that in GPU time,
which orders jobs the same way as long as their speed-up is concave; a late job goes on, where the artifact counts it as
refused; buddy placement is left to `place_sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus
from optimus.drivers.sim.peers.scaling import Speeds, next_size, place_sizes, sizes_of

Ints = NDArray[np.int64]

SLOT_MS = 60_000
FARTHER = 1.02
"""Slots that are farther away are longer, by this factor of the time until them."""


def slots_until(now_ms: int, last_ms: int, slot_ms: int) -> Ints:
    """The borders of slots from now to the last deadline."""
    edges = [now_ms]
    while edges[-1] < last_ms:
        edges.append(max(edges[-1] + slot_ms, now_ms + int((edges[-1] - now_ms) * FARTHER)))
    return np.array(edges)


class ElasticFlow:
    def __init__(self) -> None:
        self._speeds = Speeds()
        self._admitted: set[int] = set()

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        self._speeds.look(jobs)
        total = sum(free_gpus(clock, {}).values())
        plan = self._admit([run for run in jobs.values() if run.job.deadline_ms is not None], clock, total)
        jobs = {index: run for index, run in jobs.items() if index in clock.active}  # some were refused
        sizes = {index: int(usage[0]) for index, usage in plan.items() if usage[0]}
        left = total - sum(size * jobs[index].job.gpus for index, size in sizes.items())
        self._give_rest(jobs, sizes, left)
        return place_sizes(sizes, jobs, held, clock)

    def _admit(self, timed: list[Run], clock: Clockwork, total: int) -> dict[int, Ints]:
        """The plans of those whose deadline can be kept. Newcomers are admitted one by one, if nobody loses by it."""
        last = max((run.job.deadline_ms or 0 for run in timed), default=0)
        edges = slots_until(clock.now_ms, last, clock.setup.interval_ms or SLOT_MS)
        promised = [run for run in timed if run.index in self._admitted]
        plan = self._plan(promised, edges, total)
        for run in timed:
            if run.index in self._admitted:
                continue
            wider = self._plan([*(other for other in promised if other.index in plan), run], edges, total)
            if len(wider) > len(plan):
                plan = wider
                promised.append(run)
                self._admitted.add(run.index)
            else:
                clock.reject(run.index, "its deadline cannot be kept")
        return plan

    def _plan(self, runs: list[Run], edges: Ints, total: int) -> dict[int, Ints]:
        """Replicas by slot, in the order of deadlines. Who would be late is left out and takes nothing from others."""
        room = np.full(len(edges) - 1, total)
        plan: dict[int, Ints] = {}
        for run in sorted(runs, key=lambda run: (run.job.deadline_ms, run.index)):
            usage = self._fill(run, room, edges)
            if usage is not None:
                plan[run.index] = usage
                room -= usage * run.job.gpus
        return plan

    def _fill(self, run: Run, room: Ints, edges: Ints) -> Ints | None:
        """Replicas in each slot at the lowest level that ends in time; None: no level does."""
        now_ms, until_ms = int(edges[0]), run.job.deadline_ms
        assert until_ms is not None
        if until_ms <= now_ms:
            return None
        pause_ms = run.job.restart_ms if run.record.start_ms is not None else run.job.start_ms
        left = self._speeds.left_ms(run, now_ms)
        fits = room // max(run.job.gpus, 1)
        sizes = np.array((0, *sizes_of(run)))
        speed = np.array([self._speeds.of(run, int(size)) for size in sizes])
        for level in range(1, len(sizes)):
            at = np.searchsorted(sizes[: level + 1], fits, side="right") - 1
            stays = bool(run.seats) and sizes[at[0]] == len(run.seats)
            ready_ms = run.pause_until_ms if stays else now_ms + pause_ms
            worked = np.maximum(np.minimum(edges[1:], until_ms) - np.maximum(edges[:-1], ready_ms), 0)
            done = np.cumsum(speed[at] * worked)
            if done[-1] >= left:
                needed = int(np.searchsorted(done, left)) + 1
                usage = np.zeros_like(room)
                usage[:needed] = sizes[at[:needed]]
                return usage
        return None

    def _give_rest(self, jobs: Mapping[int, Run], sizes: dict[int, int], left: int) -> None:
        while left > 0:
            best, gain = -1, (False, 0.0)
            for index, run in jobs.items():
                size = sizes.get(index, 0)
                larger = next_size(run, size)
                cost = (larger - size) * run.job.gpus
                if not larger or not 0 < cost <= left:
                    continue
                more = (self._speeds.of(run, larger) - self._speeds.of(run, size)) / cost
                if more > 0 and (not size, more) > gain:
                    best, gain = index, (not size, more)
            if best < 0:
                return
            larger = next_size(jobs[best], sizes.get(best, 0))
            left -= (larger - sizes.get(best, 0)) * jobs[best].job.gpus
            sizes[best] = larger


def elasticflow() -> RoundScheduler:
    return RoundScheduler("elasticflow (oracle)", ElasticFlow(), every_round=False)
