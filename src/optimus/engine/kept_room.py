"""Kept room: why a GPU is idle although somebody waits.

Why: an idle GPU beside a waiting job looks like a fault of the scheduler, unless it says for whom it is kept.
Owns: what of which node is held or reserved for whom, and the reason in the words of the closed vocabulary.
Must not: decide or change anything.

    held        others leave, or have left, so that this workload can start there: nobody else gets it meanwhile
    reserved    a blocked workload is expected to start there at that time: whoever is over by then may use it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec import Struct

from optimus.model.plans import Hold, Plan
from optimus.model.reasons import Code, Reason, reason
from optimus.model.units import format_moment_ms
from optimus.state.state import State

QueueOf = Callable[[str], str]


class Kept(Struct, frozen=True, kw_only=True):
    """Room on one node that is kept for one workload."""

    workload: str
    queue: str
    pool: str
    node: str
    devices: tuple[int, ...] = ()
    """Empty where room without GPUs is held, and for reservations: they name nodes, not devices."""
    gpu_milli: int = 0
    """Thousandths of each device."""
    at_ms: int
    """Held: when it is given up if it was not taken. Reserved: when the workload is expected to start."""
    why: Reason


def held_in(state: State, now_ms: int) -> list[Kept]:
    """What was decided to be held and has neither been taken nor given up."""
    slots = state.slots.columns
    found = []
    for slot in np.flatnonzero(slots.view("promised")).tolist():
        workload, node = state.workloads.spec(int(slots.workload[slot])), int(slots.node[slot])
        found.append(
            Kept(
                workload=workload.id,
                queue=workload.queue,
                pool=state.pool_views[int(state.node_pool[node])].pool.name,
                node=state.nodes.name(node),
                devices=state.slots.devices[slot],
                gpu_milli=int(slots.milli[slot]),
                at_ms=int(slots.until[slot]),
                why=_held_for(workload.id, workload.queue, int(slots.until[slot]), now_ms),
            )
        )
    return _in_order(found)


def held_by(plan: Plan, queue_of: QueueOf, now_ms: int) -> list[Kept]:
    """What a plan holds that nobody has carried out here."""
    return _in_order(
        Kept(
            workload=action.workload,
            queue=queue_of(action.workload),
            pool=action.pool,
            node=place.node,
            devices=place.devices,
            gpu_milli=place.gpu_milli,
            at_ms=action.until_ms,
            why=_held_for(action.workload, queue_of(action.workload), action.until_ms, now_ms),
        )
        for action in plan.actions
        if isinstance(action, Hold)
        for place in action.placements
    )


def reserved_by(plan: Plan, queue_of: QueueOf, now_ms: int) -> list[Kept]:
    found = []
    for one in plan.reservations:
        at, queue = format_moment_ms(one.at_ms, now_ms), queue_of(one.workload)
        why = reason(Code.RESERVED_FOR, workload=one.workload, queue=queue, at=at)
        found += [
            Kept(workload=one.workload, queue=queue, pool=one.pool, node=node, at_ms=one.at_ms, why=why)
            for node in one.nodes
        ]
    return _in_order(found)


def by_workload(kept: Iterable[Kept]) -> dict[str, list[Kept]]:
    found: dict[str, list[Kept]] = {}
    for one in kept:
        found.setdefault(one.workload, []).append(one)
    return found


def held_milli(holds: Iterable[Kept], parents: Mapping[str, str]) -> Counter[tuple[str, str]]:
    """By queue and pool; what is held for a queue is held for those above it, too."""
    found: Counter[tuple[str, str]] = Counter()
    for kept in holds:
        queue = kept.queue
        while queue:
            found[queue, kept.pool] += len(kept.devices) * kept.gpu_milli
            queue = parents.get(queue, "")
    return found


def _held_for(workload: str, queue: str, until_ms: int, now_ms: int) -> Reason:
    return reason(Code.HELD_FOR, workload=workload, queue=queue, at=format_moment_ms(until_ms, now_ms))


def _in_order(found: Iterable[Kept]) -> list[Kept]:
    return sorted(found, key=lambda one: (one.node, one.devices, one.workload))
