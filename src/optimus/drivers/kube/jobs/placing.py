"""Placing: which replicas a job shall have, given how many.

Why: the scheduler says a number; names have to be stable, and whoever runs should go on running.
Owns: the choice: those that are there and not leaving, then the lowest free ordinals; too many go from the highest.
Must not: know nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from optimus.drivers.kube.jobs.words import WORKER
from optimus.lives import Place, Replica
from optimus.lives.kinds import Kind


def places_for(
    kind: Kind, target: int, most: int, replicas: Sequence[Replica], done: Collection[tuple[str, int]]
) -> tuple[Place, ...]:
    """`done`: replicas of this attempt that have ended well; their places are taken."""
    if target <= 0:
        return ()
    there = {one.ordinal for one in replicas if one.role == WORKER and one.live and one.asked_ms is None}
    there |= {ordinal for role, ordinal in done if role == WORKER}
    chosen = chosen_ordinals(min(target, most), there)
    beside = [Place(role=role, ordinal=ordinal, node="") for role, count in kind.beside for ordinal in range(count)]
    return (*beside, *(Place(role=WORKER, ordinal=ordinal, node="") for ordinal in chosen))


def chosen_ordinals(count: int, there: Collection[int]) -> list[int]:
    chosen = sorted(there)[:count]
    free = (ordinal for ordinal in range(count + len(chosen)) if ordinal not in chosen)
    chosen += [next(free) for _ in range(count - len(chosen))]
    return sorted(chosen)
