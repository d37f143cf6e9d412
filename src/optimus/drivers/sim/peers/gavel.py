"""Gavel: shares of time on each GPU model, brought about in rounds.

    gavel-las          the least share that a job is due is made as large as possible
    gavel-las-filled   the same, and what is left goes to those who make most of it
    gavel-ftf          the worst finish-time ratio is made as small as possible (told what work is left: oracle)
    gavel-sum          as many steps per second as possible, whoever makes them

Model by model, the fastest first: jobs with the largest share / (time received there + half a round) get its GPUs, then
those without a share while there is room, the most owed first; all replicas of a job on one model. Who came since the
shares were worked out waits until they are worked out again, which happens after a change and 1,000 s at the earliest;
received time is then forgotten, and what was not received is owed.
Source: Narayanan et al., OSDI'20, and its artifact (rounds of 360 s). Speeds were measured beforehand, as there. Space
sharing is off. The objectives and what differs in them: `gavel_shares`.
Differences: rounds are always of the same length; there, one ends early when all of its jobs do. There, GPUs are only
counted; here, replicas may have several, and GPUs of a job that finds no place go to the next (`seating`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.gavel_shares import (
    FinishTimeFairness,
    Floats,
    Question,
    Solve,
    filled,
    least_attained_service,
    throughput,
)
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus, together
from optimus.drivers.sim.peers.seating import fill

FORGET_MS = 1_000_000


class Models:
    """The GPU models of a cluster and who runs how fast on them."""

    def __init__(self, clock: Clockwork) -> None:
        self.of_node = [node.devices[0].model if node.devices else "" for node in clock.setup.nodes]
        self.names = sorted({model for model in self.of_node if model})

    def gpus(self, clock: Clockwork) -> Floats:
        here = [(self.of_node[n], clock.capacity[n] // 1000) for n in range(len(self.of_node)) if clock.up[n]]
        return np.array([float(sum(g for model, g in here if model == name)) for name in self.names])

    def speeds(self, run: Run) -> tuple[float, ...]:
        told = {speed.model: speed.speed_percent / 100 for speed in run.job.models}
        if told:
            return tuple(told.get(name, 0.0) for name in self.names)
        measured = getattr(run.job.work, "speed_by_model", {})
        return tuple(float(measured.get(name, 1.0)) for name in self.names)


class Gavel:
    def __init__(self, solve: Solve) -> None:
        self._solve = solve
        self._models: Models | None = None
        self._speeds: dict[int, tuple[float, ...]] = {}
        self._shares: dict[int, Floats] = {}
        self._got: dict[int, Floats] = {}
        """Time on each model since it was last forgotten."""
        self._owed: dict[int, Floats] = {}
        self._changed = True
        self._known: set[int] = set()
        self._since_ms: int | None = None
        """When the shares were worked out."""
        self._looked_ms = 0

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        models = self._models = self._models or Models(clock)
        where = {index: models.names.index(models.of_node[nodes[0]]) for index, nodes in held.items()}
        passed, self._looked_ms = clock.now_ms - self._looked_ms, clock.now_ms
        for index, model in where.items():
            self._got[index][model] += passed
        self._meet(jobs, models)
        if self._changed and (self._since_ms is None or clock.now_ms - self._since_ms >= FORGET_MS):
            self._work_out(jobs, clock)
        line = self._line(clock)
        chosen = self._choose(line, jobs, clock)
        kept = {i: n for i, n in held.items() if where[i] == chosen.get(i)}
        return self._seat(line, jobs, chosen, kept, held, clock)

    def _meet(self, jobs: Mapping[int, Run], models: Models) -> None:
        if jobs.keys() == self._known:
            return
        self._changed, self._known = True, set(jobs)
        for index, run in jobs.items():
            if index not in self._speeds:
                self._speeds[index] = models.speeds(run)
                self._got[index], self._owed[index] = np.zeros(len(models.names)), np.zeros(len(models.names))

    def _work_out(self, jobs: Mapping[int, Run], clock: Clockwork) -> None:
        assert self._models is not None
        window = clock.now_ms - (self._since_ms or 0)
        for index in jobs:
            due = self._shares[index] * window if index in self._shares else 0.0
            self._owed[index] += due - self._got[index]
            self._got[index] = np.zeros(len(self._models.names))
        speeds = np.array([self._speeds[index] for index in jobs])
        shares = self._solve(Question(list(jobs.values()), speeds, self._models.gpus(clock), clock.now_ms))
        self._shares = dict(zip(jobs, shares, strict=True))
        self._since_ms, self._changed = clock.now_ms, False

    def _line(self, clock: Clockwork) -> list[tuple[int, int]]:
        """Jobs and models they can run on, in the order in which they are served."""
        known = [index for index in self._shares if index in clock.active]
        if not known:
            return []
        half_ms = clock.setup.interval_ms / 2 or 1
        share = np.array([self._shares[index] for index in known])
        rank = share / (np.array([self._got[index] for index in known]) + half_ms)
        owed = np.array([self._owed[index] for index in known])
        speed = np.array([self._speeds[index] for index in known])
        return [
            (known[row], model)
            for model in np.argsort(-speed.sum(axis=0), kind="stable").tolist()
            for row in np.lexsort((-share[:, model], -owed[:, model], -rank[:, model])).tolist()
            if speed[row, model]
        ]

    def _choose(self, line: list[tuple[int, int]], jobs: Mapping[int, Run], clock: Clockwork) -> dict[int, int]:
        """The model of each job that runs in this round."""
        assert self._models is not None
        left = self._models.gpus(clock)
        chosen: dict[int, int] = {}
        for index, model in line:
            gpus = jobs[index].job.total_gpus
            if index not in chosen and gpus <= left[model]:
                chosen[index] = model
                left[model] -= gpus
        return chosen

    def _seat(
        self,
        line: list[tuple[int, int]],
        jobs: Mapping[int, Run],
        chosen: Mapping[int, int],
        kept: Mapping[int, Nodes],
        held: Mapping[int, Nodes],
        clock: Clockwork,
    ) -> Mapping[int, Nodes]:
        assert self._models is not None
        free = free_gpus(clock, kept)
        of_node, names = self._models.of_node, self._models.names
        by_model = [{n: f for n, f in free.items() if of_node[n] == name} for name in names]
        placed: dict[int, Nodes] = dict(kept)
        for index in sorted(chosen.keys() - kept.keys(), key=lambda i: (-jobs[i].job.total_gpus, i)):
            job = jobs[index].job
            placed[index] = together(by_model[chosen[index]], job.replicas, job.gpus)
        if all(placed.values()):
            return placed
        for model, free_here in enumerate(by_model):
            here = {i: n for i, n in held.items() if of_node[n[0]] == names[model]}
            order = [index for index, where in line if where == model]
            placed |= fill(order, lambda i: (jobs[i].job.replicas,), jobs, here, placed, free_here, clock)
        return placed


def gavel_las() -> RoundScheduler:
    return RoundScheduler("gavel-las", Gavel(least_attained_service))


def gavel_las_filled() -> RoundScheduler:
    return RoundScheduler("gavel-las-filled", Gavel(filled))


def gavel_ftf() -> RoundScheduler:
    return RoundScheduler("gavel-ftf (oracle)", Gavel(FinishTimeFairness()))


def gavel_sum() -> RoundScheduler:
    return RoundScheduler("gavel-sum", Gavel(throughput))
