"""Orders: who comes first inside a queue. Lower is earlier.

The brain sorts the workloads of a queue by priority, then by what these functions return, then by arrival and
name; so an order never sees to priorities, and a tie is served in order of arrival. Shares, limits, guarantees,
reservations and gangs hold whatever the order says.

Each row is judged by its own columns alone. Ratios are floats made of + - x / only, which give the same bits on
every machine; differences are taken in integers that were bounded before, so nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimus.decide.policies.columns import UNKNOWN, BoolArray, FloatArray, IntArray, WorkloadColumns
from optimus.decide.policies.ranking import lexicographic

MINUTE_MS = 60_000
HOUR_MS = 3_600_000

HYSTERESIS = 0.6
"""Running work counts as this much of what is left of it: a small gain is not worth a restart."""
BEGUN = 0.9
"""And work that has begun as this much, so that what was stopped goes on before its equals begin: large jobs end one
after the other, not all together at the end."""
UNSEEN_MS = 10 * MINUTE_MS
"""Work about which nothing is known is taken for this short, until it has run longer."""
OVERDUE_MS = MINUTE_MS
"""The least that is left of work that outlived every estimate."""
AGING_MS = 12 * HOUR_MS
"""Waiting this long halves a workload's value in the default order, twice as long makes it a third."""
ATTAINED_LEVELS_GPU_MS = (3 * HOUR_MS, 10 * HOUR_MS)

_LONGEST_MS = 1 << 53


def fifo(columns: WorkloadColumns) -> IntArray:
    """First come, first served."""
    return columns.submitted_ms


def priority(columns: WorkloadColumns) -> IntArray:
    """Higher priority first, arrival among equals.

    The brain looks at priority before any order, so here this is `fifo`. It says so by itself for those who
    read an order alone: a report, a comparison, a learner."""
    return lexicographic(-bounded(columns.priority, -_LONGEST_MS), columns.submitted_ms)


def shortest_first(columns: WorkloadColumns) -> FloatArray:
    """Least GPU time left first: rest of the run x size.

    The rest comes from what was declared or predicted, else from the history of the family, else from the high
    quantile of the queue: who declares nothing is taken for long. Where even that is unknown it comes last.
    Running work counts as 0.6 of what is left of it, or two that outlive their estimates would take turns for ever.
    Long work can wait for as long as shorter work keeps coming; `default` is the tamed form."""
    left = known_remaining_ms(columns)
    long = np.maximum(bounded(columns.queue_high_ms) - bounded(columns.elapsed_ms), OVERDUE_MS)
    left = np.where(left == UNKNOWN, np.where(columns.queue_high_ms >= 0, long, _LONGEST_MS), left)
    return with_hysteresis(gpu_time(left, columns.size_milli), columns)


def attained_levels(*thresholds_gpu_ms: int) -> Callable[[WorkloadColumns], IntArray]:
    """Levels by service received, arrival inside a level: what has had little goes before what has had much.

    Levels and not the service itself, or equal workloads would take turns for ever (Tiresias, NSDI'19, 2D-LAS)."""
    thresholds = np.array(sorted(thresholds_gpu_ms), dtype=np.int64)

    def least_attained_service(columns: WorkloadColumns) -> IntArray:
        level = np.searchsorted(thresholds, columns.attained_gpu_ms, side="right")
        return lexicographic(level, columns.submitted_ms)

    return least_attained_service


least_attained_service = attained_levels(*ATTAINED_LEVELS_GPU_MS)
"""Two thresholds, 3 and 10 GPU-hours: on the Pollux workloads 9 % below Tiresias' single one of 16."""


def deadline(columns: WorkloadColumns) -> IntArray:
    """Earliest deadline first, as long as it can be met.

    Work that would be late even if it started now, or that has no deadline, follows in order of arrival:
    a hopeless deadline pushes nobody aside, and is not punished either. An unknown rest counts as nothing, so
    such work is hopeless only when its deadline has passed."""
    rest = np.maximum(known_remaining_ms(columns), 0)
    due = bounded(columns.deadline_ms)
    now = min(max(columns.now_ms, 0), _LONGEST_MS)
    can_be_met = (columns.deadline_ms >= 0) & (due - now - rest >= 0)
    return lexicographic(~can_be_met, np.where(can_be_met, columns.deadline_ms, columns.submitted_ms))


def finish_time_fairness(columns: WorkloadColumns) -> FloatArray:
    """Worst rho first: (waited + run + left) / time alone on the queue's share (Themis, NSDI'20).

    Alone it would take its run time, stretched by size / share where it is larger than the share. Rho is
    cut to thousandths, so that what arrived together stays in order of arrival."""
    elapsed = bounded(columns.elapsed_ms)
    run = np.maximum(elapsed + remaining_ms(columns), 1)
    due = bounded(columns.entitled_milli)
    stretch = np.where(due > 0, bounded(columns.size_milli, 1) / np.maximum(due, 1), 1.0)
    rho = (bounded(columns.waiting_ms) + run) / (run * np.maximum(stretch, 1.0))
    worst_first: FloatArray = -np.floor(rho * 1000)
    return worst_first


