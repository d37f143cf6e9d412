"""Capacity: the GPUs there were, outages left out, and what was made of them.

Three numbers that are often mixed up, all as part of the GPU time there was from the first submission to the last end:
*allocated* (somebody had it, also while leaving or not complete), *useful* (it did work that was not lost and no
pause), and *goodput* (the GPU time that the work done would have taken undisturbed, as asked for).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.columns import Columns
from optimus.drivers.sim.measuring.spreads import tidy
from optimus.drivers.sim.measuring.timelines import Steps, gpus, integral, steps, waiting, window
from optimus.drivers.sim.setup import Setup

HOUR_MS = 3_600_000


class Use(Struct, frozen=True, kw_only=True, rename="camel"):
    gpus: float
    """Of the cluster when every node is up."""
    allocated: float | None
    allocated_while_waiting: float | None
    """Held while at least one job waited: idle GPUs nobody wants are no fault. Without leaving and kept."""
    useful: float | None
    goodput: float | None
    gpu_hours: float
    """Held by jobs; the next three add up to it."""
    useful_gpu_hours: float
    paused_gpu_hours: float
    lost_gpu_hours: float
    leaving_gpu_hours: float
    """Beyond `gpu_hours`, as is the next."""
    kept_gpu_hours: float
    """For gangs that were not complete, so that nobody could use it."""


def capacity(setup: Setup, begin_ms: int) -> Steps:
    """GPUs of nodes that are up, over time from `begin_ms` on."""
    times, changes = [begin_ms], [float(total_gpus(setup))]
    for node in setup.nodes:
        until = begin_ms
        for begin, end in sorted((o.at_ms, o.at_ms + o.for_ms) for o in setup.outages if o.node == node.name):
            if end > until:  # outages of one node may overlap
                times += [max(begin, until), end]
                changes += [-float(len(node.devices)), float(len(node.devices))]
                until = end
    return steps(np.array(times, np.int64), np.array(changes))


def total_gpus(setup: Setup) -> int:
    return sum(len(node.devices) for node in setup.nodes)


def use(columns: Columns, setup: Setup) -> Use:
    begin, end = window(columns)
    line = capacity(setup, begin)
    there = float(np.diff(integral(line, np.array([begin, end])))[0])
    held = float(columns.gpu_ms.sum())
    leaving, kept_for_later = float(columns.leaving_gpu_ms.sum()), float(columns.kept_gpu_ms.sum())
    kept = np.where(columns.rejected, 0.0, columns.done)
    worth = float((kept * columns.asked.ideal_ms * columns.asked.gpus).sum())
    useful, paused, lost = (
        float(part.sum()) for part in (columns.useful_gpu_ms, columns.paused_gpu_ms, columns.lost_gpu_ms)
    )
    return Use(
        gpus=float(total_gpus(setup)),
        allocated=_part(held + leaving + kept_for_later, there),
        allocated_while_waiting=_while_waiting(columns, line),
        useful=_part(useful, there),
        goodput=_part(worth, there),
        gpu_hours=tidy(held / HOUR_MS),
        useful_gpu_hours=tidy(useful / HOUR_MS),
        paused_gpu_hours=tidy(paused / HOUR_MS),
        lost_gpu_hours=tidy(lost / HOUR_MS),
        leaving_gpu_hours=tidy(leaving / HOUR_MS),
        kept_gpu_hours=tidy(kept_for_later / HOUR_MS),
    )


def _while_waiting(columns: Columns, line: Steps) -> float | None:
    queue, held = waiting(columns), gpus(columns)
    if not len(queue.times):
        return None
    moments = np.unique(np.concatenate([queue.times, held.times, line.times]))
    moments = moments[(moments >= queue.times[0]) & (moments <= queue.times[-1])]
    lengths = np.append(np.diff(moments), 0) * (queue.at(moments) > 0.5)
    return _part(float((held.at(moments) * lengths).sum()), float((line.at(moments) * lengths).sum()))


def _part(amount: float, whole: float) -> float | None:
    return tidy(amount / whole) if whole > 0 else None
