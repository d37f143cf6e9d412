"""Moves: who gains and who pays, workload by workload.

Why: somebody may start when they would have started, and still be stopped on the way and end hours later.
Owns: starts, ends and stops of one workload in both worlds, and which of them make it gain or pay.
Must not: weigh one against the other. Who loses anything pays, whatever it gains elsewhere; both are shown.

Differences are taken future by future, so that the same drawn run times are compared. A time is a median: a few futures
that are far off would make a mean like none of them. Whether somebody moves at all is judged by the mean: those few
futures count, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.forecasting.foreseeing import quantile
from optimus.drivers.sim.measuring.spreads import tidy
from optimus.drivers.sim.whatif.worlds import Pair, Played

SAME_MS = 60_000
"""What moves by less has not moved."""
_PERCENT = (10, 50, 90)


class Range(Struct, frozen=True, kw_only=True, rename="camel"):
    """Changed − today, over the futures."""

    mean: float
    median: float
    low: float
    """The 10th percentile; with one future, the difference itself."""
    high: float
    """The 90th."""


class MomentTold(Struct, frozen=True, kw_only=True, rename="camel"):
    """When something happens: from submission, or from now. 0 for the start of what runs already."""

    today_ms: float | None
    """Median over all futures, the P50 of a forecast; null: in half of them it does not happen before the horizon."""
    changed_ms: float | None
    difference_ms: Range | None
    """Over the futures in which it happens in both worlds."""
    today_futures: int
    """In how many it happens."""
    changed_futures: int

    @property
    def loses(self) -> bool:
        later = self.difference_ms is not None and self.difference_ms.mean >= SAME_MS
        return later or self.changed_futures < self.today_futures

    @property
    def gains(self) -> bool:
        sooner = self.difference_ms is not None and self.difference_ms.mean <= -SAME_MS
        return sooner or self.changed_futures > self.today_futures


class MoveTold(Struct, frozen=True, kw_only=True, rename="camel"):
    workload: str
    queue: str
    start: MomentTold
    end: MomentTold
    preemptions_today: float
    """Mean over futures."""
    preemptions_changed: float

    @property
    def pays(self) -> bool:
        return self.start.loses or self.end.loses or self.preemptions_changed > self.preemptions_today

    @property
    def gains(self) -> bool:
        gains = self.start.gains or self.end.gains or self.preemptions_changed < self.preemptions_today
        return gains and not self.pays


def range_of(differences: Sequence[float]) -> Range | None:
    if not differences:
        return None
    low, median, high = np.percentile(differences, _PERCENT)
    mean = tidy(sum(differences) / len(differences))
    return Range(mean=mean, median=tidy(median), low=tidy(low), high=tidy(high))


class Fate(NamedTuple):
    """One workload in one world, once; times from submission, or from now."""

    queue: str
    start_ms: float | None
    end_ms: float | None
    preemptions: int


def moves(pairs: Sequence[Pair]) -> tuple[MoveTold, ...]:
    """Everybody who is in both worlds."""
    found: dict[str, list[tuple[Fate, Fate]]] = {}
    for today, changed in pairs:
        theirs = _fates(changed)
        for name, fate in _fates(today).items():
            if name in theirs:
                found.setdefault(name, []).append((fate, theirs[name]))
    return tuple(_move(name, fates) for name, fates in found.items())


def most_first(told: Iterable[MoveTold]) -> tuple[MoveTold, ...]:
    """Who does not end at all, then by how far the end moves, the start, and how often it is stopped."""

    def size(one: MoveTold) -> tuple[float, ...]:
        return (
            -abs(one.end.changed_futures - one.end.today_futures),
            -abs(one.start.changed_futures - one.start.today_futures),
            -abs(one.end.difference_ms.mean if one.end.difference_ms else 0.0),
            -abs(one.start.difference_ms.mean if one.start.difference_ms else 0.0),
            -abs(one.preemptions_changed - one.preemptions_today),
        )

    return tuple(sorted(told, key=lambda one: (size(one), one.workload)))


def _fates(played: Played) -> dict[str, Fate]:
    table, asked = played.measured.columns, played.measured.columns.asked
    fates = {}
    for i, name in enumerate(asked.names):
        begun = played.starts.get(name)
        start = 0.0 if name in played.ran else None if begun is None else float(begun - asked.submit_ms[i])
        end = float(table.jct_ms[i]) if table.finished[i] else None
        fates[name] = Fate(asked.queues[asked.queue[i]], start, end, played.preemptions.get(name, 0))
    return fates


def _move(name: str, fates: Sequence[tuple[Fate, Fate]]) -> MoveTold:
    return MoveTold(
        workload=name,
        queue=fates[0][0].queue,
        start=_moment([(one.start_ms, two.start_ms) for one, two in fates]),
        end=_moment([(one.end_ms, two.end_ms) for one, two in fates]),
        preemptions_today=_mean([one.preemptions for one, _ in fates]),
        preemptions_changed=_mean([two.preemptions for _, two in fates]),
    )


def _moment(times: Sequence[tuple[float | None, float | None]]) -> MomentTold:
    today, changed = [one for one, _ in times], [two for _, two in times]
    return MomentTold(
        today_ms=quantile(today, 0.5),
        changed_ms=quantile(changed, 0.5),
        difference_ms=range_of([two - one for one, two in times if one is not None and two is not None]),
        today_futures=sum(time is not None for time in today),
        changed_futures=sum(time is not None for time in changed),
    )


def _mean(values: Sequence[float]) -> float:
    return tidy(sum(values) / len(values))
