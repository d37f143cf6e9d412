"""Gavel: shares of time on each GPU model from a linear programme, brought about in rounds.

    X[m, k]   the part of time of job m on model k; sum over k at most 1; GPUs of model k are given out once
    rate(m) = sum over k of speed[m, k] x X[m, k]

    gavel-las    the least rate, relative to an equal share of all models and per GPU, is made as large as possible
    gavel-ftf    the worst finish-time ratio is made as small as possible (told what work is left: oracle)
    gavel-sum    the sum of the rates relative to an equal share is made as large as possible

Every round the pairs with the largest X / (part of time received) get their GPUs; all replicas of a job on one model.
Source: Narayanan et al., OSDI'20, and its artifact (rounds of 360 s, received time forgotten every 1,000 s, and what
was owed then decides between equals). Speeds were measured beforehand, as there. Space sharing is off.
Differences: the least rate alone leaves many solutions; of these the one with the largest sum of rates is taken.
Finish-time fairness is a bisection of linear programmes instead of one convex programme. Jobs that are alike get the
same share, so they are one variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimus.drivers.sim.clockwork import Clockwork, Run
from optimus.drivers.sim.peers.rounds import Nodes, RoundScheduler, free_gpus, together

Floats = NDArray[np.float64]

FORGET_MS = 1_000_000
_SUM_WEIGHT = 1e-3
_STEPS = 14
"""Of the bisection: the worst ratio is found to about one part in a thousand."""


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


class Programme:
    """max  sum of w[i, k] X[i, k] + t   where  need[i] t <= rate[i] - least[i]. Rows may stand for several jobs."""

    def __init__(self, speeds: Floats, gpus: Floats, many: Floats, capacity: Floats) -> None:
        self._speeds, self._gpus, self._many, self._capacity = speeds, gpus, many, capacity

    def solve(self, worth: Floats, need: Floats, least: Floats) -> Floats | None:
        """X; None where the least rates cannot be had. Without any `need` there is no t."""
        from scipy.optimize import linprog  # noqa: PLC0415  (an extra)
        from scipy.sparse import coo_array  # noqa: PLC0415

        jobs, models = self._speeds.shape
        x = np.arange(jobs * models)
        row, model = np.divmod(x, models)
        fair = bool(need.any())
        rows = [row, jobs + model, jobs + models + row]
        values = [np.ones(len(x)), (self._gpus * self._many)[row], -self._speeds.ravel()]
        columns = [x, x, x]
        if fair:
            rows.append(jobs + models + np.arange(jobs))
            columns.append(np.full(jobs, len(x)))
            values.append(need)
        shape = (2 * jobs + models, len(x) + fair)
        matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
        bound = np.concatenate([np.ones(jobs), self._capacity, -least])
        cost = -np.append((worth * self._many[:, None]).ravel(), [1.0] * fair)
        found: Any = linprog(cost, A_ub=matrix.tocsr(), b_ub=bound, bounds=(0, None), method="highs")
        if found.x is None:
            return None
        shares: Floats = np.clip(found.x[: len(x)].reshape(jobs, models), 0.0, 1.0)
        return shares


Solve = Callable[["Gavel", Mapping[int, Run], Clockwork], dict[int, Floats]]


class Gavel:
    def __init__(self, solve: Solve) -> None:
        self._solve = solve
        self.models: Models | None = None
        self._shares: dict[int, Floats] = {}
        self._got: dict[int, Floats] = {}
        """Time on each model since it was last forgotten."""
        self._owed: dict[int, Floats] = {}
        self._since_ms = self._looked_ms = 0
        self._alone: dict[int, tuple[float, float]] = {}
        """Part of the work done when last looked at, and the time it would have taken on an equal share."""

    def __call__(self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], clock: Clockwork) -> Mapping[int, Nodes]:
        models = self.models = self.models or Models(clock)
        passed, self._looked_ms = clock.now_ms - self._looked_ms, clock.now_ms
        where = {index: models.names.index(models.of_node[nodes[0]]) for index, nodes in held.items()}
        for index, model in where.items():
            self._got[index][model] += passed
        if jobs.keys() != self._shares.keys():
            self._forget(clock)
            self._shares = self._solve(self, jobs, clock)
            for index in jobs:
                self._got.setdefault(index, np.zeros(len(models.names)))
                self._owed.setdefault(index, np.zeros(len(models.names)))
        return self._fill(jobs, held, where, clock)

    def _forget(self, clock: Clockwork) -> None:
        window = clock.now_ms - self._since_ms
        if window < FORGET_MS:
            return
        for index, share in self._shares.items():
            self._owed[index] += share * window - self._got[index]
            self._got[index] = np.zeros_like(share)
        self._since_ms = clock.now_ms

    def _fill(
        self, jobs: Mapping[int, Run], held: Mapping[int, Nodes], where: Mapping[int, int], clock: Clockwork
    ) -> Mapping[int, Nodes]:
        assert self.models is not None
        window = max(clock.now_ms - self._since_ms, 1)
        queue = []
        for index in jobs:
            share, got, owed = self._shares[index], self._got[index] / window, self._owed[index]
            for model in np.flatnonzero(share > 1e-6).tolist():
                rank = share[model] / got[model] if got[model] else share[model] * 1e9
                queue.append((-rank, -owed[model], -share[model], index, model))
        queue.sort()
        left = self.models.gpus(clock)
        chosen: dict[int, int] = {}
        for *_, index, model in queue:
            gpus = jobs[index].job.total_gpus
            if index not in chosen and gpus <= left[model]:
                chosen[index] = model
                left[model] -= gpus
        kept = {index: held[index] for index, model in chosen.items() if where.get(index) == model}
        free = free_gpus(clock, kept)
        by_model = [{n: f for n, f in free.items() if self.models.of_node[n] == name} for name in self.models.names]
        placed: dict[int, Nodes] = dict(kept)
        for index, model in chosen.items():
            if index not in kept:
                job = jobs[index].job
                placed[index] = together(by_model[model], job.replicas, job.gpus)
        return placed

    def alone_ms(self, run: Run, done: float, rate: float) -> float:
        """How long the whole job takes on an equal share, counted with the share it would have had at each time."""
        before, passed = self._alone.get(run.index, (0.0, 0.0))
        whole = run.job.work.ideal_ms()
        passed += (done - before) * whole / rate
        self._alone[run.index] = (done, passed)
        return passed + (1.0 - done) * whole / rate


def _equal_rates(speeds: Floats, gpus: Floats, jobs: int, capacity: Floats) -> Floats:
    """With 1/N of the GPUs of each model, and never more than all the time."""
    part = np.minimum(capacity[None, :] / (jobs * gpus[:, None]), 1.0)
    part = part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)
    rates: Floats = np.maximum((speeds * part).sum(axis=1), 1e-9)
    return rates


def _grouped(gavel: Gavel, jobs: Mapping[int, Run]) -> tuple[dict[tuple[float, ...], list[int]], Floats, Floats]:
    """Jobs by what they ask for and how fast they are; the speeds and the GPUs of each group."""
    assert gavel.models is not None
    groups: dict[tuple[float, ...], list[int]] = {}
    for index, run in jobs.items():
        groups.setdefault((run.job.total_gpus, *gavel.models.speeds(run)), []).append(index)
    return groups, np.array([key[1:] for key in groups]), np.array([max(key[0], 1) for key in groups])


def _las(gavel: Gavel, jobs: Mapping[int, Run], clock: Clockwork, *, fair: bool = True) -> dict[int, Floats]:
    assert gavel.models is not None
    groups, speeds, gpus = _grouped(gavel, jobs)
    many, capacity = np.array([float(len(group)) for group in groups.values()]), gavel.models.gpus(clock)
    equal = _equal_rates(speeds, gpus, len(jobs), capacity)
    worth = speeds / equal[:, None]
    programme = Programme(speeds, gpus, many, capacity)
    need = equal / gpus if fair else np.zeros(len(gpus))
    weight = _SUM_WEIGHT / len(jobs) if fair else 1.0
    shares = programme.solve(worth * weight, need, np.zeros(len(gpus)))
    assert shares is not None
    return {index: shares[row] for row, group in enumerate(groups.values()) for index in group}


def _sum(gavel: Gavel, jobs: Mapping[int, Run], clock: Clockwork) -> dict[int, Floats]:
    return _las(gavel, jobs, clock, fair=False)


def _ftf(gavel: Gavel, jobs: Mapping[int, Run], clock: Clockwork) -> dict[int, Floats]:
    assert gavel.models is not None
    speeds = np.array([gavel.models.speeds(run) for run in jobs.values()])
    gpus = np.array([float(max(run.job.total_gpus, 1)) for run in jobs.values()])
    capacity = gavel.models.gpus(clock)
    equal = _equal_rates(speeds, gpus, len(jobs), capacity)
    done = np.array([run.progress.done() for run in jobs.values()])
    left = np.array([run.job.work.ideal_ms() for run in jobs.values()]) * (1.0 - done)
    runs = list(jobs.values())
    alone = np.array([gavel.alone_ms(run, float(d), float(r)) for run, d, r in zip(runs, done, equal, strict=True)])
    age = np.array([float(clock.now_ms - run.job.submit_ms) for run in runs])
    programme = Programme(speeds, gpus, np.ones(len(gpus)), capacity)
    worth, none = speeds / equal[:, None] * _SUM_WEIGHT, np.zeros(len(gpus))

    def shares_for(ratio: float) -> Floats | None:
        time = ratio * alone - age
        if (time <= 0).any():
            return None
        return programme.solve(worth, none, left / time)

    low, high = float((age / alone).max()), 2.0 * float(((age + left / equal) / alone).max()) + 1.0
    found = shares_for(high)
    while found is None:  # an equal share on every model at once is more than one job can use
        low, high = high, high * 4.0
        found = shares_for(high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        better = shares_for(middle)
        if better is None:
            low = middle
        else:
            found, high = better, middle
    return dict(zip(jobs, found, strict=True))


def gavel_las() -> RoundScheduler:
    return RoundScheduler("gavel-las", Gavel(_las))


def gavel_ftf() -> RoundScheduler:
    return RoundScheduler("gavel-ftf (oracle)", Gavel(_ftf))


def gavel_sum() -> RoundScheduler:
    return RoundScheduler("gavel-sum", Gavel(_sum))
