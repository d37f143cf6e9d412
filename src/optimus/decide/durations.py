"""When work is expected to end. Reservations and backfill rest on it; nothing is refused because of it.

Declared or predicted run time if there is one, else the high quantile of its queue, else a cautious default.
Work that has outlived its estimate is expected to end one step later, each time: at the next longer high quantile of
its queue, else at the next multiple of its estimate. An expected end stays where it is until it has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optimus.decide.world import World


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
    step = max(expected if expected >= 0 else world.settings.unknown_duration_ms, 1)
    return step - elapsed % step  # outlived everything known: the end of the step it is in, whenever it is asked


def end_ms(world: World, row: int) -> int:
    return world.now_ms + remaining_ms(world, row)
