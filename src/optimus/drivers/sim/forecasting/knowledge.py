"""What is known about run times: who said what, how wrong such words were, and how long the like of it ran.

Why: a forecast is as good as its run times. Every draw names what it rests on, so that a reader can judge it.
Owns: the choice of the source for each workload, and the draw from it.
Must not: know how long anything really runs, or look beyond the state it is made from.

    progress                it says how far it is: the rest at its pace × an error, less the longer it is known
    declared or predicted   that time × an error like those of the past; without a past, log-normal (0.5)
    family                  run times of its family, given that it has already run so long
    queue, cluster          the same of its queue; of everybody. What has outlived them all is of their kind and soon
                            over, or of another and a guess: the further beyond the longest, the rather
    guess                   nothing is known: log-normal, the cautious default of the settings is its P95
    endless                 inference without a word about run time does not end

Interactive work lasts as long as somebody sits before it: its queue, where most work runs unattended, says nothing
about that, so without a family that is known it is a guess.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import exp, log, sqrt
from statistics import NormalDist

import numpy as np

from optimus.drivers.sim.forecasting.lifetimes import TAIL, Lifetimes, tail
from optimus.drivers.sim.standing import Standing
from optimus.drivers.sim.traces.trace import ENDLESS_MS
from optimus.model.progress import Remaining
from optimus.model.workloads import WorkloadClass
from optimus.state.keyframe import Keyframe

ENOUGH = 5
"""Ends that a group must have seen before it speaks for its members."""
ERROR_SIGMA = 0.5
"""Of declared times, while nothing is known about how wrong they are: half of them within 0.7 to 1.4 times."""
GUESS_SIGMA = 1.5
PACE_SIGMA = 0.4
"""Of the rest of work that has just begun to count: steps get slower and faster, evaluations come in between."""
LEAST_SIGMA = 0.05
KNOWN_ODDS = 4.0
"""To one, of work that has just outlived everything known: that it is of the kind that is known. Asked for right then
with ten jobs of Philly as history, its P90 holds in 82 of a hundred cases, and in 71 where no other kind is thought of;
with a hundred in 83 and 79. At any moment after that it holds in 95 or more, either way."""
LEAST_REST_MS = 1_000
"""After its last step it still has to save and to leave."""
_P95 = 1.645
_NORMAL = NormalDist()
_LEAST = 1e-12


class Basis(StrEnum):
    """What a run time rests on."""

    PROGRESS = "progress"
    DECLARED = "declared"
    FAMILY = "family"
    QUEUE = "queue"
    CLUSTER = "cluster"
    GUESS = "guess"
    ENDLESS = "endless"


class Knowledge:
    def __init__(
        self, frame: Keyframe, people: Sequence[Standing], errors: Iterable[float] = (), now_ms: int | None = None
    ) -> None:
        """`errors`: true run time / declared run time of work that has ended. `now_ms`: later than the frame."""
        self._now_ms = frame.now_ms if now_ms is None else now_ms
        running = [standing for standing in people if standing.runs and standing.elapsed_ms]
        self._families = {
            name: Lifetimes(times, [s.elapsed_ms for s in running if s.workload.family == name])
            for name, times in frame.family_times.items()
        }
        self._queues = {
            name: Lifetimes(times, [s.elapsed_ms for s in running if s.workload.queue == name])
            for name, times in frame.queue_times.items()
        }
        everybody = [time for times in frame.queue_times.values() for time in times]
        self._cluster = Lifetimes(everybody, [s.elapsed_ms for s in running])
        self._errors = Lifetimes(errors)
        self._guess_ms = frame.settings.unknown_duration_ms * exp(-_P95 * GUESS_SIGMA)

    def draw_ms(self, standing: Standing, seed: int, sample: int) -> float:
        """Its run time in all, in this sample: the same for the same workload, whoever else is there."""
        lot = np.random.default_rng((seed, sample, zlib.crc32(standing.workload.id.encode())))
        elapsed = standing.elapsed_ms
        basis = self.basis(standing)
        if basis is Basis.PROGRESS:
            assert standing.remaining is not None
            return elapsed + self._rest_ms(lot, standing.remaining)
        if basis is Basis.ENDLESS:
            return float(ENDLESS_MS)
        if basis is Basis.DECLARED:
            assert standing.expected_ms is not None
            return self._off(lot, elapsed / standing.expected_ms) * standing.expected_ms
        if basis in (Basis.CLUSTER, Basis.GUESS) and self._has_outlived_all(standing):
            basis = Basis.CLUSTER if lot.random() < self._of_known_kind(elapsed) else Basis.GUESS
        if basis is Basis.GUESS:
            return _log_normal(lot, self._guess_ms, GUESS_SIGMA, elapsed)
        return self._group(standing, basis).draw(lot, elapsed)

    def basis(self, standing: Standing) -> Basis:
        """The nearest source that has something to say about work that has run so long."""
        if standing.remaining is not None:
            return Basis.PROGRESS
        if standing.expected_ms:
            return Basis.DECLARED
        attended = standing.workload.workload_class is WorkloadClass.INTERACTIVE
        for basis in (Basis.FAMILY,) if attended else (Basis.FAMILY, Basis.QUEUE, Basis.CLUSTER):
            group = self._group(standing, basis)
            if group.ended >= ENOUGH and group.known_beyond(standing.elapsed_ms):
                return basis
        if standing.workload.workload_class is WorkloadClass.INFERENCE:
            return Basis.ENDLESS
        known = self._has_outlived_all(standing) and self._of_known_kind(standing.elapsed_ms) >= 0.5
        return Basis.CLUSTER if known else Basis.GUESS

    def _has_outlived_all(self, standing: Standing) -> bool:
        attended = standing.workload.workload_class is WorkloadClass.INTERACTIVE
        return not attended and self._cluster.ended >= ENOUGH and not self._cluster.known_beyond(standing.elapsed_ms)

    def _of_known_kind(self, elapsed: float) -> float:
        """How likely what has outlived everything is of the kind that is known (Bayes: how likely each kind comes
        so far beyond the longest). Minutes of work that took seconds say next to nothing of what runs for minutes."""
        longest = max(self._cluster.longest, 1.0)
        elapsed = max(elapsed, longest)
        known: float = KNOWN_ODDS * (longest / elapsed) ** TAIL
        other = self._beyond_guess(elapsed) / self._beyond_guess(longest)
        return known / (known + other)

    def _beyond_guess(self, elapsed: float) -> float:
        return max(1.0 - _NORMAL.cdf(log(elapsed / self._guess_ms) / GUESS_SIGMA), _LEAST)

    def _rest_ms(self, lot: np.random.Generator, told: Remaining) -> float:
        """From now on, given that it has not ended yet. What was measured for as long as is left is known by half."""
        left = max(told.left_ms, LEAST_REST_MS)
        sigma = PACE_SIGMA * sqrt(left / (left + told.measured_ms))
        passed = max(self._now_ms - told.at_ms, 0)
        return _log_normal(lot, left, max(sigma, LEAST_SIGMA), passed) - passed

    def _group(self, standing: Standing, basis: Basis) -> Lifetimes:
        if basis is Basis.FAMILY:
            return self._families.get(standing.workload.family, _NOBODY)
        if basis is Basis.QUEUE:
            return self._queues.get(standing.workload.queue, _NOBODY)
        return self._cluster

    def _off(self, lot: np.random.Generator, beyond: float) -> float:
        """True / declared, given that it is more than `beyond`."""
        if self._errors.ended >= ENOUGH:
            return self._errors.draw(lot, beyond)
        return _log_normal(lot, 1.0, ERROR_SIGMA, beyond)


_NOBODY = Lifetimes(())


def _log_normal(lot: np.random.Generator, median: float, sigma: float, beyond: float) -> float:
    """Given that it is more than `beyond`, where that is not too far out for a normal distribution."""
    below = _NORMAL.cdf(log(beyond / median) / sigma) if beyond > 0 else 0.0
    if below > 1.0 - 1e-9:
        return beyond * tail(lot)
    uniform = below + (1.0 - below) * float(lot.random())
    return median * exp(sigma * _NORMAL.inv_cdf(min(max(uniform, 1e-12), 1.0 - 1e-12)))
