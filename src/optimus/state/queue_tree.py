"""The tree of queues as arrays: guarantee, limit and weight for every queue, pool and resource.

Built anew when a queue or pool changes (rare), read in every cycle. A broken queue (cycle, missing parent) is set
aside with its problem and takes the queues below it along; the rest of the tree goes on working.

A leaf that does not name a resource has no guarantee and no weight there. An inner queue that does not name it only
groups: it stands for the sum of its children.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from optimus.model.queues import Queue
from optimus.state.arrays import Bools, Ints

UNLIMITED = 2**62
ROOT = -1


class QueueTree:
    def __init__(self, queues: Iterable[Queue], pools: Sequence[str], resources: Mapping[str, int]) -> None:
        by_name = {queue.name: queue for queue in sorted(queues, key=lambda q: q.name)}
        self.problems = _problems(by_name)
        self.queues = [queue for name, queue in by_name.items() if name not in self.problems]
        self.index = {queue.name: i for i, queue in enumerate(self.queues)}
        count = len(self.queues)
        self.parent = [self.index[q.parent] if q.parent else ROOT for q in self.queues]
        self.children: dict[int, list[int]] = {i: [] for i in range(ROOT, count)}
        for i, parent in enumerate(self.parent):
            self.children[parent].append(i)
        self.paths: list[Ints] = [np.array(list(self._climb(i)), dtype=np.int64) for i in range(count)]
        """Each queue with all queues above it, itself first."""
        self.rank = [queue.rank for queue in self.queues]
        self.max_priority = [min(self._caps(path.tolist()), default=UNLIMITED) for path in self.paths]
        """The lowest that a queue, or one above it, allows."""
        shape = (count, len(pools), len(resources))
        self.guarantee: Ints = np.zeros(shape, dtype=np.int64)
        self.limit: Ints = np.full(shape, UNLIMITED, dtype=np.int64)
        self.weight: Ints = np.zeros(shape, dtype=np.int64)
        self.named: Bools = np.zeros(shape, dtype=np.bool_)
        self.unknown_pools: dict[str, list[str]] = {}
        pool_index = {name: i for i, name in enumerate(pools)}
        for i, queue in enumerate(self.queues):
            for pool_quota in queue.quotas:
                if pool_quota.pool not in pool_index:
                    self.unknown_pools.setdefault(queue.name, []).append(pool_quota.pool)
                    continue
                p = pool_index[pool_quota.pool]
                for resource, quota in pool_quota.resources.items():
                    r = resources[resource]
                    limit = UNLIMITED if quota.limit is None else quota.limit
                    self.limit[i, p, r] = limit
                    self.guarantee[i, p, r] = min(quota.guarantee, limit)  # a guarantee above the limit is void there
                    self.weight[i, p, r] = quota.weight
                    self.named[i, p, r] = True
        for i in reversed(self.top_down()[1:]):
            if self.children[i]:
                groups = ~self.named[i]
                for amounts in (self.guarantee, self.weight):
                    amounts[i] = np.where(groups, amounts[self.children[i]].sum(axis=0), amounts[i])
                self.named[i] |= self.named[self.children[i]].any(axis=0)
        self.limited = [bool((self.limit[path] < UNLIMITED).any()) for path in self.paths]
        """Whether a queue, or one above it, has any limit at all."""
        for array in (self.guarantee, self.limit, self.weight, self.named):
            array.flags.writeable = False

    def is_leaf(self, queue: int) -> bool:
        return not self.children[queue]

    def summed_up(self, own: Ints) -> Ints:
        """[queue, …] with everything below added to each queue."""
        total = own.copy()
        for queue in reversed(self.top_down()[1:]):
            if self.parent[queue] >= 0:
                total[self.parent[queue]] += total[queue]
        return total

    def top_down(self) -> list[int]:
        """Parents before children; ROOT first."""
        order = [ROOT]
        for node in order:
            order.extend(self.children[node])
        return order

    def _caps(self, path: Iterable[int]) -> list[int]:
        found = (self.queues[queue].policy.max_priority for queue in path)
        return [priority for priority in found if priority is not None]

    def _climb(self, queue: int) -> Iterable[int]:
        while queue != ROOT:
            yield queue
            queue = self.parent[queue]


def _problems(queues: Mapping[str, Queue]) -> dict[str, str]:
    """Queues that cannot be used: part of a cycle, without their parent, or below such a queue."""
    problems: dict[str, str] = {}
    for name in queues:
        walked = [name]
        while True:
            parent = queues[walked[-1]].parent
            if not parent:
                break
            if parent not in queues:
                problems[name] = (
                    f"its ancestor {parent} does not exist" if len(walked) > 1 else f"parent {parent} does not exist"
                )
                break
            if parent in walked:
                circle = [*walked[walked.index(parent) :], parent]
                problems[name] = "its ancestors form a circle: " + " -> ".join(circle)
                break
            walked.append(parent)
    return problems
