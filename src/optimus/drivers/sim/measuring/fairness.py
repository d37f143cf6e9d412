"""Fairness: whom sharing has cost more than it should, and which queue got what it was due.

Finish-time fairness of a finished job (Themis, NSDI'20): rho = T_shared / T_alone.
- T_shared is its completion time, submission to end.
- T_alone is how long it would have taken on a 1/N share of the cluster that is its own from its submission on:
  ideal time × max(1, GPUs asked for / (GPUs of the cluster / N)). A share smaller than the request is used in turns, so
  a rigid job takes as much longer; a share that is larger does not make it faster.
- N is the average number of active jobs (submitted and not over, itself included) between its submission and its end,
  in the same record. A scheduler that lets jobs pile up also promises less: read rho beside completion times.

The due of a queue at one moment is what a fair division of all GPUs by need would give it: guarantees first, as far as
its jobs ask for them, and the rest by weight among those that ask for more (max-min). Queues of a tree are taken side
by side, each with its own guarantee and weight; what parents have is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.capacity import HOUR_MS, capacity, total_gpus
from optimus.drivers.sim.measuring.columns import Columns, Floats
from optimus.drivers.sim.measuring.spreads import Spread, spread, tidy
from optimus.drivers.sim.measuring.timelines import active, demand, integral, window
from optimus.drivers.sim.setup import Setup
from optimus.model.queues import GPU

LATE = 1.05
"""A rho above this counts as unfair: 5 % are left to rounds and rounding."""


class Rho(Struct, frozen=True, kw_only=True, rename="camel"):
    spread: Spread
    above: float | None
    """Part of the finished jobs above 1.05."""


class QueueMetrics(Struct, frozen=True, kw_only=True, rename="camel"):
    queue: str
    jobs: int
    finished: int
    gpu_hours: float
    due_gpu_hours: float
    share: float | None
    """Average GPUs held, as part of the cluster, from the first submission of all to the last end."""
    due_share: float | None
    jct_ms: Spread
    wait_ms: Spread


class Entitlement(Struct, frozen=True):
    guarantee_gpus: float = 0.0
    weight: float = 1.0


def rho(columns: Columns, setup: Setup) -> Floats:
    """By job; NaN unless it finished."""
    asked = columns.asked
    line = active(columns)
    shared = columns.jct_ms
    present = integral(line, columns.left_ms) - integral(line, asked.submit_ms)
    crowd = np.maximum(np.divide(present, shared, out=np.ones_like(present), where=shared > 0), 1.0)
    turns = np.maximum(asked.gpus * crowd / max(total_gpus(setup), 1), 1.0)
    return shared / (asked.ideal_ms * turns)


def summarise(values: Floats) -> Rho:
    known = values[~np.isnan(values)]
    return Rho(spread=spread(known), above=tidy((known > LATE).mean()) if len(known) else None)


# -- queues ---------------------------------------------------------------------------------------------------------


def entitlements(setup: Setup) -> dict[str, Entitlement]:
    """Guarantee and weight in GPUs, all pools together; a queue that the set-up does not name has weight 1."""
    found = {}
    for queue in setup.queues:
        quotas = [pool.resources[GPU] for pool in queue.quotas if GPU in pool.resources]
        guarantee = sum(quota.guarantee for quota in quotas) / 1000
        found[queue.name] = Entitlement(guarantee, float(max((quota.weight for quota in quotas), default=1)))
    return found


def dues(columns: Columns, setup: Setup, entitled: Mapping[str, Entitlement]) -> Floats:
    """GPU-milliseconds that each queue was due over the whole record."""
    queues = columns.asked.queues
    if not queues:
        return np.zeros(0)
    wants = [demand(columns, i) for i in range(len(queues))]
    there = capacity(setup, window(columns)[0])
    moments = np.unique(np.concatenate([line.times for line in (*wants, there)]))
    lengths = np.append(np.diff(moments), 0)
    mine = [entitled.get(queue, Entitlement()) for queue in queues]
    asked = np.stack([line.at(moments) for line in wants])
    divided = divide(
        there.at(moments),
        np.maximum(asked, 0.0),
        np.array([e.guarantee_gpus for e in mine]),
        np.array([e.weight for e in mine]),
    )
    owed: Floats = divided @ lengths
    return owed


def divide(there: Floats, asked: Floats, guarantees: Floats, weights: Floats) -> Floats:
    """What is there, by moment, among queues (rows) that ask for so much: guarantees first, the rest by weight."""
    sure = np.minimum(asked, guarantees[:, None])
    promised = sure.sum(axis=0)
    sure = sure * np.divide(there, promised, out=np.ones_like(there), where=promised > there)
    left, wants = there - sure.sum(axis=0), asked - sure
    weight = np.broadcast_to(np.maximum(weights, 1e-9)[:, None], wants.shape)
    # Water-filling: the queues that want least for their weight are served in full, one after the other.
    order = np.argsort(wants / weight, axis=0, kind="stable")
    w, d = np.take_along_axis(weight, order, 0), np.take_along_axis(wants, order, 0)
    before = np.cumsum(d, axis=0) - d
    heavier = np.cumsum(w[::-1], axis=0)[::-1]
    level = np.maximum.accumulate((np.maximum(left - before, 0.0)) / heavier, axis=0)
    got = np.minimum(d, w * level)
    divided: Floats = np.empty_like(got)
    np.put_along_axis(divided, order, got, 0)
    divided += sure
    return divided


def by_queue(columns: Columns, setup: Setup) -> tuple[QueueMetrics, ...]:
    begin, end = window(columns)
    there = float(np.diff(integral(capacity(setup, begin), np.array([begin, end])))[0])
    owed = dues(columns, setup, entitlements(setup))
    told = []
    for i, queue in enumerate(columns.asked.queues):
        mine = columns.asked.queue == i
        held = float(columns.gpu_ms[mine].sum())
        finished = mine & columns.finished
        told.append(
            QueueMetrics(
                queue=queue,
                jobs=int(mine.sum()),
                finished=int(finished.sum()),
                gpu_hours=tidy(held / HOUR_MS),
                due_gpu_hours=tidy(owed[i] / HOUR_MS),
                share=tidy(held / there) if there else None,
                due_share=tidy(owed[i] / there) if there else None,
                jct_ms=spread(columns.jct_ms[finished]),
                wait_ms=spread(columns.wait_ms[finished]),
            )
        )
    return tuple(told)


def jain(queues: tuple[QueueMetrics, ...]) -> float | None:
    """(sum x)^2 / (n sum x^2) of x = GPU-hours held / GPU-hours due: 1 when all are treated alike, 1/n at worst."""
    x = np.array([queue.gpu_hours / queue.due_gpu_hours for queue in queues if queue.due_gpu_hours > 0])
    squares = float((x * x).sum())
    return tidy(x.sum() ** 2 / (len(x) * squares)) if squares > 0 else None
