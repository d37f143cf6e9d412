"""Optimus (the other one): GPUs go where they shorten the remaining time most.

Source: Peng et al., EuroSys'18, as "Optimus+Oracle" of the Pollux artifact: one GPU each in order of arrival, then one
more, again and again, to the job with the largest drop in remaining time. It is told the true step times and the true
rest of the work (oracle); the batch size is fixed. Jobs whose size stays keep their place; the others, smallest first,
take the nodes with most free GPUs.
Differences: one GPU is the only resource, so the drop per unit of dominant share is the drop itself. Jobs that are not
measured training have the speeds that they tell. Rigid jobs have one size; replicas of several GPUs: see `seating`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus, fullest_free_first
from optimus.drivers.sim.peers.scaling import Speeds
from optimus.drivers.sim.peers.seating import fill
from optimus.drivers.sim.works.training import TrainingProgress, packed


class Greedy:
    def __init__(self) -> None:
        self._speeds = Speeds()

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        left = sum(free_gpus(clock, {}).values())
        size: dict[int, int] = {}
        gains: list[tuple[float, int, int]] = []
        for order, (index, run) in enumerate(jobs.items()):
            if not left:
                break
            if run.job.least * run.job.gpus > left:
                continue
            size[index] = run.job.least
            left -= run.job.least * run.job.gpus
            heapq.heappush(gains, (-self._gain(run, size[index], clock), order, index))
        while left and gains:
            gain, order, index = heapq.heappop(gains)
            if gain >= 0:
                break
            if jobs[index].job.gpus > left:
                continue
            size[index] += 1
            left -= jobs[index].job.gpus
            heapq.heappush(gains, (-self._gain(jobs[index], size[index], clock), order, index))
        kept = {index: nodes for index, nodes in held.items() if size.get(index) == len(nodes)}
        free = free_gpus(clock, kept)
        moved = sorted((index for index in size if index not in kept), key=lambda index: size[index])
        placed = kept | {i: fullest_free_first(free, size[i], jobs[i].job.gpus) for i in moved}
        return placed | fill(jobs, lambda i: (size.get(i, jobs[i].job.least),), jobs, held, placed, free, clock)

    def _gain(self, run: Run, replicas: int, clock: Clockwork) -> float:
        """Time that one more replica takes off the rest of the run, in seconds for each of its GPUs."""
        if replicas + 1 > run.job.most:
            return 0.0
        progress = run.progress
        if not isinstance(progress, TrainingProgress):
            left_s = self._speeds.left_ms(run, clock.now_ms) / 1000
            saved = left_s / self._speeds.of(run, replicas) - left_s / self._speeds.of(run, replicas + 1)
            return saved / max(run.job.gpus, 1)
        return (_step_s(progress, replicas) - _step_s(progress, replicas + 1)) * _steps_left(progress)


def _step_s(progress: TrainingProgress, replicas: int) -> float:
    batch = progress.work.batch
    assert batch is not None
    atomic, steps = progress.application.split(batch, replicas)
    step, sync = progress.application.step_times(packed(replicas), atomic)
    return step + (step - sync) * steps


def _steps_left(progress: TrainingProgress) -> float:
    app, batch = progress.application, progress.work.batch
    assert batch is not None
    last = app.max_epochs - 1
    return app.iterations(batch, last) - app.iterations(batch, progress.epoch) if progress.epoch < last else 1.0


def optimus_eurosys() -> RoundScheduler:
    return RoundScheduler("optimus-eurosys (oracle)", Greedy())
