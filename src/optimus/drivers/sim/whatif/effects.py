"""Effects: two worlds in numbers, and who gains and who pays.

Why: an average hides the one who waits a day longer; both are shown.
Owns: the record of a what-if. Fields may be added, none changes its meaning while `version` stays.
Must not: play or print.

Waiting is all time without resources of all work that starts in both worlds; of what has not finished, so far.
Completion is of what finishes in both. Who starts in one only would make that world look worse for letting it start: it
is told by name. From a present, waiting counts from now on. With several samples, every number is the median of that
number over the futures, because one future in which something runs for a week would make a mean like none of them; how
much the difference varies from future to future stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from optimus.drivers.sim.forecasting.foreseeing import quantile
from optimus.drivers.sim.measuring import Metrics
from optimus.drivers.sim.measuring.averaging import typical
from optimus.drivers.sim.measuring.capacity import HOUR_MS, total_gpus
from optimus.drivers.sim.measuring.columns import Columns, Floats
from optimus.drivers.sim.measuring.spreads import Spread, spread, tidy
from optimus.drivers.sim.standing import guarantees_gpus
from optimus.drivers.sim.whatif.moves import SAME_MS, MoveTold, Range, most_first, moves, range_of
from optimus.drivers.sim.whatif.worlds import Pair, Played

VERSION = 3


class QueueTold(Struct, frozen=True, kw_only=True, rename="camel"):
    queue: str
    jobs: int
    guarantee_gpus: float
    due_share: float | None
    """What it was due, as part of the cluster over time."""
    share: float | None
    """What it used, as part of the cluster over time."""
    gpu_hours: float
    wait_ms: Spread
    """Of its jobs that start in both worlds."""


class CostTold(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster: float
    """All GPUs over the time that both worlds are compared for."""
    used: float
    """GPU time that was held."""
    idle: float
    """The rest."""
    per_finished_job: float | None
    """The whole cluster's."""


class WorldTold(Struct, frozen=True, kw_only=True, rename="camel"):
    policy: str
    nodes: int
    gpus: int
    jobs: int
    finished: float
    unfinished: float
    rejected: float
    wait_ms: Spread
    """Of what starts in both worlds, as the longest."""
    longest_wait_ms: float
    longest_waiter: str
    jct_ms: Spread
    """Of what finishes in both worlds."""
    gpu_hours: float
    lost_gpu_hours: float
    allocated: float | None
    """Part of the GPU time there was from the first submission to the end of this world."""
    preemptions: float
    window_ms: float
    queues: tuple[QueueTold, ...]
    cost: CostTold | None


class StartTold(Struct, frozen=True, kw_only=True, rename="camel"):
    workload: str
    today_ms: int | None
    """From its submission, or from now: the P50 of a forecast. 0 for what runs already; null: in half of the futures it
    does not start."""
    changed_ms: int | None
    difference_ms: int | None
    """Below 0: sooner. Null where only one of them starts."""


class Effect(Struct, frozen=True, kw_only=True, rename="camel"):
    version: int = VERSION
    today: WorldTold
    changed: WorldTold
    compared_ms: int
    """The longer of both windows; costs are of this time."""
    samples: int
    sooner: int
    later: int
    same: int
    starts: tuple[StartTold, ...]
    """Whoever starts at another time, the largest difference first."""
    starts_now: tuple[str, ...]
    """Who starts in the changed world only (in half of the futures or more)."""
    starts_no_more: tuple[str, ...]
    """Who starts today only."""
    differences: dict[str, Range]
    """Of both worlds, future by future, by the path of the number in them: `waitMs.average`."""
    gain: int
    """Workloads that start or end sooner, or are stopped less often, and pay for it with nothing."""
    pay: int
    """Workloads that start or end later, or are stopped more often."""
    neither: int
    moved: tuple[MoveTold, ...]
    """Who pays, then who gains, the largest first."""


def effect(pairs: Sequence[Pair], policies: tuple[str, str], price: float | None) -> Effect:
    today, changed = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    windows = [max(_window(one), _window(two)) for one, two in pairs]
    moved = _starts(today, changed)
    differing = [one for one in moved if _has_moved(one)]
    sooner = sum(_is_sooner(one) for one in differing)
    everybody = moves(pairs)
    paying = [one for one in everybody if one.pays]
    gaining = [one for one in everybody if one.gains]
    each = []
    for (one, two), window in zip(pairs, windows, strict=True):
        both = _Both(_started(one) & _started(two), _finished(one) & _finished(two))
        each.append((_world(one, policies[0], price, window, both), _world(two, policies[1], price, window, both)))
    return Effect(
        today=typical([one for one, _ in each]),
        changed=typical([two for _, two in each]),
        compared_ms=round(median(windows)),
        samples=len(pairs),
        sooner=sooner,
        later=len(differing) - sooner,
        same=len(moved) - len(differing),
        starts=tuple(sorted(differing, key=_largest)),
        starts_now=tuple(sorted(one.workload for one in moved if one.today_ms is None and one.changed_ms is not None)),
        starts_no_more=tuple(
            sorted(one.workload for one in moved if one.changed_ms is None and one.today_ms is not None)
        ),
        differences=_differences(each),
        gain=len(gaining),
        pay=len(paying),
        neither=len(everybody) - len(gaining) - len(paying),
        moved=(*most_first(paying), *most_first(gaining)),
    )


def _differences(worlds: Sequence[tuple[WorldTold, WorldTold]]) -> dict[str, Range]:
    """Of every number that both worlds have in some future."""
    found: dict[str, list[float]] = {}
    for today, changed in worlds:
        theirs = numbers_of(changed)
        for path, value in numbers_of(today).items():
            if path in theirs:
                found.setdefault(path, []).append(theirs[path] - value)
    ranges = {path: range_of(values) for path, values in found.items()}
    return {path: one for path, one in ranges.items() if one is not None}


