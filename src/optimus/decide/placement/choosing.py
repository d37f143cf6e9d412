"""Which nodes: from "how many fit" and scores to nodes and counts for replicas of one shape.

Pack: one host if one can take all, else the narrowest domain that can (rack, block, zone), the tightest such domain,
and inside it as few hosts as possible. Spread: one replica per node and round, the best nodes first.
Ties go to the higher score, then to the earlier name (node order is name order). Scores are asked for only where they
decide, because they cost more than counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from optimus.model.pools import Strategy
from optimus.state.arrays import Ints

Choice = tuple[list[int], list[int]]
"""Nodes and how many replicas each takes."""
ScoreAt = Callable[[Ints], Ints]
"""Nodes -> their scores; higher is better."""
LOWEST = int(np.iinfo(np.int64).min)


def choose_nodes(fits: Ints, score: ScoreAt, count: int, levels: Iterable[Ints], strategy: Strategy) -> Choice | None:
    """`levels`: domain numbers by node, narrowest first. None when the room is not enough."""
    if count == 1:
        able = fits.nonzero()[0]
        return ([_best_one(able, score)], [1]) if len(able) else None
    if int(fits.sum()) < count:
        return None
    if strategy is Strategy.SPREAD:
        return _spread(fits, score, count)
    most = int(fits.max())
    if most >= count:
        return [_tightest(fits, score, count)], [count]
    for domains in levels:
        inside = domains >= 0
        if not inside.any():
            continue
        sums = np.bincount(domains[inside], weights=fits[inside]).astype(np.int64)
        able = np.flatnonzero(sums >= count)
        if len(able):
            tightest = int(able[sums[able].argmin()])
            fits = np.where(domains == tightest, fits, 0)
            break
    return _few_hosts(fits, score, count)


def _tightest(fits: Ints, score: ScoreAt, count: int) -> int:
    """The node with the least room that is enough, by score among equals."""
    able = (fits >= count).nonzero()[0]
    room = fits[able]
    return _best_one(able[room == room.min()], score)


def _few_hosts(fits: Ints, score: ScoreAt, count: int) -> Choice:
    fits = fits.copy()
    nodes: list[int] = []
    counts: list[int] = []
    while count:
        most = int(fits.max())
        if most >= count:
            nodes.append(_tightest(fits, score, count))
            counts.append(count)
            break
        equal = (fits == most).nonzero()[0]
        wanted = count // most
        if len(equal) > wanted:
            equal = equal[_best(score(equal), wanted)]
        nodes.extend(equal.tolist())
        counts.extend([most] * len(equal))
        fits[equal] = 0
        count -= most * len(equal)
    return nodes, counts


def _best_one(nodes: Ints, score: ScoreAt) -> int:
    return int(nodes[0]) if len(nodes) == 1 else int(nodes[score(nodes).argmax()])


def _best(score: Ints, wanted: int) -> Ints:
    """Positions of the highest scores, earlier first among equals. `score` is overwritten."""
    if wanted <= 4:
        best = np.empty(wanted, dtype=np.int64)
        for i in range(wanted):
            best[i] = score.argmax()
            score[best[i]] = LOWEST
        return best
    return np.argsort(-score, kind="stable")[:wanted]


def _spread(fits: Ints, score: ScoreAt, count: int) -> Choice:
    able = fits.nonzero()[0]
    order = able[np.argsort(-score(able), kind="stable")]
    room = fits[order]
    taken = np.zeros(len(order), dtype=np.int64)
    while count:
        open_nodes = np.flatnonzero(taken < room)[:count]
        taken[open_nodes] += 1
        count -= len(open_nodes)
    used = taken > 0
    return order[used].tolist(), taken[used].tolist()
