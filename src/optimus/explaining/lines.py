"""The line: who comes before it in its own queue, as the engine orders them now."""

from __future__ import annotations

from optimus.decide.lines import line_up
from optimus.decide.quotas import standing_refusal
from optimus.decide.shares import compute_shares
from optimus.decide.world import World
from optimus.engine.engine import Engine


def ahead_in_queue(engine: Engine, name: str, now_ms: int) -> tuple[str, ...] | None:
    """The first one first; None where it is in no line, because it cannot be considered at all."""
    world = World(engine.state.snapshot(now_ms), engine.policy, now_ms, engine.budget, engine.seed)
    table = world.table
    row = table.row_of.get(name)
    if row is None or row not in table.pending:
        return None
    queue = world.columns.queue[row]
    alike = [one for one in table.pending if world.columns.queue[one] == queue]
    waiting = [one for one in alike if standing_refusal(world, one) is None]
    if row not in waiting:
        return None
    line = line_up(world, compute_shares(world), waiting)[int(queue)]
    return tuple(table.names[one] for one in line[: line.index(row)])
