"""Turns: which queue is next, while shares in use change with every turn.

Among siblings: queues that stay inside their guarantee with their next workload first, then those below their share,
then by rank, then by the share they would have after their next workload, then by age and name. Two equal queues take
turns; they do not go one after the other. The tree is walked from the top: the best child of the best child … owns the
next turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush

from optimus.decide.world import World
from optimus.state.arrays import Ints
from optimus.state.queue_tree import ROOT
from optimus.state.resources import GPU_COLUMN

RATIO = 1_000_000
Key = tuple[bool, bool, int, int, int, str]
Need = Callable[[int], tuple[int, Ints]]
"""Workload row -> the pool it is counted in and the amount of its next step."""


class Turns:
    """Hands out workloads one by one; call `done` after each, when use may have changed."""

    def __init__(self, world: World, lending: Ints, lines: Mapping[int, Sequence[int]], need: Need) -> None:
        self._world = world
        self._lending = lending
        self._lines = {queue: list(reversed(rows)) for queue, rows in lines.items() if rows}
        self._need = need
        self._heaps: dict[int, list[tuple[Key, int]]] = {}
        self._current: int | None = None
        self.rebuild()

    def rebuild(self) -> None:
        """Look at every queue again; needed when work of other queues was told to leave."""
        self._heaps.clear()
        tree = self._world.tree
        for queue in reversed(tree.top_down()):
            if tree.children[queue]:
                heap: list[tuple[Key, int]] = []
                for child in tree.children[queue]:
                    head = self._head(child)
                    if head is not None:
                        heappush(heap, (self._key(child, head), child))
                self._heaps[queue] = heap

    def next(self) -> int | None:
        """The workload whose turn it is; None when all have had theirs."""
        queue = ROOT
        while queue in self._heaps:
            if not self._heaps[queue]:
                return None
            queue = self._heaps[queue][0][1]
        if queue == ROOT:
            return None  # there is no queue at all
        self._current = queue
        return self._lines[queue][-1]

    def done(self, *, again: bool = False) -> None:
        """The turn is over; `again` leaves the workload at the head of its line (it may want another step)."""
        queue = self._current
        assert queue is not None
        if not again:
            self._lines[queue].pop()
        while queue != ROOT:
            parent = self._world.tree.parent[queue]
            heappop(self._heaps[parent])
            head = self._head(queue)
            if head is not None:
                heappush(self._heaps[parent], (self._key(queue, head), queue))
            queue = parent

    def take_while(self, like: Callable[[int], bool]) -> list[int]:
        """Those right behind the workload whose turn it is, as long as they are like it: they have had theirs, too."""
        assert self._current is not None
        line = self._lines[self._current]
        first = len(line) - 1
        while first > 0 and like(line[first - 1]):
            first -= 1
        taken = line[first : len(line) - 1]
        del line[first : len(line) - 1]
        return taken[::-1]

    def _head(self, queue: int) -> int | None:
        while queue in self._heaps:
            if not self._heaps[queue]:
                return None
            queue = self._heaps[queue][0][1]
        line = self._lines.get(queue)
        return line[-1] if line else None

    def _key(self, queue: int, head: int) -> Key:
        pool, amount = self._need(head)
        world = self._world
        columns = world.measures(queue, pool, amount)
        used = [int(world.used_coming[queue, pool, c]) for c in columns]
        after = [u + int(amount[c]) for u, c in zip(used, columns, strict=True)]
        due = [int(self._lending[queue, pool, c]) for c in columns]
        guarantee = [int(world.tree.guarantee[queue, pool, c]) for c in columns]
        beyond = any(a > g for a, g in zip(after, guarantee, strict=True))
        above = all(u >= d for u, d in zip(used, due, strict=True))
        ratio = max(a * RATIO // max(d, 1) for a, d in zip(after, due, strict=True))
        entry = world.tree.queues[queue]
        return (beyond, above, entry.rank, ratio, entry.created_ms, entry.name)


class RoundTurns(Turns):
    """Turns of growth: inside a queue the step that is worth most is next, and is weighed anew after every step."""

    def __init__(
        self,
        world: World,
        lending: Ints,
        lines: Mapping[int, Sequence[int]],
        need: Need,
        benefit: Callable[[int], int],
    ) -> None:
        self._benefit = benefit
        super().__init__(
            world, lending, {q: sorted(rows, key=lambda r: -benefit(r)) for q, rows in lines.items()}, need
        )

    def step_taken(self) -> None:
        queue = self._current
        assert queue is not None
        line = self._lines[queue]
        row = line.pop()
        worth = self._benefit(row)
        if worth > 0:  # behind those that are worth as much: they have waited longer
            at = bisect_right([-self._benefit(r) for r in reversed(line)], -worth)
            line.insert(len(line) - at, row)
        self.done(again=True)


def divide(
    world: World, lending: Ints, pool: int, wants: Mapping[int, int], has: Mapping[int, int], gpus: int, step: int
) -> dict[int, int]:
    """Leaf queue -> how many of these idle GPUs it gets: in turns as above, no more than it wants, and each time as
    many as make what it has a multiple of `step`."""
    given = dict.fromkeys(wants, 0)
    added: dict[int, int] = {}

    def place(queue: int) -> tuple[Key, ...]:
        keys = []
        for above in reversed(world.tree.paths[queue].tolist()):
            used = int(world.used_coming[above, pool, GPU_COLUMN]) // 1000 + added.get(above, 0)
            due = int(lending[above, pool, GPU_COLUMN]) // 1000
            beyond = used + step > int(world.tree.guarantee[above, pool, GPU_COLUMN]) // 1000
            entry = world.tree.queues[above]
            ratio = (used + step) * RATIO // max(due, 1)
            keys.append((beyond, used >= due, entry.rank, ratio, entry.created_ms, entry.name))
        return tuple(keys)

    while gpus > 0 and (open_queues := [queue for queue in given if given[queue] < wants[queue]]):
        queue = min(open_queues, key=place)
        part = min(step - (has[queue] + given[queue]) % step, gpus, wants[queue] - given[queue])
        given[queue] += part
        gpus -= part
        for above in world.tree.paths[queue].tolist():
            added[above] = added.get(above, 0) + part
    return given
