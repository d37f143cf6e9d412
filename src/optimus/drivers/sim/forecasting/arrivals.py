"""Arrivals: what has come lately is likely to come again.

Why: newcomers overtake those that wait wherever the policy lets them; a future in which nobody comes is too kind.
Owns: the past of a journal as far as a forecast may use it, and drawing newcomers from it.
Must not: look beyond the moment that is forecast from.

Newcomers come as often as in the window before the moment, at the same times of the day, each a copy of one that came
then. Nights stay quiet and bursts stay bursts: large gangs start in quiet hours, and an even stream has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct, structs

from optimus.drivers.sim.traces.recorded import Recording
from optimus.engine.journal import Cycle, Journal, Keyframe
from optimus.model.workloads import Workload

DAY_MS = 86_400_000
WINDOW_MS = DAY_MS
"""A day and not an hour: nights are quiet, and a forecast may reach into tomorrow."""
LEAST_WINDOW_MS = 6 * 3_600_000
"""Less says nothing about how many come: a morning begins with a crowd."""
OFF_MS = 15 * 60_000
"""Nobody comes to the minute."""
_NEWCOMERS = 0x6E657763
"""Keeps their lots apart from those of run times."""


class Past(Struct, frozen=True, kw_only=True):
    """What was seen until a moment, beyond what the state remembers."""

    arrived: tuple[Workload, ...] = ()
    """Those submitted in the window before the moment."""
    window_ms: int = WINDOW_MS
    """Shorter where less was seen."""
    errors: tuple[float, ...] = ()
    """True / declared run time of work that has ended."""

    @property
    def tells_arrivals(self) -> bool:
        """Whether it is long enough to say how many come."""
        return self.window_ms >= LEAST_WINDOW_MS

    @property
    def rate_per_hour(self) -> float:
        return len(self.arrived) / (self.window_ms / 3_600_000)


def past_of(folder: Path, until_ms: int) -> Past:
    """Of a journal, up to a moment."""
    recording = Recording()
    begin_ms: int | None = None
    for item in Journal(folder).read():
        if isinstance(item, Keyframe) and begin_ms is None:
            begin_ms = item.now_ms
            try:
                recording.begin(item)
            except msgspec.MsgspecError:
                continue
        elif isinstance(item, Cycle):
            if item.now_ms > until_ms:
                break
            for fact in item.observations:
                recording.observe(fact, item.now_ms)
    lives = (*recording.over, *recording.lives.values())
    declared = [(life.worked_ms, life.workload.expected_duration_ms) for life in recording.over if life.ran]
    return gathered(
        [life.workload for life in lives],
        [worked / expected for worked, expected in declared if expected and worked > 0],
        begin_ms=until_ms if begin_ms is None else begin_ms,
        now_ms=until_ms,
    )


def gathered(workloads: Sequence[Workload], errors: Sequence[float], *, begin_ms: int, now_ms: int) -> Past:
    window = max(min(now_ms - begin_ms, WINDOW_MS), 1)
    lately = [one for one in workloads if now_ms - window < one.submitted_ms <= now_ms]
    ordered = sorted(lately, key=lambda one: (one.submitted_ms, one.id))
    return Past(arrived=tuple(ordered), window_ms=window, errors=tuple(errors))


def newcomers(past: Past, now_ms: int, until_ms: int, seed: int, sample: int) -> list[tuple[int, Workload]]:
    """Of one sample."""
    if not past.arrived:
        return []
    lot = np.random.default_rng((seed, sample, _NEWCOMERS))
    come: list[tuple[int, int]] = []
    for window in range(-(-(until_ms - now_ms) // past.window_ms)):
        for which in lot.integers(0, len(past.arrived), lot.poisson(len(past.arrived))).tolist():
            at = past.arrived[which].submitted_ms + (window + 1) * past.window_ms + int(lot.integers(-OFF_MS, OFF_MS))
            if now_ms < at <= until_ms:
                come.append((at, which))
    return [
        (at, structs.replace(past.arrived[which], id=f"newcomer/{number}", submitted_ms=at))
        for number, (at, which) in enumerate(sorted(come))
    ]
