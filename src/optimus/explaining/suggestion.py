"""A suggestion: one thing that could be changed, and what was seen to come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from optimus.explaining.trying import Change, Outcome, Trials


class Suggestion(Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str
    """resume, replicas, gpus, gpuMemory, share, pools, nodeSelector, models, topology, preemptible, class, priority,
    guarantee, limit."""
    words: str
    """`4 replicas instead of 8`."""
    field: str
    """What to write: `replicas: 4`."""
    of: str
    """Whose: job or queue."""
    outcome: Outcome


class Idea(NamedTuple):
    kind: str
    words: str
    field: str
    change: Change
    of: str = "job"


def tried(trials: Trials, idea: Idea | None) -> list[Suggestion]:
    """Of an idea that works, the suggestion."""
    outcome = trials.outcome(idea.change) if idea is not None else None
    if idea is None or outcome is None:
        return []
    return [Suggestion(kind=idea.kind, words=idea.words, field=idea.field, of=idea.of, outcome=outcome)]


def first_that_works(
    trials: Trials, ideas: Sequence[int], make: Callable[[int], Idea | None], *, idle: bool = False
) -> tuple[int, Suggestion] | None:
    """The mildest number that works, by halving; `ideas` from the mildest to the boldest. `idle`: without disturbing
    others. Where a bolder one fails and a milder one does not, the mildest may be missed; what is found was tried."""
    if not ideas:
        return None
    found = _works(trials, make(ideas[-1]), idle)
    if found is None:
        return None
    low, high = 0, len(ideas) - 1
    best = found
    while low < high:
        middle = (low + high) // 2
        found = _works(trials, make(ideas[middle]), idle)
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return ideas[high], best


def _works(trials: Trials, idea: Idea | None, idle: bool) -> Suggestion | None:
    found = tried(trials, idea)
    return found[0] if found and not (idle and found[0].outcome.held) else None
