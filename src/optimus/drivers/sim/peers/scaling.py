"""How fast an elastic job goes with so many replicas, as far as its scheduler may know.

What a job tells (`speedup_percent`, or the model it has fitted while it ran) is used where there is something; a job
that tells nothing is taken to scale in proportion. Training with a fixed batch size tells nothing of itself; its step
times are taken as measured beforehand, which is what the peers' own evaluations do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, free_gpus, seat
from optimus.drivers.sim.peers.seating import fill
from optimus.drivers.sim.works.training import TrainingProgress, packed


class Speeds:
    """Relative to one replica. Asks each job again only when what it tells may have changed."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[int, ...]] = {}
        self._steps: dict[tuple[int, int], float] = {}
        self._whole: dict[int, float] = {}

    def look(self, jobs: Mapping[int, Run]) -> None:
        """Once in every round."""
        for index, run in jobs.items():
            learned = run.progress.speedup_percent() if run.progress.rounds else None
            self._told[index] = learned or run.job.speedup_percent

    def of(self, run: Run, replicas: int) -> float:
        if replicas <= 0:
            return 0.0
        progress = run.progress
        if isinstance(progress, TrainingProgress) and progress.work.batch is not None:
            return self._step_s(run.index, progress, 1) / self._step_s(run.index, progress, replicas)
        told = self._told.get(run.index, run.job.speedup_percent)
        return told[min(replicas, len(told)) - 1] / 100 if told else float(replicas)

    def left_ms(self, run: Run, now_ms: int) -> float:
        """The rest of the work on one replica, by the truth. For peers that say `oracle`."""
        if run.index not in self._whole:
            self._whole[run.index] = run.job.work.ideal_ms() * self.of(run, run.job.replicas)
        passed = max(now_ms - max(run.since_ms, run.pause_until_ms), 0) if run.seats else 0
        left = (1.0 - run.progress.done()) * self._whole[run.index]
        return max(left - passed * self.of(run, len(run.seats)), 0.0)

    def _step_s(self, index: int, progress: TrainingProgress, replicas: int) -> float:
        key = (index, replicas)
        if key not in self._steps:
            assert progress.work.batch is not None
            atomic, steps = progress.application.split(progress.work.batch, replicas)
            step, sync = progress.application.step_times(packed(replicas), atomic)
            self._steps[key] = step + (step - sync) * steps
        return self._steps[key]


def sizes_of(run: Run) -> tuple[int, ...]:
    """Numbers of replicas it can run with, ascending."""
    job = run.job
    return job.sizes or tuple(range(job.least, job.most + 1))


def next_size(run: Run, replicas: int) -> int:
    """The next larger one; 0 where there is none."""
    return next((size for size in sizes_of(run) if size > replicas), 0)


def place_sizes(
    sizes: Mapping[int, int],
    jobs: Mapping[int, Run],
    held: Mapping[int, Nodes],
    clock: Clockwork,
    order: Iterable[int] | None = None,
) -> dict[int, Nodes]:
    """Who keeps its size keeps its place; the others, largest first, on as few nodes as possible. What finds no place
    leaves it to the others, in `order` (of arrival where nothing is said) and in the largest size that has one."""
    kept = {index: nodes for index, nodes in held.items() if sizes.get(index) == len(nodes)}
    free = free_gpus(clock, kept)
    moved = sorted((i for i, size in sizes.items() if size and i not in kept), key=lambda i: (-sizes[i], i))
    placed = kept | {index: seat(clock, jobs[index].job, free, sizes[index]) for index in moved}
    if all(placed.values()):
        return placed

    def tries(index: int) -> Iterable[int]:
        most = sizes.get(index) or jobs[index].job.least
        return (size for size in reversed(sizes_of(jobs[index])) if size <= most)

    return placed | fill(jobs if order is None else order, tries, jobs, held, placed, free, clock)
