"""Timelines: what was true at every moment of a record, as steps.

Why: queue length, GPUs in use and dues all are counts that jump when something happens; one small kind of function
serves them all, exactly, whatever the number of points a chart has room for.
Owns: steps, their integral and their means over bins; the timelines of a record.
Must not: round times or look at fewer points than there are.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.columns import Columns, Floats, Ints


class Steps(Struct, frozen=True, eq=False):
    """`values[i]` holds from `times[i]` until `times[i + 1]`; 0 before, the last one for ever after."""

    times: Ints
    values: Floats

    def at(self, times: Ints) -> Floats:
        found = np.searchsorted(self.times, times, side="right") - 1
        return np.where(found >= 0, self.values[np.maximum(found, 0)], 0.0) if len(self.times) else np.zeros(len(times))


def steps(times: Ints, changes: Floats) -> Steps:
    """The running sum of changes; those of the same moment are one."""
    if not len(times):
        return Steps(np.zeros(0, np.int64), np.zeros(0))
    moments, where = np.unique(times, return_inverse=True)
    return Steps(moments, np.cumsum(np.bincount(where, weights=changes, minlength=len(moments))))


def between(begins: Ints, ends: Ints, amounts: Floats | None = None) -> Steps:
    """So much of it from each begin to its end."""
    weights = np.ones(len(begins)) if amounts is None else amounts
    return steps(np.concatenate([begins, ends]), np.concatenate([weights, -weights]))


def integral(line: Steps, times: Ints) -> Floats:
    """From the beginning until each of these times."""
    if not len(line.times):
        return np.zeros(len(times))
    sums = np.concatenate([[0.0], np.cumsum(line.values[:-1] * np.diff(line.times))])
    found = np.searchsorted(line.times, times, side="right") - 1
    held = np.maximum(found, 0)
    return np.where(found >= 0, sums[held] + line.values[held] * (times - line.times[held]), 0.0)


def means(line: Steps, edges: Ints) -> Floats:
    """The average over each bin between two edges."""
    return np.diff(integral(line, edges)) / np.maximum(np.diff(edges), 1)


def bins(begin_ms: int, end_ms: int, most: int) -> Ints:
    """Edges of at most so many bins of equal length; the last one reaches the end or a little beyond."""
    count = max(min(most, end_ms - begin_ms), 1)
    width = max(-(-(end_ms - begin_ms) // count), 1)
    return np.arange(begin_ms, begin_ms + width * count + 1, width, dtype=np.int64)


# -- of a record --------------------------------------------------------------------------------------------------


def window(columns: Columns) -> tuple[int, int]:
    """From the first submission until the last job is over."""
    if not len(columns.left_ms):
        return 0, 0
    return int(columns.asked.submit_ms.min()), int(columns.left_ms.max())


def active(columns: Columns) -> Steps:
    """Jobs that are submitted and not over."""
    return between(columns.asked.submit_ms, columns.left_ms)


def running(columns: Columns) -> Steps:
    return between(columns.pieces.start_ms, columns.pieces.end_ms)


def waiting(columns: Columns) -> Steps:
    """Jobs that are there and have no resources."""
    pieces, asked = columns.pieces, columns.asked
    times = np.concatenate([asked.submit_ms, columns.left_ms, pieces.start_ms, pieces.end_ms])
    ups, downs = np.ones(len(asked.submit_ms)), -np.ones(len(asked.submit_ms))
    here, over = -np.ones(len(pieces.start_ms)), np.ones(len(pieces.start_ms))
    return steps(times, np.concatenate([ups, downs, here, over]))


def gpus(columns: Columns, queue: int | None = None) -> Steps:
    """GPUs that jobs hold: all of them, or those of one queue."""
    pieces = columns.pieces
    mine = slice(None) if queue is None else columns.asked.queue[pieces.job] == queue
    return between(pieces.start_ms[mine], pieces.end_ms[mine], pieces.gpus[mine])


def demand(columns: Columns, queue: int) -> Steps:
    """GPUs asked for by the active jobs of a queue."""
    mine = columns.asked.queue == queue
    return between(columns.asked.submit_ms[mine], columns.left_ms[mine], columns.asked.gpus[mine])