def numbers_of(world: WorldTold) -> dict[str, float]:
    """By path, without those of the queues: `waitMs.average`, `cost.idle`."""
    found: dict[str, float] = {}
    for name, value in msgspec.to_builtins(world).items():
        inner = {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
        found |= {path: one for path, one in inner.items() if isinstance(one, int | float)}
    return found


def _window(played: Played) -> int:
    columns = played.measured.columns
    begin = int(columns.asked.submit_ms.min()) if len(columns.asked.submit_ms) else played.end_ms
    return max(int(columns.left_ms.max(initial=begin)) - begin, 0)


class _Both(NamedTuple):
    """Who can be compared, by name."""

    started: set[str]
    finished: set[str]


def _started(played: Played) -> set[str]:
    return {*played.ran, *(name for name, at_ms in played.starts.items() if at_ms is not None)}


def _finished(played: Played) -> set[str]:
    columns = played.measured.columns
    return {name for name, done in zip(columns.asked.names, columns.finished, strict=True) if done}


def _world(played: Played, policy: str, price: float | None, compared_ms: int, both: _Both) -> WorldTold:
    """Of one future."""
    metrics, setup, columns = played.measured.metrics, played.setup, played.measured.columns
    gpus = total_gpus(setup)
    wait_ms = _of(columns, columns.wait_ms, both.started)
    longest_ms = np.nan_to_num(_of(columns, columns.longest_wait_ms, both.started), nan=-1.0)
    longest = int(longest_ms.argmax()) if longest_ms.max(initial=0.0) > 0 else None
    return WorldTold(
        policy=policy,
        nodes=len(setup.nodes),
        gpus=gpus,
        jobs=metrics.jobs,
        finished=float(metrics.finished),
        unfinished=float(metrics.unfinished),
        rejected=float(metrics.rejected),
        wait_ms=spread(wait_ms),
        longest_wait_ms=0.0 if longest is None else tidy(longest_ms[longest]),
        longest_waiter="" if longest is None else columns.asked.names[longest],
        jct_ms=spread(_of(columns, columns.jct_ms, both.finished)),
        gpu_hours=metrics.use.gpu_hours,
        lost_gpu_hours=metrics.use.lost_gpu_hours,
        allocated=metrics.use.allocated,
        preemptions=float(metrics.preemptions),
        window_ms=float(_window(played)),
        queues=_queues(metrics, played, wait_ms),
        cost=None if price is None else _cost(metrics, price, gpus * compared_ms / HOUR_MS),
    )


def _of(columns: Columns, values: Floats, names: set[str]) -> Floats:
    """Those of the names; the others are no numbers."""
    return np.where([name in names for name in columns.asked.names], values, np.nan)


def _queues(metrics: Metrics, played: Played, wait_ms: Floats) -> tuple[QueueTold, ...]:
    guarantees = guarantees_gpus(played.setup)
    asked = played.measured.columns.asked
    row_of = {name: row for row, name in enumerate(asked.queues)}
    return tuple(
        QueueTold(
            queue=one.queue,
            jobs=one.jobs,
            guarantee_gpus=guarantees.get(one.queue, 0) / 1000,
            due_share=one.due_share,
            share=one.share,
            gpu_hours=one.gpu_hours,
            wait_ms=spread(wait_ms[asked.queue == row_of[one.queue]]) if one.queue in row_of else one.wait_ms,
        )
        for one in metrics.queues
    )


def _cost(metrics: Metrics, price: float, gpu_hours: float) -> CostTold:
    whole, used = gpu_hours * price, metrics.use.gpu_hours * price
    return CostTold(
        cluster=round(whole, 2),
        used=round(used, 2),
        idle=round(whole - used, 2),
        per_finished_job=round(whole / metrics.finished, 2) if metrics.finished else None,
    )


def _starts(today: Sequence[Played], changed: Sequence[Played]) -> list[StartTold]:
    names = {name: None for one in today for name in one.starts}
    submit = _submissions(today)
    told = []
    for name in names:
        ours, theirs = _typical(name, today, submit), _typical(name, changed, submit)
        known = ours is not None and theirs is not None
        difference = theirs - ours if known and ours is not None and theirs is not None else None
        told.append(StartTold(workload=name, today_ms=ours, changed_ms=theirs, difference_ms=difference))
    return told


def _submissions(played: Sequence[Played]) -> dict[str, int]:
    return {
        name: int(at)
        for one in played
        for name, at in zip(one.measured.columns.asked.names, one.measured.columns.asked.submit_ms, strict=True)
    }


def _typical(name: str, played: Sequence[Played], submit: dict[str, int]) -> int | None:
    """The median; None when it does not start in half of them."""
    begins = [submit[name] if name in one.ran else one.starts.get(name) for one in played]
    return quantile([None if at is None else at - submit[name] for at in begins], 0.5)


def _has_moved(one: StartTold) -> bool:
    if one.difference_ms is None:
        return (one.today_ms is None) != (one.changed_ms is None)
    return abs(one.difference_ms) >= SAME_MS


def _is_sooner(one: StartTold) -> bool:
    return one.changed_ms is not None if one.difference_ms is None else one.difference_ms < 0


def _largest(one: StartTold) -> tuple[int, str]:
    return (-(1 << 62) if one.difference_ms is None else -abs(one.difference_ms)), one.workload


__all__ = ["Effect", "Spread", "effect"]
