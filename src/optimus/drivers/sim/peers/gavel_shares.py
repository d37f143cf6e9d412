"""Gavel's objectives: the part of time that each job is due on each GPU model, from linear programmes.

    X[m, k]   the part of time of job m on model k; sum over k at most 1; GPUs of model k are given out once
    rate(m) = sum over k of speed[m, k] x X[m, k]

    least attained service   the least of rate x GPUs / rate on all models in turn is made as large as possible
    the same, filled         and then the sum of the rates
    finish-time fairness     the worst (age + left / rate) / (time alone) is made as small as possible
    throughput               the sum of the rates, in steps per second, is made as large as possible

Why: what Gavel decides is in these shares; how rounds bring them about is in `gavel`.
Must not: remember who ran where.
Source: Narayanan et al., OSDI'20, and its artifact. "On all models in turn" is time in proportion to the GPUs of each
model; "alone" is the same divided by the GPUs of the job, counted with the share it would have had at each time.
Many solutions have the same least rate, and the artifact takes the one its interior-point solver stops at; so does the
first objective (`from_inside`). The filled one is not in the artifact: jobs end up to an eighth sooner with it.
Differences: finish-time fairness is a bisection of linear programmes instead of one convex programme. Jobs that are
alike get the same share, so they are one variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimus.drivers.sim.clockwork import Run
from optimus.drivers.sim.peers.from_inside import from_inside

Floats = NDArray[np.float64]

_SUM_WEIGHT = 1e-3
_SOME = 1e-6
"""GPUs of a model that has none just now: from the inside, there must be room."""
_STEPS = 14
"""Of the bisection: the worst ratio is found to about one part in a thousand."""


class Question(NamedTuple):
    runs: Sequence[Run]
    speeds: Floats
    """By job and model, relative to the job's reference."""
    capacity: Floats
    """GPUs of each model."""
    now_ms: int

    @property
    def gpus(self) -> Floats:
        return np.array([float(max(run.job.total_gpus, 1)) for run in self.runs])

    def in_turn(self) -> Floats:
        """The rate of each job with time on every model in proportion to its GPUs."""
        rates: Floats = np.maximum(self.speeds @ self.capacity / self.capacity.sum(), 1e-9)
        return rates


Solve = Callable[[Question], Floats]
"""Shares by job and model."""


class Programme:
    """max  sum of worth[i, k] X[i, k] + t   where  need[i] t <= rate[i] - least[i]. Rows may stand for several jobs."""

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


def least_attained_service(question: Question) -> Floats:
    speeds = question.speeds / question.in_turn()[:, None]
    gpus, speeds, many, kind_of = _kinds(question.gpus, speeds)
    return _shares(gpus, many, question.capacity, fair=speeds * gpus[:, None])[kind_of]


def filled(question: Question) -> Floats:
    rates = question.in_turn()
    gpus, speeds, many, kind_of = _kinds(question.gpus, question.speeds / rates[:, None])
    programme = Programme(speeds, gpus, many, question.capacity)
    shares = programme.solve(speeds * _SUM_WEIGHT / many.sum(), 1.0 / gpus, np.zeros(len(gpus)))
    assert shares is not None
    return shares[kind_of]


def throughput(question: Question) -> Floats:
    steps = np.array([_steps_per_s(run) for run in question.runs])
    gpus, speeds, many, kind_of = _kinds(question.gpus, question.speeds * steps[:, None])
    return _shares(gpus, many, question.capacity, worth=speeds / max(float(speeds.max()), 1e-9))[kind_of]


def _kinds(gpus: Floats, speeds: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """GPUs and speeds of jobs that are alike, how many they are, and which of them each job is."""
    kinds, kind_of, many = np.unique(np.column_stack([gpus, speeds]), axis=0, return_inverse=True, return_counts=True)
    return kinds[:, 0], kinds[:, 1:], many.astype(float), kind_of.ravel()


def _shares(
    gpus: Floats, many: Floats, capacity: Floats, *, fair: Floats | None = None, worth: Floats | None = None
) -> Floats:
    """Shares by kind: the least of fair . X as large as possible, or else the sum of worth . X."""
    kinds, models = len(gpus), len(capacity)
    shares = kinds * models
    each = np.repeat(np.arange(kinds), models)
    of_kind = np.zeros((kinds, shares))
    of_kind[each, np.arange(shares)] = 1.0
    of_model = np.tile(np.eye(models), kinds) * (gpus * many)[each]
    rows = [-np.eye(shares), of_kind, of_model]
    bounds = [np.zeros(shares), np.ones(kinds), np.maximum(capacity, _SOME)]
    weights = [many[each], many, np.ones(models)]
    if fair is None:
        assert worth is not None
        cost = -(worth * many[:, None]).ravel()
    else:
        rows = [np.column_stack([row, np.zeros(len(row))]) for row in rows]
        rows.append(np.column_stack([-of_kind * fair.ravel(), np.ones(kinds)]))
        bounds.append(np.zeros(kinds))
        weights.append(many)
        cost = np.append(np.zeros(shares), -1.0)
    found = from_inside(cost, np.vstack(rows), np.concatenate(bounds), np.concatenate(weights))
    return np.clip(found[:shares].reshape(kinds, models), 0.0, 1.0)


def _steps_per_s(run: Run) -> float:
    """At speed 1 and now, where steps are counted; else all count alike."""
    return float(getattr(run.progress, "steps_per_s", getattr(run.job.work, "steps_per_s", 1.0)))


class FinishTimeFairness:
    """Told what work is left: an oracle."""

    def __init__(self) -> None:
        self._alone: dict[int, tuple[float, float, float]] = {}
        """Part of the work done when last looked at, the time it would have taken alone, and its rate alone then."""

    def __call__(self, question: Question) -> Floats:
        speeds, gpus = question.speeds, question.gpus
        rates = question.in_turn() * gpus.min() / gpus
        runs = question.runs
        done = np.array([run.progress.done() for run in runs])
        left = np.array([run.job.work.ideal_ms() for run in runs]) * (1.0 - done)
        alone = np.array([self._alone_ms(run, float(d), float(r)) for run, d, r in zip(runs, done, rates, strict=True)])
        age = np.array([float(question.now_ms - run.job.submit_ms) for run in runs])
        programme = Programme(speeds, gpus, np.ones(len(gpus)), question.capacity)
        worth, none = speeds / rates[:, None] * _SUM_WEIGHT, np.zeros(len(gpus))

        def shares_for(ratio: float) -> Floats | None:
            time = ratio * alone - age
            if (time <= 0).any():
                return None
            return programme.solve(worth, none, left / time)

        low, high = float((age / alone).max()), 2.0 * float(((age + left / rates) / alone).max()) + 1.0
        found = shares_for(high)
        while found is None:  # the whole cluster in turn is more than everybody can have
            low, high = high, high * 4.0
            found = shares_for(high)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            better = shares_for(middle)
            if better is None:
                low = middle
            else:
                found, high = better, middle
        return found

    def _alone_ms(self, run: Run, done: float, rate: float) -> float:
        """How long the whole job takes alone."""
        before, passed, rate_then = self._alone.get(run.index, (0.0, 0.0, rate))
        whole = run.job.work.ideal_ms()
        passed += (done - before) * whole / rate_then
        self._alone[run.index] = (done, passed, rate)
        return passed + (1.0 - done) * whole / rate
