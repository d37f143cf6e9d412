"""When work is expected to end. Reservations and backfill rest on it; nothing is refused because of it.

Declared or predicted run time if there is one, else the high quantile of its queue, else a cautious default.
Work that has outlived its estimate is expected to end one step later, each time: at the next longer high quantile of
its queue, else at the next multiple of its estimate. An expected end stays where it is until it has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from optimus.state.arrays import Ints

if TYPE_CHECKING:
    from optimus.decide.world import World

_T = TypeVar("_T", int, Ints)


def elapsed_ms(world: World, row: int) -> int:
    """Run time so far, over all attempts."""
    columns = world.columns
    elapsed = int(columns.elapsed[row])
    if columns.running[row] > 0:
        elapsed += max(0, world.now_ms - int(columns.counted_at[row]))
    return elapsed


def is_known(world: World, row: int) -> bool:
    """Whether its run time was declared or predicted, and it has not outlived it."""
    return int(world.columns.expected[row]) > elapsed_ms(world, row)


def remaining_ms(world: World, row: int) -> int:
    """Cautious estimate of the run time still to come; at least a millisecond."""
    elapsed = elapsed_ms(world, row)
    expected = int(world.columns.expected[row])
    if expected > elapsed:
        return expected - elapsed
    history = world.snapshot.history.by_queue.get(world.spec(row).queue)
    high = history.high_ms(elapsed) if history else None
    if high is not None:
        return high - elapsed
    return _to_the_next_step(elapsed, max(expected if expected >= 0 else world.settings.unknown_duration_ms, 1))


def _to_the_next_step(elapsed: _T, step: _T) -> _T:
    """For who has outlived everything known: the end of the step it is in, whenever it is asked."""
    return step - elapsed % step


def ends_ms(world: World, rows: Ints) -> Ints:
    """`end_ms` of many at once."""
    columns = world.columns
    passed = np.maximum(world.now_ms - columns.counted_at[rows], 0)
    elapsed = columns.elapsed[rows] + np.where(columns.running[rows] > 0, passed, 0)
    expected = columns.expected[rows]
    step = np.maximum(np.where(expected >= 0, expected, world.settings.unknown_duration_ms), 1)
    left = np.where(expected > elapsed, expected - elapsed, _to_the_next_step(elapsed, step))
    guessed = expected <= elapsed
    queues = columns.queue[rows]
    for queue in np.unique(queues[guessed]).tolist():
        history = world.snapshot.history.by_queue.get(world.tree.queues[queue].name) if queue >= 0 else None
        if history is not None:
            mine = np.flatnonzero(guessed & (queues == queue))
            high = history.highs_ms(elapsed[mine])
            left[mine] = np.where(high >= 0, high - elapsed[mine], left[mine])
    ends: Ints = world.now_ms + left
    return ends


def end_ms(world: World, row: int) -> int:
    return world.now_ms + remaining_ms(world, row)
