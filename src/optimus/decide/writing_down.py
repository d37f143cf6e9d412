"""Writing it down: the plan as data, once everything is decided.

The actions, why everybody else waits, what is reserved, what each queue is due and has, and what is wrong with the
layout or the policy.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.allocating import Waiting
from optimus.decide.drafts import Draft
from optimus.decide.explaining import why_held
from optimus.decide.shares import Shares
from optimus.decide.world import World
from optimus.model.plans import Condition, Plan, QueueShare, Wait
from optimus.model.reasons import Code, Reason, reason
from optimus.model.slots import Phase


def write_down(world: World, shares: Shares, told: Waiting, refusals: dict[int, Reason]) -> Plan:
    names, drafts = world.table.names, world.drafts
    waits = {row: why for row, why in told.reasons.items() if row not in drafts or world.waits(row)}
    named = {names[row] for row in waits}  # without those that were given room after their turn
    reasons = {**refusals, **waits, **_held_back(world)}
    by_name = sorted(reasons, key=names.__getitem__)
    conditions = _unique([*world.conditions, *world.scorer.conditions, *_layout_conditions(world)])
    return Plan(
        version=world.snapshot.version,
        actions=world.script.actions(),
        waiting=tuple(Wait(names[row], reasons[row]) for row in by_name),
        reservations=tuple(found for found in told.reservations if found.workload in named),
        shares=_queue_shares(world, shares),
        conditions=tuple(conditions),
        complete=not world.unreached and not world.tries.exhausted,
        unreached=tuple(sorted(world.unreached | ({"tries"} if world.tries.exhausted else set()))),
    )


def _held_back(world: World) -> dict[int, Reason]:
    """Workloads without a running replica that stand in no line: promised room, or still being stopped."""
    columns = world.columns
    idle = (columns.view("held") == 0) & (columns.view("alive") > 0)
    rows = {int(r) for r in np.flatnonzero(idle & (columns.view("promised") + columns.view("releasing") > 0))}
    rows |= {row for row, draft in world.drafts.items() if draft.evicted or (draft.additions and draft.start is None)}
    rows |= {row for row, draft in world.drafts.items() if _gave_up_all(world, row, draft)}
    reasons = {}
    for row in rows - world.ended:
        draft = world.drafts.get(row)
        promised = [s for s in world.slots_of(row) if world.slots.promised[s]]
        held = [s for s in world.slots_of(row) if not world.slots.promised[s]]
        new = [addition.seating for addition in world.additions_of(row) if addition.promised]
        if held or (draft is not None and draft.kept):
            continue
        if promised or new:
            pool = new[0].pool if new else world.pool_of_slot(promised[0])
            nodes = {n for s in new for n in s.nodes()} | {int(world.node_index[world.slots.node[s]]) for s in promised}
            reasons[row] = why_held(world, pool, nodes)
        elif world.table.leaving[row] or (draft is not None and (draft.evicted or _gave_up_all(world, row, draft))):
            reasons[row] = reason(Code.STOPPING)
    return reasons


def _gave_up_all(world: World, row: int, draft: Draft) -> bool:
    """Replica by replica, the last of what it had after its node was lost: it runs no more, and nobody evicted it."""
    stops = any(world.slots.phase[slot] > Phase.HELD for slot in draft.removed)
    return stops and not draft.additions and not world.slots_of(row)


def _queue_shares(world: World, shares: Shares) -> tuple[QueueShare, ...]:
    resources = world.snapshot.resources
    columns = sorted((resources.names[column], column) for column in resources.shared())
    numbers = np.stack([shares.share, world.used_coming, shares.demand], axis=-1)[:, :, [r for _, r in columns]]
    found = []
    for q, p, c in np.argwhere(numbers.any(axis=-1)).tolist():
        queue, pool = world.tree.queues[q].name, world.pool_name(p)
        found.append(QueueShare(queue, pool, columns[c][0], *numbers[q, p, c].tolist()))
    return tuple(found)


def _layout_conditions(world: World) -> list[Condition]:
    found = [
        Condition(f"queue {name}", "QueueInvalid", problem) for name, problem in sorted(world.tree.problems.items())
    ]
    for name, pools in sorted(world.tree.unknown_pools.items()):
        found.append(
            Condition(f"queue {name}", "UnknownPool", f"quotas for unknown pools are not used: {', '.join(pools)}")
        )
    for name, nodes in sorted(world.snapshot.overlaps.items()):
        message = (
            f"{len(nodes)} nodes match it but belong to a pool with an earlier name: {', '.join(sorted(nodes)[:3])}"
        )
        found.append(Condition(f"pool {name}", "PoolsOverlap", message))
    return found


def _unique(conditions: list[Condition]) -> list[Condition]:
    """One for each subject and code: what a policy gets wrong for two rows it gets wrong for one as well."""
    return list({(found.subject, found.code): found for found in reversed(conditions)}.values())[::-1]
