"""Rooms: how many lines each pane gets, in terminals of any size."""

from __future__ import annotations

from typing import NamedTuple

WIDE = 120
AROUND = 3
"""The head, the last word, the keys."""
LEAST_JOBS = 7
LEAST = 3


class Rooms(NamedTuple):
    beside: bool
    """GPUs and queues beside each other, or one above the other."""
    gpus: int
    queues: int
    """Lines, with the border."""


def rooms_for(width: int, height: int, grid_lines: int, queue_lines: int) -> Rooms:
    """The jobs get half of it and all that the others do not need."""
    gpus, queues = grid_lines + 2, queue_lines + 1
    most = max((height - AROUND) // 2, LEAST)
    if width >= WIDE:
        both = max(min(max(gpus, queues), most), LEAST)
        return Rooms(True, both, both)
    most = max(height - AROUND - LEAST_JOBS, 2 * LEAST) if height < 40 else most
    if gpus + queues <= most:
        return Rooms(False, gpus, queues)
    queues = max(min(queues, max(most // 2, most - gpus)), LEAST)
    return Rooms(False, max(min(gpus, most - queues), LEAST), queues)
