"""When work is expected to end. Reservations and backfill rest on it; nothing is refused because of it.

Declared or predicted run time if there is one, else the high quantile of its queue, else a cautious default.
Work that has outlived its estimate is expected to end one quantile step later, each time.
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
    if expected >= 0:
        return max(expected, 1)  # overran everything known: once more its own estimate
    unknown = world.settings.unknown_duration_ms
    return max(unknown - elapsed % unknown, 1)


def end_ms(world: World, row: int) -> int:
    return world.now_ms + remaining_ms(world, row)
