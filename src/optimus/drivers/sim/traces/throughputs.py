"""Throughputs: how fast each kind of job runs on which GPUs, as Gavel and Shockwave publish it.

    gpu_type, consolidated (1: on one server), job_type, scale_factor (GPUs), steps_per_s
    other_job_type …                        rows for two jobs on one GPU; they are not used here

Why: a job that is spread loses much on fast GPUs and little on slow ones, so neither factor stands alone.
Owns: the table, and the work whose speed is looked up in it by GPU model and by whether it is spread.
Must not: know who publishes jobs for it.
Source: Narayanan et al., OSDI'20.
"""

from __future__ import annotations

from pathlib import Path

from optimus.drivers.sim.traces.rows import Row, RowError, Table
from optimus.drivers.sim.traces.trace import TraceError, TraceProblem
from optimus.drivers.sim.works import Spread
from optimus.drivers.sim.works.steady import Steady

COLUMNS = ("gpu_type", "consolidated", "job_type", "scale_factor", "steps_per_s")


class PlacedSteady(Steady, frozen=True, kw_only=True):
    """Steady work whose loss by spreading depends on the GPUs."""

    speed_spread: dict[str, float]
    """By model, over more than one node; `speed_by_model` holds for one node."""

    def speed(self, spread: Spread) -> float:
        if spread.nodes < 2:
            return super().speed(spread)
        return self.speed_spread.get(spread.model, 1.0) * spread.slowed


class Throughputs:
    """Steps in a second of jobs that have their GPUs for themselves."""

    def __init__(self, path: Path) -> None:
        table = Table(path)
        table.demand(*COLUMNS)
        self.path = path
        self.problems: list[TraceProblem] = table.problems.found
        self._rates: dict[tuple[str, int, str, bool], float] = {}
        self._measured: dict[str, set[int]] = {}
        self._shared = 0
        table.for_each(self._measure)
        if self._shared:
            table.problems.note(
                f"{self._shared} rows are about two jobs on one GPU; sharing is not simulated from them"
            )
        self.models = tuple(sorted({model for _, _, model, _ in self._rates}))
        if not self._rates:
            raise TraceError(f"{path}: no rate in it; expected rows of {', '.join(COLUMNS)}")

    def _measure(self, row: Row) -> None:
        if row.text_or("other_job_type"):
            self._shared += 1
            return
        rate = row.number("steps_per_s")
        if rate < 0:
            raise RowError(f"steps_per_s is {rate:g}; it cannot be negative")
        kind, gpus = row.name("job_type"), row.gpus("scale_factor")
        self._rates[kind, gpus, row.name("gpu_type"), bool(row.whole("consolidated"))] = rate
        self._measured.setdefault(kind, set()).add(gpus)

    def kinds(self) -> tuple[str, ...]:
        return tuple(self._measured)

    def knows(self, kind: str) -> bool:
        return kind in self._measured

    def measured(self, kind: str, gpus: int) -> int:
        """The number of GPUs whose rates stand for `gpus`: itself, or the largest that was measured below it."""
        return max((g for g in self._measured[kind] if g <= gpus), default=min(self._measured[kind]))

    def rate(self, kind: str, gpus: int, model: str, *, together: bool) -> float:
        """0: it cannot run there. One GPU is always together; spread and not measured is as fast as together.
        Where so many GPUs were not measured, the rate is in proportion to the number nearest below."""
        known = self.measured(kind, gpus)
        rate = self._rates.get((kind, known, model, together or known == 1))
        if rate is None:
            rate = self._rates.get((kind, known, model, not together), 0.0)
        return rate * gpus / known
