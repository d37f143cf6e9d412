"""Arrivals: what has come lately is likely to come again.

Why: newcomers overtake those that wait wherever the policy lets them; a future in which nobody comes is too kind.
Owns: drawing newcomers from what is known of the past.
Must not: look beyond the moment that is forecast from.

Newcomers come as often as in the window before the moment, at the same times of the day, each a copy of one that came
then. Nights stay quiet and bursts stay bursts: large gangs start in quiet hours, and an even stream has none.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from optimus.engine.journal_past import Past, gathered, past_of
from optimus.model.workloads import Workload

__all__ = ["Past", "gathered", "newcomers", "past_of"]
OFF_MS = 15 * 60_000
"""Nobody comes to the minute."""
_NEWCOMERS = 0x6E657763
"""Keeps their lots apart from those of run times."""


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
