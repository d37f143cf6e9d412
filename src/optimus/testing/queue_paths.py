"""The tree of queues by name: paths, children and quotas, as the descriptions say it.

Rules written down here once more, from scheduling.md and the model:
- a queue whose parent is missing, or whose ancestors form a circle, cannot be used, nor can those below it;
- a resource that a leaf does not name is unlimited there and gives no guarantee and no weight; an inner queue that
  does not name it only groups: it stands for the sum of its children (ADR 5);
- a guarantee above the queue's own limit counts only up to the limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimus.model.queues import Queue, Quota
from optimus.model.workloads import Workload

TOP = ""


class Tree:
    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self.queues = {name: queues[name] for name in sorted(queues) if _is_sound(name, queues)}
        self._children: dict[str, list[str]] = {TOP: []}
        for name in self.queues:
            self._children.setdefault(name, [])
        for name, queue in self.queues.items():
            self._children[queue.parent].append(name)

    def path(self, name: str) -> list[str]:
        """The queue and all above it, itself first; empty for a queue that cannot be used."""
        found: list[str] = []
        while name in self.queues:
            found.append(name)
            name = self.queues[name].parent
        return found

    def children(self, name: str) -> list[str]:
        return self._children.get(name, [])

    def is_leaf(self, name: str) -> bool:
        return not self._children[name]

    def below(self, name: str) -> list[str]:
        """The queue and everything below it."""
        found = [name]
        for each in found:
            found.extend(self._children[each])
        return found

    def bottom_up(self) -> list[str]:
        return sorted(self.queues, key=lambda name: -len(self.path(name)))

    def priority(self, spec: Workload) -> int:
        """What it asks for, as far as its queue and those above allow it."""
        caps = [self.queues[name].policy.max_priority for name in self.path(spec.queue)]
        return min([spec.effective_priority, *(cap for cap in caps if cap is not None)])

    def quota(self, queue: str, pool: str, resource: str) -> Quota | None:
        """What the queue itself says."""
        for pool_quota in self.queues[queue].quotas:
            if pool_quota.pool == pool:
                return pool_quota.resources.get(resource)
        return None

    def is_named(self, queue: str, pool: str, resource: str) -> bool:
        below = self._children[queue]
        return self.quota(queue, pool, resource) is not None or any(self.is_named(q, pool, resource) for q in below)

    def names_anything(self, queue: str, pool: str) -> bool:
        return any(quota.pool == pool and quota.resources for quota in self.queues[queue].quotas)

    def guarantee(self, queue: str, pool: str, resource: str) -> int:
        quota = self.quota(queue, pool, resource)
        if quota is None:
            return sum(self.guarantee(child, pool, resource) for child in self._children[queue])
        return quota.guarantee if quota.limit is None else min(quota.guarantee, quota.limit)

    def limit(self, queue: str, pool: str, resource: str) -> int | None:
        quota = self.quota(queue, pool, resource)
        return None if quota is None else quota.limit

    def weight(self, queue: str, pool: str, resource: str) -> int:
        quota = self.quota(queue, pool, resource)
        if quota is None:
            return sum(self.weight(child, pool, resource) for child in self._children[queue])
        return quota.weight


def _is_sound(name: str, queues: Mapping[str, Queue]) -> bool:
    seen = set()
    while name:
        if name in seen or name not in queues:
            return False
        seen.add(name)
        name = queues[name].parent
    return True
