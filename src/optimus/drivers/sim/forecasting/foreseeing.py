"""The forecast: quantiles of when each waiting workload starts, from samples of the future.

    forecast(present, seed=0, samples=40) -> {workload: Quantiles}

Why: one call with data in and data out, which a command, a benchmark and a process apart use alike.
Owns: the question, the quantiles, and who is ahead of whom.
Must not: read a clock: the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TypeVar

from msgspec import Struct

from optimus.drivers.sim.forecasting.arrivals import Past
from optimus.drivers.sim.forecasting.knowledge import Basis
from optimus.drivers.sim.forecasting.sampling import Futures
from optimus.drivers.sim.forecasting.widening import Widening
from optimus.drivers.sim.present import Present
from optimus.model.reasons import Reason
from optimus.model.workloads import Workload

SAMPLES = 40
HORIZON_MS = 7 * 86_400_000
_T = TypeVar("_T", int, float)
Starts = Mapping[str, int | None]
"""Of one sample: when each started; None: not before the horizon."""


class Asked(Struct, frozen=True, kw_only=True):
    present: Present
    samples: int = SAMPLES
    seed: int = 0
    horizon_ms: int = HORIZON_MS
    past: Past = Past()
    """Without arrivals nobody comes."""
    only: frozenset[str] = frozenset()
    """Workloads that are asked about: a sample ends when they have started. Empty: everybody who waits."""
    widening: Widening = Widening()


class Quantiles(Struct, frozen=True, kw_only=True):
    p50_ms: int | None
    """The moment by which it has started in half of all futures; None: beyond the horizon."""
    p90_ms: int | None
    samples: int
    started: int
    """Samples in which it started before the horizon."""
    p10_ms: int | None = None
    """Before this moment it starts in one of ten futures at most; None: beyond the horizon."""


class Waiting(Struct, frozen=True, kw_only=True):
    """Who waits, and why, as the engine says it now."""

    workload: Workload
    reason: Reason | None
    """None: it starts in the very next decision."""
    hopeless: bool
    """Time alone does not help; it is not sampled."""
    basis: Basis
    """What its own run time rests on."""


class Forecast(Struct, frozen=True, kw_only=True):
    now_ms: int
    horizon_ms: int
    waiting: tuple[Waiting, ...]
    quantiles: dict[str, Quantiles]
    ahead: dict[str, tuple[str, ...]]
    """Who starts before it in more than half of the samples, of those that wait; the last of them first."""
    samples: int
    asked: int
    """Samples that were asked for; fewer are there when a budget ended first."""
    stopped: str = ""
    """Why there are fewer."""


def forecast(
    present: Present, *, seed: int = 0, samples: int = SAMPLES, horizon_ms: int = HORIZON_MS, past: Past | None = None
) -> dict[str, Quantiles]:
    """In this process; `apart` has the same in one that disturbs nobody."""
    asked = Asked(present=present, samples=samples, seed=seed, horizon_ms=horizon_ms, past=past or Past())
    return foresee(asked).quantiles


def foresee(asked: Asked, tell: Callable[[int], None] = lambda _done: None) -> Forecast:
    futures = Futures(asked.present, asked.horizon_ms, asked.past)
    waiting = who_waits(futures)
    targets = targets_of(waiting)
    drawn: list[Starts] = []
    for sample in range(asked.samples if wanted_of(asked, targets) else 0):
        drawn.append(futures.play(targets, asked.seed, sample, wanted_of(asked, targets)))
        tell(len(drawn))
    return summary(asked, waiting, drawn)


def who_waits(futures: Futures) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(
            workload=one.standing.workload,
            reason=one.reason,
            hopeless=one.hopeless,
            basis=futures.knowledge.basis(one.standing),
        )
        for one in futures.waiters()
    )


def targets_of(waiting: Sequence[Waiting]) -> frozenset[str]:
    return frozenset(one.workload.id for one in waiting if not one.hopeless)


def wanted_of(asked: Asked, targets: frozenset[str]) -> frozenset[str]:
    """Of those that wait and can start, the ones asked about."""
    return targets & asked.only if asked.only else targets


def summary(asked: Asked, waiting: tuple[Waiting, ...], drawn: Sequence[Starts], stopped: str = "") -> Forecast:
    targets = sorted(targets_of(waiting)) if drawn else []
    wanted = sorted(wanted_of(asked, frozenset(targets)))
    now_ms, wider = asked.present.now_ms, asked.widening
    found = {}
    for name in wanted:
        starts = [sample[name] for sample in drawn]
        p50, p90 = quantile(starts, 0.5), quantile(starts, 0.9)
        p50 = None if p50 is None else wider.moment(now_ms, p50, wider.p50)
        p90 = None if p90 is None else max(wider.moment(now_ms, p90, wider.p90), p50 or 0)
        known = sum(start is not None for start in starts)
        p10 = quantile(starts, 0.1)
        found[name] = Quantiles(p50_ms=p50, p90_ms=p90, samples=len(drawn), started=known, p10_ms=p10)
    return Forecast(
        now_ms=now_ms,
        horizon_ms=asked.horizon_ms,
        waiting=waiting,
        quantiles=found,
        ahead={name: _ahead(name, targets, drawn) for name in wanted},
        samples=len(drawn),
        asked=asked.samples,
        stopped=stopped,
    )


def quantile(times: Sequence[_T | None], part: float) -> _T | None:
    """The smallest that covers the part of one more draw, as far as so few samples can tell. None is later than all."""
    known = sorted(time for time in times if time is not None)
    rank = min(ceil(part * (len(times) + 1)), len(times))
    return known[rank - 1] if rank <= len(known) else None


def _ahead(name: str, targets: Sequence[str], drawn: Sequence[Starts]) -> tuple[str, ...]:
    """Nearest first: the one that starts before it least often stands right before it."""
    before = {}
    for other in targets:
        if other != name:
            wins = sum(_sooner(sample[other], sample[name]) for sample in drawn)
            if 2 * wins > len(drawn):
                before[other] = wins
    return tuple(sorted(before, key=lambda other: (before[other], other)))


def _sooner(one: int | None, other: int | None) -> bool:
    return one is not None and (other is None or one < other)
