"""Metrics: one record in numbers, as docs/reference/metrics.md defines them.

Why: every table, file and chart shows the same numbers under the same names.
Owns: the list of metrics. Fields may be added; none changes its meaning while `VERSION` stays.
Must not: leave a job out in silence. Who was refused or did not finish is counted beside every average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.measuring import fairness, watching
from optimus.drivers.sim.measuring.capacity import HOUR_MS, Use, use
from optimus.drivers.sim.measuring.columns import Asked, Columns, Floats, ask, columns
from optimus.drivers.sim.measuring.fairness import QueueMetrics, Rho
from optimus.drivers.sim.measuring.spreads import Spread, by_size, spread
from optimus.drivers.sim.measuring.watching import Fragmentation, Fragments
from optimus.drivers.sim.records import Record
from optimus.drivers.sim.setup import Setup

VERSION = 1


class Metrics(Struct, frozen=True, kw_only=True, rename="camel"):
    """Times in milliseconds, parts as 0 to 1. Averages of times are over jobs that finished."""

    scheduler: str
    jobs: int
    finished: int
    rejected: int
    unfinished: int
    never_started: int
    """Of the unfinished."""
    jct_ms: Spread
    jct_ms_by_size: dict[str, Spread]
    first_wait_ms: Spread
    wait_ms: Spread
    longest_wait_ms: int
    longest_waiter: str
    slowdown: Spread
    slowdown_by_size: dict[str, Spread]
    makespan_ms: int
    rho: Rho
    use: Use
    gpu_hours_per_job: Spread
    deadlines: int
    """Jobs with one."""
    deadlines_met: int
    preemptions: int
    restarts: int
    resizes: int
    failures: int
    losses: int
    decisions: int
    decision_ms: Spread | None
    fragmentation: Fragmentation | None
    queues: tuple[QueueMetrics, ...]
    jain: float | None


class Measured(Struct, frozen=True, kw_only=True, eq=False):
    """A record with its metrics and the arrays behind them."""

    metrics: Metrics
    columns: Columns
    rho: Floats
    fragments: Fragments | None = None

    @property
    def name(self) -> str:
        return self.metrics.scheduler


def measure(
    record: Record,
    jobs: Sequence[Job] | Asked,
    setup: Setup,
    *,
    decision_ms: Floats | None = None,
    fragments: Fragments | None = None,
) -> Measured:
    """`jobs` are those that were played; `ask(jobs)` once is quicker for several records of the same jobs."""
    table = columns(record, jobs if isinstance(jobs, Asked) else ask(jobs))
    ratios = fairness.rho(table, setup)
    return Measured(
        metrics=_metrics(record, table, setup, ratios, decision_ms, fragments),
        columns=table,
        rho=ratios,
        fragments=fragments,
    )


def _metrics(
    record: Record,
    table: Columns,
    setup: Setup,
    ratios: Floats,
    decision_ms: Floats | None,
    fragments: Fragments | None,
) -> Metrics:
    asked, finished = table.asked, table.finished
    unfinished = ~finished & ~table.rejected
    slowdown = table.jct_ms / asked.ideal_ms
    queues = fairness.by_queue(table, setup)
    used = use(table, setup)
    longest, waiter = longest_wait(table)
    met = finished & (asked.submit_ms + np.nan_to_num(table.jct_ms) <= asked.deadline_ms)
    return Metrics(
        scheduler=record.scheduler,
        jobs=len(asked.names),
        finished=int(finished.sum()),
        rejected=int(table.rejected.sum()),
        unfinished=int(unfinished.sum()),
        never_started=int((unfinished & ~table.started).sum()),
        jct_ms=spread(table.jct_ms),
        jct_ms_by_size=by_size(table.jct_ms, table),
        first_wait_ms=spread(table.first_wait_ms[finished]),
        wait_ms=spread(table.wait_ms[finished]),
        longest_wait_ms=longest,
        longest_waiter=waiter,
        slowdown=spread(slowdown),
        slowdown_by_size=by_size(slowdown, table),
        makespan_ms=int(table.left_ms[finished].max() - asked.submit_ms.min()) if finished.any() else 0,
        rho=fairness.summarise(ratios),
        use=used,
        gpu_hours_per_job=spread(table.gpu_ms[finished] / HOUR_MS),
        deadlines=int((~np.isnan(asked.deadline_ms)).sum()),
        deadlines_met=int(met.sum()),
        preemptions=sum(row.preemptions for row in record.jobs),
        restarts=sum(row.restarts for row in record.jobs),
        resizes=sum(row.resizes for row in record.jobs),
        failures=sum(row.failures for row in record.jobs),
        losses=sum(row.losses for row in record.jobs),
        decisions=record.decisions,
        decision_ms=None if decision_ms is None else spread(decision_ms),
        fragmentation=None if fragments is None else watching.summarise(fragments, used.gpus),
        queues=queues,
        jain=fairness.jain(queues),
    )


def longest_wait(table: Columns) -> tuple[int, str]:
    """At a stretch, of all jobs that were not refused, finished or not; the first of equals."""
    waits = np.nan_to_num(table.longest_wait_ms, nan=-1.0)
    if not len(waits) or waits.max() < 0:
        return 0, ""
    row = int(waits.argmax())
    return int(waits[row]), table.asked.names[row] if waits[row] > 0 else ""
