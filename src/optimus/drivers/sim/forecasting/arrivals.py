"""Arrivals: what has come lately is likely to come again.

Why: newcomers overtake those that wait wherever the policy lets them; a future in which nobody comes is too kind.
Owns: drawing newcomers from what is known of the past.
Must not: look beyond the moment that is forecast from.

What was submitted together comes together: an array is one event, not a thousand. A newcomer that declares a run time
takes the true one of whom it copies along, where that has ended: the two belong together. Drawn anew, an error would be
added to a time that has its own in it already, and newcomers would differ more than anybody did.

    settled   events come as often as in the window before the moment, at the same times of the day, each a copy of one
              that came then. Nights stay quiet and bursts stay bursts: large gangs start in quiet hours, and an even
              stream has none.
    young     a window of minutes knows no hours of the day, and nobody knows how long a crowd keeps coming. How often
              they come is drawn from what so few events leave open (gamma, Jeffreys' prior), and for how long from
              what so short a time does: what has gone on for a while goes on for as long again in half of all futures,
              and for ten times as long in one of eleven (Gott, 1993). Longer futures are cut there: no P90 sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from msgspec import structs

from optimus.engine.journal_past import Past, Ran, gathered, past_of
from optimus.model.workloads import Workload

__all__ = ["Newcomer", "Past", "gathered", "newcomers", "past_of"]
OFF_MS = 15 * 60_000
"""Nobody comes to the minute."""
LONGEST = 10.0
"""Windows that a young stream goes on for, at most."""
_NEWCOMERS = 0x6E657763
"""Keeps their lots apart from those of run times."""
_JEFFREYS = 0.5
Events = tuple[tuple[Workload, ...], ...]


class Newcomer(NamedTuple):
    at_ms: int
    workload: Workload
    ran: Ran | None = None
    """How long the one ran that it is a copy of, where that is to be used."""


def newcomers(past: Past, now_ms: int, until_ms: int, seed: int, sample: int) -> list[Newcomer]:
    """Of one sample."""
    events = past.events
    if not events:
        return []
    lot = np.random.default_rng((seed, sample, _NEWCOMERS))
    draw = _settled if past.settled else _young
    come = sorted(
        (at, which, part)
        for at, which in draw(events, past.window_ms, now_ms, until_ms, lot)
        if now_ms < at <= until_ms
        for part in range(len(events[which]))
    )
    first = [0, *accumulate(map(len, events))]
    return [
        Newcomer(
            at,
            structs.replace(events[which][part], id=f"newcomer/{number}", submitted_ms=at),
            past.ran[first[which] + part] if past.ran else None,
        )
        for number, (at, which, part) in enumerate(come)
    ]


def _settled(
    events: Events, window_ms: int, now_ms: int, until_ms: int, lot: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """When, and a copy of which event."""
    for window in range(-(-(until_ms - now_ms) // window_ms)):
        for which in lot.integers(0, len(events), lot.poisson(len(events))).tolist():
            yield events[which][0].submitted_ms + (window + 1) * window_ms + int(lot.integers(-OFF_MS, OFF_MS)), which


def _young(
    events: Events, window_ms: int, now_ms: int, until_ms: int, lot: np.random.Generator
) -> Iterator[tuple[int, int]]:
    goes_on_ms = min(window_ms * min(1.0 / (1.0 - lot.random()) - 1.0, LONGEST), until_ms - now_ms)
    often = lot.gamma(len(events) + _JEFFREYS) / window_ms
    for which in lot.integers(0, len(events), lot.poisson(often * goes_on_ms)).tolist():
        yield now_ms + 1 + int(lot.random() * goes_on_ms), which
