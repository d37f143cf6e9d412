"""What schedulers are told about run times: the truth, the truth with an error, or what the trace says.

The error is log-normal: a factor exp(N(0, sigma)), drawn for each job from its name and a seed, so that every scheduler
is wrong about a job in the same way. `oracle` and `erring` look at the truth; who uses them says so in its name.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np

from optimus.drivers.sim.clockwork import Run
from optimus.drivers.sim.jobs import Job

Expect = Callable[[Run], float]
"""The run time of a job, as asked for, in milliseconds."""


def with_error(job: Job, sigma: float, seed: int = 0) -> float:
    factor = np.random.default_rng([seed, zlib.crc32(job.name.encode())]).normal(0.0, sigma)
    return job.work.ideal_ms() * math.exp(factor)


class Expectation:
    """Asks once for each job."""

    def __init__(self, name: str, of: Callable[[Job], float]) -> None:
        self.name = name
        self._of = of
        self._known: dict[int, float] = {}

    def __call__(self, run: Run) -> float:
        if run.index not in self._known:
            self._known[run.index] = self._of(run.job)
        return self._known[run.index]


def oracle() -> Expectation:
    return Expectation("oracle", lambda job: job.work.ideal_ms())


def erring(sigma: float, seed: int = 0) -> Expectation:
    return Expectation(f"error {sigma:g}", lambda job: with_error(job, sigma, seed))


def told() -> Expectation:
    """What the trace says; a job about which it says nothing is taken for endless, so it is last."""
    return Expectation("as told", lambda job: math.inf if job.expected_ms is None else job.expected_ms)


def attained_ms(run: Run, now_ms: int) -> int:
    """Time it has had resources so far."""
    return run.record.run_ms + (now_ms - run.began_ms if run.seats else 0)