def default(columns: WorkloadColumns) -> FloatArray:
    """Least expected GPU time left first, with hysteresis and aging: the best general choice.

    left x size x (0.9 if it has begun) x (0.6 if it runs) / (1 + waited / 12 h), where left is the first of these
    that is known:
      declared or predicted run time, minus what it ran;
      the mean of its family among work that lived as long, minus what it ran; from 128 runs of the family on, the
      time until one like it ends, if each is given up when that is least (Gittins); the same of its queue for work
      that names no family;
      a quarter of what it ran, at least a minute, once it outlived every estimate;
      what it ran, at least ten minutes: the longer it lasts, the longer it will last.

    Of a mix the mean is made by a few long ones: on 2,000 jobs of Philly, which names no family, the index instead
    of the mean residual gave 3 % less average completion time (one window). From a few runs it believes in luck: on
    the Pollux workloads, where most families have fewer than 50, it was 1 to 2 % worse than the mean for all of them,
    and changes nothing for those that have 128. On four ITP clusters, whose families have hundreds, it gave 0.4 % more,
    0.7, 1.6 and 5.6 % less, and p99 between 3 % less and 3 % more.

    The 128 were chosen on these data, after two other rules: the index for every family, and for those whose
    variance is above that of chance (1 % worse on the ITP cluster that gains most, 2 % on Pollux learning online).

    On the Pollux workloads the mean residual is 16 to 21 % below Tiresias in average completion time, in-sample
    (design: policies.md). Such orders pay with the tail, which is why the wait divides. The 12 hours were chosen
    among two dozen variants on ITP traces, in a model without nodes or preemption and with run times known up
    to a log-normal error of 0.7: a first guess, tuned and measured on the same data. Against no aging, there:
      four clusters, load 0.6 to 1.0, one seed: mean completion -1 to 0 %, p99 wait -14 to -1 % (means by pair);
      two congested ones, three seeds: mean completion +3 to +16 %, p99 wait -9 to +7 %, longest wait -15 to -1 %.
    A limit after which work goes first was mostly worse: +3 to +139 % mean completion on the congested ones."""
    value = with_hysteresis(gpu_time(remaining_ms(columns), columns.size_milli), columns)
    return value / (1.0 + bounded(columns.waiting_ms) / AGING_MS)


def has_estimate(columns: WorkloadColumns) -> BoolArray:
    """Turns for those whose run time was declared, predicted or learned: nobody's work is stopped for a guess."""
    return (columns.expected_ms >= 0) | (columns.family_mean_ms >= 0)


def everybody(columns: WorkloadColumns) -> BoolArray:
    """Turns for all: the order itself says who has had enough."""
    return np.ones(len(columns), dtype=np.bool_)


def known_remaining_ms(columns: WorkloadColumns) -> IntArray:
    """Expected rest of the run from declaration, prediction or family; -1 where nothing is known."""
    elapsed = bounded(columns.elapsed_ms)
    declared = bounded(columns.expected_ms, UNKNOWN) - elapsed
    learned = bounded(columns.family_mean_ms, UNKNOWN) - elapsed
    has_estimate = (columns.expected_ms >= 0) | (columns.family_mean_ms >= 0)
    outlived = np.where(has_estimate, np.maximum(elapsed // 4, OVERDUE_MS), UNKNOWN)
    return np.where(declared > 0, declared, np.where(learned > 0, learned, outlived))


def remaining_ms(columns: WorkloadColumns) -> IntArray:
    """Expected rest of the run, with a guess where nothing is known."""
    known = known_remaining_ms(columns)
    return np.where(known == UNKNOWN, np.maximum(bounded(columns.elapsed_ms), UNSEEN_MS), known)


def gpu_time(time_ms: IntArray, size_milli: IntArray) -> FloatArray:
    """Time x size. Work without any size counts as a thousandth of a GPU."""
    return time_ms.astype(np.float64) * bounded(size_milli, 1).astype(np.float64)


def with_hysteresis(value: FloatArray, columns: WorkloadColumns) -> FloatArray:
    begun = np.where(columns.is_running | (columns.elapsed_ms > 0), value * BEGUN, value)
    return np.where(columns.is_running, begun * HYSTERESIS, begun)


def bounded(column: IntArray, least: int = 0) -> IntArray:
    """The column without values that make no sense or would overflow."""
    return np.minimum(np.maximum(column, least), _LONGEST_MS)
