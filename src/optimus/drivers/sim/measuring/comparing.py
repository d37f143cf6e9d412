"""Comparing: the same jobs under two schedulers, job by job.

Why: averages hide who pays. A comparison says how large the difference is, how sure, and who won and who lost.
Owns: the pairing, winners and losers, the check for starvation, and the standard a claim has to meet.
Must not: pair different jobs. Jobs that one side refused or did not finish are counted, and never averaged over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from optimus.drivers.sim.measuring.bootstrap import ENOUGH_TRACES, RESAMPLES, Difference, Over, Verdict, differences
from optimus.drivers.sim.measuring.columns import SIZES, Bools, Floats, MeasureError
from optimus.drivers.sim.measuring.metrics import Measured
from optimus.drivers.sim.measuring.spreads import tidy

EVEN_MS = 1000
EVEN_PART = 0.01
"""A job is neither winner nor loser below a second or below one percent."""
SHOWN = 10
STARVED_TIMES = 2
STARVED_LEAST_MS = 3_600_000
WORST_P99 = 1.05


class Changed(Struct, frozen=True, kw_only=True, rename="camel"):
    """One job under both."""

    job: str
    queue: str
    gpus: float
    trace: int
    """Which of the traces, from 0."""
    reference_ms: int
    other_ms: int


class Balance(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of all jobs, of a queue or of a size class."""

    name: str
    won: int
    lost: int
    even: int
    mean_ms: float | None
    """Other minus reference, over the jobs both finished."""
    relative: float | None


class Starvation(Struct, frozen=True, kw_only=True, rename="camel"):
    """Jobs that the reference finished and the other one did not, or that waited at a stretch more than twice as long
    as any job did under the reference (and at least an hour)."""

    unfinished: int
    waited: int
    limit_ms: int
    worst: str
    """The job that waited longest at a stretch under the other one, and how long."""
    worst_ms: int

    @property
    def nobody(self) -> bool:
        return self.unfinished == 0 and self.waited == 0


class Standard(Struct, frozen=True, kw_only=True, rename="camel"):
    """What has to be true before a gain is claimed; each by itself, so that a report can say what is missing."""

    enough_traces: bool
    completes_sooner: bool
    waits_less: bool
    tail_kept: bool
    """The 99th percentile is at most 5 % worse."""
    nobody_starved: bool

    @property
    def met(self) -> bool:
        return all((self.enough_traces, self.completes_sooner, self.waits_less, self.tail_kept, self.nobody_starved))


class Comparison(Struct, frozen=True, kw_only=True, rename="camel"):
    reference: str
    other: str
    traces: int
    paired: int
    """Jobs that both finished; all differences are over these."""
    only_reference: int
    only_other: int
    neither: int
    jct_ms: Difference
    wait_ms: Difference
    p99_ratio: float | None
    """99th percentile of completion times, other / reference; the mean over traces. Below 1: the other is better."""
    all_jobs: Balance
    by_size: tuple[Balance, ...]
    by_queue: tuple[Balance, ...]
    winners: tuple[Changed, ...]
    losers: tuple[Changed, ...]
    starvation: Starvation
    standard: Standard


