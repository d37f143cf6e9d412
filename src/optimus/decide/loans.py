"""Loans: what a queue uses above its share, another may call back.

Nobody is stopped for a loan that would be called back at once. Else two queues, each with an urgent job larger than its
share and a small one inside it, would stop each other's work for ever: the urgent job preempts the small one of its own
queue, is called back by the small one of the other, which is preempted in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimus.decide.shares import Shares
from optimus.decide.world import World
from optimus.state.arrays import Ints


class Lenders:
    """Those that wait inside what their queues are due."""

    def __init__(self, world: World, hopefuls: Sequence[int]) -> None:
        self._world = world
        self._hopefuls = hopefuls
        self._seen = 0
        self._by_queue: dict[int, dict[int, list[int]]] = {}
        """Queue -> signature -> workloads."""

    def call_back(self, shares: Shares, queue: int, pool: int, amount: Ints, more: Ints) -> bool:
        """Whether this queue, or one above it, goes beyond its share by using so much more, and somebody waits who may
        take that back. `amount` is what the asker itself takes."""
        world = self._world
        self._sort()
        for own in world.tree.paths[queue].tolist():
            after, due = world.used_coming[own, pool] + more, shares.share[own, pool]
            if any(more[c] > 0 and after[c] > due[c] for c in world.measures(own, pool, amount)):
                siblings = world.tree.children[world.tree.parent[own]]
                if any(self._waits_inside(shares, sibling, pool) for sibling in siblings if sibling != own):
                    return True
        return False

    def _waits_inside(self, shares: Shares, side: int, pool: int) -> bool:
        """Whether work below this queue waits that would stay inside its share."""
        world = self._world
        used, due = world.used_coming[side, pool], shares.share[side, pool]
        if (used >= due).all():
            return False
        for queue, lines in self._by_queue.items():
            if side not in world.tree.paths[queue]:
                continue
            for signature, rows in lines.items():
                ask = world.ask_of_signature(signature)
                if pool not in ask.pools or not ask.possible(pool):
                    continue
                least = ask.least_amount(pool)
                inside = all(used[c] + least[c] <= due[c] for c in world.measures(side, pool, least))
                if inside and any(world.waits(row) for row in rows):
                    return True
        return False

    def _sort(self) -> None:
        columns = self._world.columns
        for row in self._hopefuls[self._seen :]:
            lines = self._by_queue.setdefault(int(columns.queue[row]), {})
            lines.setdefault(int(columns.signature[row]), []).append(row)
        self._seen = len(self._hopefuls)
