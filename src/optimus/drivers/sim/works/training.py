"""Training as it was measured: step times by placement and batch size, statistical efficiency by epoch.

A job is so much progress (in steps of its smallest batch), epoch by epoch. Its speed follows from tables: how long a
step takes on this placement with this local batch, and how much a step of this batch brings in this epoch. It tunes
its batch to its place by a goodput model that it fits to its own measurements, or keeps the batch it was given.

Source: the simulator of the Pollux artifact (OSDI'21), whose model and data this follows; differences: none known.
Epochs end on whole seconds there, and so they do here.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from optimus.drivers.sim.works import Progress, Spread
from optimus.drivers.sim.works.goodput_model import BatchRange, GoodputModel, Measured, StepTimes, fit

Floats = NDArray[np.float64]
_EPS = 1e-8


class Epochs(Struct, frozen=True):
    """One training run with a fixed batch size, a row per epoch."""

    progress: tuple[float, ...]
    iteration: tuple[int, ...]
    grad_sqr: tuple[float, ...]
    grad_var: tuple[float, ...]


class Application:
    """Everything measured of one application. Shared by all its jobs."""

    def __init__(
        self,
        name: str,
        *,
        placements: dict[int, list[tuple[int, float, float]]],
        scalability: list[tuple[int, int, int, float, float]],
        validation: dict[int, Epochs],
        max_epochs: int,
        most_local: int | None = None,
    ) -> None:
        """`placements`: digits (replicas by node) -> (local batch, step, sync); `scalability`: (nodes, replicas, …)."""
        self.name = name
        self._placements = {key: np.array(sorted(rows)) for key, rows in placements.items()}
        self._scalability = scalability
        self._validation = dict(sorted(validation.items()))
        locals_seen = [int(row[0]) for rows in placements.values() for row in rows]
        self.max_epochs = max_epochs
        self.batches = BatchRange(
            initial=min(validation),
            most=max(validation),
            least_local=min(locals_seen),
            most_local=most_local or max(locals_seen),
        )
        self._times: dict[tuple[tuple[int, ...], int], tuple[float, float]] = {}
        self._stats: dict[tuple[int, int], tuple[float, float]] = {}
        self.goals = [0.0] + [min(e.progress[i] for e in validation.values()) for i in range(max_epochs)]
        """Progress at the end of each epoch."""

    def step_times(self, per_node: tuple[int, ...], local: int) -> tuple[float, float]:
        """Seconds of one step, and of the synchronisation in it."""
        key = (per_node, local)
        if key not in self._times:
            self._times[key] = self._interpolate(per_node, local)
        return self._times[key]

    def _interpolate(self, per_node: tuple[int, ...], local: int) -> tuple[float, float]:
        ring = min(per_node[i:] + per_node[:i] for i in range(len(per_node)))
        rows = self._placements.get(int("".join(map(str, ring))))
        if rows is not None:
            return float(np.interp(local, rows[:, 0], rows[:, 1])), float(np.interp(local, rows[:, 0], rows[:, 2]))
        step, sync = self._between([min(len(ring), 16), sum(ring), local])[0]
        if math.isnan(step):
            raise ValueError(
                f"{self.name} was never measured near {sum(ring)} replicas on {len(ring)} nodes, batch {local}"
            )
        return float(step), float(sync)

    @cached_property
    def _between(self):  # type: ignore[no-untyped-def]
        from scipy.interpolate import LinearNDInterpolator  # noqa: PLC0415  (an extra)

        groups: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
        for digits, rows in self._placements.items():
            shape = [int(d) for d in str(digits)]
            for local, step, sync in rows:
                groups.setdefault((len(shape), sum(shape), int(local)), []).append((step, sync))
        points = [(key, tuple(np.mean(values, axis=0))) for key, values in sorted(groups.items())]
        points += [((n, k, m), (step, sync)) for n, k, m, step, sync in self._scalability]
        return LinearNDInterpolator(np.array([p[0] for p in points]), np.array([p[1] for p in points]))

    def gradient(self, batch: int, epoch: int) -> tuple[float, float]:
        """Squared norm and variance of the gradient, between the batch sizes that were measured."""
        key = (batch, epoch)
        if key not in self._stats:
            below = max(b for b in self._validation if b <= batch)
            above = min(b for b in self._validation if b >= batch)
            low, high = self._validation[below], self._validation[above]
            part = (batch - below) / (above - below) if above > below else 0.0
            self._stats[key] = (
                low.grad_sqr[epoch] * (1 - part) + high.grad_sqr[epoch] * part,
                low.grad_var[epoch] * (1 - part) + high.grad_var[epoch] * part,
            )
        return self._stats[key]

    def iterations(self, batch: int, epoch: int) -> float:
        """Steps of this batch until the end of an epoch, counted from 0."""
        below = max(b for b in self._validation if b <= batch)
        above = min(b for b in self._validation if b >= batch)
        part = (batch - below) / (above - below) if above > below else 0.0
        return self._validation[below].iteration[epoch] * (1 - part) + self._validation[above].iteration[epoch] * part

    def split(self, batch: int, replicas: int) -> tuple[int, int]:
        """Local batch and accumulation steps of a given batch size."""
        local = math.ceil(batch / replicas - _EPS)
        steps = math.ceil(local / self.batches.most_local - _EPS) - 1
        if replicas == 1 and batch > self.batches.initial:
            steps = max(1, steps)
        atomic = math.ceil(local / (steps + 1) - _EPS)
        return min(atomic, self.batches.most // (replicas * (steps + 1))), steps


class Training(Struct, frozen=True):
    application: Application
    batch: int | None = None
    """None: it tunes its batch size to its place."""
    replicas: int = 1
    """Those its owner asked for."""

    def begin(self) -> Progress:
        return TrainingProgress(self)

    def ideal_ms(self) -> float:
        """On the replicas asked for, on as few nodes of four as possible, without a pause."""
        per_node = packed(self.replicas)
        progress = TrainingProgress(self)
        progress.moved(Spread(per_node))
        passed = 0.0
        while not progress.over:
            left = progress.left_ms()
            progress.pass_ms(left + 1)
            passed += left
        return passed


def packed(replicas: int, per_node: int = 4) -> tuple[int, ...]:
    full, rest = divmod(replicas, per_node)
    return (per_node,) * full + ((rest,) if rest else ())


class TrainingProgress:
    def __init__(self, work: Training) -> None:
        self.work = work
        self.application = work.application
        self.epoch = 0
        self.progress = 0.0
        self.over = False
        self.over_ago_ms = 0.0
        self.rounds = True
        self.measures = work.batch is None
        self.atomic = 0
        self.steps = 0
        self.measured: dict[tuple[int, int, int], Measured] = {}
        self.times: StepTimes | None = None
        self.gradient: tuple[float, float] | None = None
        self._spread = Spread(())
        self._rates: dict[tuple[int, int, int], float] = {}

    # -- what others may know ---------------------------------------------------------------------------------

    def model(self) -> GoodputModel | None:
        """What the job knows of its own speed; None until it has run."""
        if self.times is None or self.gradient is None:
            return None
        return GoodputModel(self.times, *self.gradient, self.application.batches)

    @property
    def most_measured(self) -> int:
        return max((m.replicas for m in self.measured.values()), default=0)

    def speedup_percent(self) -> tuple[int, ...] | None:
        model = self.model()
        if model is None:
            return None
        limits = self.application.batches
        most = max(min(2 * self.most_measured, limits.most // limits.least_local), 1)
        replicas = np.arange(1, most + 1)
        goodput = model.best(-(-replicas // 4), replicas)[0]
        return tuple(int(x) for x in goodput / goodput[0] * 100)

    # -- progress ---------------------------------------------------------------------------------------------

    def moved(self, spread: Spread) -> None:
        self._spread = spread
        self._tune()

    def pass_ms(self, ms: float) -> None:
        seconds = ms / 1000
        while seconds > 0 and not self.over:
            rate = self._measure()
            goal = self.application.goals[self.epoch + 1]
            if self.progress + rate * seconds < goal:
                self.progress += rate * seconds
                seconds = 0
            else:
                seconds -= round((goal - self.progress) / rate)
                self.progress = goal
                self.epoch += 1
                self.over = self.epoch >= self.application.max_epochs
            self._tune()
        self.over_ago_ms = seconds * 1000

    def left_ms(self) -> float:
        goal = self.application.goals[self.epoch + 1]
        return max((goal - self.progress) / self._rate() * 1000, 0.0) + 1

    def done(self) -> float:
        return self.progress / self.application.goals[-1]

    def back_to(self, done: float) -> None:
        self.progress = done * self.application.goals[-1]
        self.epoch = max(e for e in range(self.application.max_epochs) if self.application.goals[e] <= self.progress)

    def _rate(self) -> float:
        """Progress in a second, here and now."""
        key = (self.atomic, self.steps, self.epoch)
        if key not in self._rates:
            app, spread = self.application, self._spread
            step, sync = app.step_times(spread.per_node, self.atomic)
            batch = spread.replicas * self.atomic * (self.steps + 1)
            sqr, var = app.gradient(batch, self.epoch)
            gain = (var + sqr) / (var * app.batches.initial / batch + sqr)
            self._rates[key] = gain / (step + (step - sync) * self.steps) * spread.slowed
        return self._rates[key]

    def _measure(self) -> float:
        """The rate; and the job learns from it."""
        app, spread = self.application, self._spread
        batch = spread.replicas * self.atomic * (self.steps + 1)
        self.gradient = app.gradient(batch, self.epoch)
        key = (spread.nodes, spread.replicas, self.atomic)
        if key not in self.measured:
            step, sync = app.step_times(spread.per_node, self.atomic)
            self.measured[key] = Measured(*key, step, sync)
            if self.work.batch is None:
                self.times = fit(tuple(self.measured.values()))
        return self._rate()

    def _tune(self) -> None:
        app, replicas = self.application, self._spread.replicas
        self._rates.clear()
        batch = self.work.batch
        model = self.model() if batch is None else None
        if model is not None:
            _, atomic, steps = model.best(np.array([self._spread.nodes]), np.array([replicas]))
            self.steps = int(steps[0])
            self.atomic = min(int(atomic[0]), app.batches.most // (replicas * (self.steps + 1)))
            return
        if batch is None:
            batch = max(app.batches.initial, app.batches.least_local * replicas)
        self.atomic, self.steps = app.split(batch, replicas)