def compare(
    reference: Measured | Sequence[Measured],
    other: Measured | Sequence[Measured],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """One record each, or one per trace in the same order."""
    ours = (reference,) if isinstance(reference, Measured) else tuple(reference)
    theirs = (other,) if isinstance(other, Measured) else tuple(other)
    pairs = _matched(ours, theirs)
    both = [a.columns.finished & b.columns.finished for a, b in pairs]
    jct, wait = differences(*_tables(pairs, both), seed=seed, resamples=resamples)
    ratio = _p99_ratio(pairs, both)
    starved = _starved(pairs)
    one = [
        (int((a.columns.finished & ~m).sum()), int((b.columns.finished & ~m).sum())) for (a, b), m in _with(pairs, both)
    ]
    table = _Table(pairs, both)
    return Comparison(
        reference=ours[0].name,
        other=theirs[0].name,
        traces=len(pairs),
        paired=int(sum(mask.sum() for mask in both)),
        only_reference=sum(x for x, _ in one),
        only_other=sum(y for _, y in one),
        neither=int(sum((~a.columns.finished & ~b.columns.finished).sum() for a, b in pairs)),
        jct_ms=jct,
        wait_ms=wait,
        p99_ratio=ratio,
        all_jobs=table.balance("all", np.ones(len(table.change), np.bool_)),
        by_size=tuple(table.balance(SIZES[i], table.size == i) for i in np.unique(table.size)),
        by_queue=tuple(table.balance(name, table.queue == name) for name in sorted(set(table.queue.tolist()))),
        winners=table.extremes(winners=True),
        losers=table.extremes(winners=False),
        starvation=starved,
        standard=Standard(
            enough_traces=jct.over is Over.TRACES and len(pairs) >= ENOUGH_TRACES,
            completes_sooner=jct.verdict is Verdict.LESS,
            waits_less=wait.verdict is Verdict.LESS,
            tail_kept=ratio is not None and ratio <= WORST_P99,
            nobody_starved=starved.nobody,
        ),
    )


_Pairs = list[tuple[Measured, Measured]]


def _matched(ours: Sequence[Measured], theirs: Sequence[Measured]) -> _Pairs:
    if len(ours) != len(theirs) or not ours:
        raise MeasureError(f"{len(ours)} and {len(theirs)} records cannot be paired; give one of each per trace")
    for a, b in zip(ours, theirs, strict=True):
        if a.columns.asked.names != b.columns.asked.names:
            raise MeasureError(f"{a.name} and {b.name} were not played with the same jobs")
    return list(zip(ours, theirs, strict=True))


def _with(pairs: _Pairs, both: list[Bools]) -> list[tuple[tuple[Measured, Measured], Bools]]:
    return list(zip(pairs, both, strict=True))


def _pick(pairs: _Pairs, both: list[Bools], field: str) -> tuple[list[Floats], list[Floats]]:
    return (
        [getattr(a.columns, field)[mask] for (a, _), mask in _with(pairs, both)],
        [getattr(b.columns, field)[mask] for (_, b), mask in _with(pairs, both)],
    )


def _tables(pairs: _Pairs, both: list[Bools]) -> tuple[list[Floats], list[Floats]]:
    """Completion and waiting of the jobs both finished."""
    done, waited = _pick(pairs, both, "jct_ms"), _pick(pairs, both, "wait_ms")
    ours, theirs = (
        [np.stack([x, y], axis=1) for x, y in zip(done[side], waited[side], strict=True)] for side in (0, 1)
    )
    return ours, theirs


def _p99_ratio(pairs: _Pairs, both: list[Bools]) -> float | None:
    ratios = []
    for (a, b), mask in _with(pairs, both):
        if mask.any() and (base := np.percentile(a.columns.jct_ms[mask], 99)) > 0:
            ratios.append(np.percentile(b.columns.jct_ms[mask], 99) / base)
    return tidy(np.mean(ratios)) if ratios else None


def _starved(pairs: _Pairs) -> Starvation:
    unfinished = waited = limit = worst = 0
    name = ""
    for a, b in pairs:
        theirs = np.nan_to_num(b.columns.longest_wait_ms)
        allowed = max(int(STARVED_TIMES * np.nan_to_num(a.columns.longest_wait_ms).max(initial=0)), STARVED_LEAST_MS)
        unfinished += int((a.columns.finished & ~b.columns.finished).sum())
        waited += int((theirs > allowed).sum())
        limit = max(limit, allowed)
        if len(theirs) and theirs.max() > worst:
            worst, name = int(theirs.max()), b.columns.asked.names[int(theirs.argmax())]
    return Starvation(unfinished=unfinished, waited=waited, limit_ms=limit, worst=name, worst_ms=worst)


class _Table:
    """All paired jobs of all traces."""

    def __init__(self, pairs: _Pairs, both: list[Bools]) -> None:
        picked = [(a.columns.asked, np.flatnonzero(mask)) for (a, _), mask in _with(pairs, both)]
        reference, other = _pick(pairs, both, "jct_ms")
        self.reference, self.other = np.concatenate(reference), np.concatenate(other)
        self.change = self.other - self.reference
        self.size = np.concatenate([asked.size[rows] for asked, rows in picked])
        self.queue = np.concatenate([np.array(asked.queues, object)[asked.queue[rows]] for asked, rows in picked])
        self.gpus = np.concatenate([asked.gpus[rows] for asked, rows in picked])
        self.trace = np.concatenate([np.full(len(rows), i) for i, (_, rows) in enumerate(picked)])
        self.rows = np.concatenate([rows for _, rows in picked])
        self.asked = [asked for asked, _ in picked]
        self.even = np.abs(self.change) <= np.maximum(EVEN_MS, EVEN_PART * self.reference)

    def balance(self, name: str, mine: Bools) -> Balance:
        change, even, base = self.change[mine], self.even[mine], self.reference[mine]
        return Balance(
            name=name,
            won=int(((change < 0) & ~even).sum()),
            lost=int(((change > 0) & ~even).sum()),
            even=int(even.sum()),
            mean_ms=tidy(change.mean()) if len(change) else None,
            relative=tidy(change.mean() / base.mean()) if len(change) and base.mean() > 0 else None,
        )

    def extremes(self, *, winners: bool) -> tuple[Changed, ...]:
        """The largest differences first; of equals the earlier job."""
        sign = 1 if winners else -1
        order = np.argsort(sign * self.change, kind="stable")[:SHOWN]
        return tuple(self._changed(int(i)) for i in order if sign * self.change[i] < 0 and not self.even[i])

    def _changed(self, i: int) -> Changed:
        return Changed(
            job=self.asked[self.trace[i]].names[self.rows[i]],
            queue=str(self.queue[i]),
            gpus=float(self.gpus[i]),
            trace=int(self.trace[i]),
            reference_ms=int(self.reference[i]),
            other_ms=int(self.other[i]),
        )
