"""Queues, pools and namespaces: who shares the cluster, and by which rules.

Why: they are few, change rarely and are told whole; gangs and pods are neither, and `mirror` has enough of them.
Owns: the last good queues and pools, what each namespace says of itself, and what of it the brain has not been told.
Must not: read objects that people wrote (`queues` does), or look at a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optimus.drivers.kube.aside import Aside, Thing
from optimus.drivers.kube.counting import Counting
from optimus.drivers.kube.grouping.overrides import QUEUE, SCHEDULER, word_on
from optimus.drivers.kube.objects import Namespace
from optimus.drivers.kube.opting_in import is_system
from optimus.drivers.kube.selectors import Selector
from optimus.drivers.kube.whose import Whose
from optimus.model.observations import Observation, PoolGone, PoolSeen, QueueGone, QueueSeen
from optimus.model.pools import NodePool
from optimus.model.queues import Queue


class Tenants:
    def __init__(self, aside: Aside, counting: Counting, changed: Callable[[str], None]) -> None:
        """`changed` is told of a namespace whose work is to be looked at again."""
        self.queues: dict[str, Queue] = {}
        self.pools: dict[str, NodePool] = {}
        self._aside, self._counting, self._changed = aside, counting, changed
        self._whose = Whose(counting.namespaces_with)
        self._queue_of: dict[str, str] = {}
        self._opted_in: set[str] = set()
        self._facts: list[Observation] = []

    # -- what changes -------------------------------------------------------------------------------------------------

    def queue(self, queue: Queue, among: Selector | None = None) -> None:
        """`among`: namespaces with such labels may use it, too."""
        self._tell(self._whose.take(queue, among))

    def queue_gone(self, name: str) -> None:
        self._aside.take_back(Thing.QUEUE, name)
        self._whose.forget(name)
        self.queues.pop(name, None)
        self._facts.append(QueueGone(name))

    def pool(self, pool: NodePool) -> None:
        if self.pools.get(pool.name) != pool:  # most changes are of its status
            self._aside.take_back(Thing.POOL, pool.name)
            self.pools[pool.name] = pool
            self._facts.append(PoolSeen(pool))

    def pool_gone(self, name: str) -> None:
        self._aside.take_back(Thing.POOL, name)
        self.pools.pop(name, None)
        self._facts.append(PoolGone(name))

    def namespace(self, namespace: Namespace) -> None:
        meta = namespace.metadata
        self._see(meta.name, meta.labels or {})
        opted_in = (meta.labels or {}).get(SCHEDULER) == "enabled" and not is_system(meta.name)
        queue = word_on(meta, QUEUE) or ""
        if (opted_in, queue) != (self.opted_in(meta.name), self.queue_of(meta.name)):
            (self._opted_in.add if opted_in else self._opted_in.discard)(meta.name)
            self._queue_of[meta.name] = queue
            self._changed(meta.name)

    def namespace_gone(self, name: str) -> None:
        self._see(name, None)
        self._queue_of.pop(name, None)
        self._opted_in.discard(name)

    def _see(self, namespace: str, labels: Mapping[str, str] | None) -> None:
        before = self._counting.version
        self._counting.see_namespace(namespace, labels)
        if self._counting.version != before:  # other labels: other queues may be its own
            for queue in self._whose.again():
                self._tell(queue)

    def _tell(self, queue: Queue) -> None:
        if self.queues.get(queue.name) != queue:  # most changes are of its status
            self._aside.take_back(Thing.QUEUE, queue.name)
            self.queues[queue.name] = queue
            self._facts.append(QueueSeen(queue))

    # -- what is known ------------------------------------------------------------------------------------------------

    def queue_of(self, namespace: str) -> str:
        """Where its work goes that names no queue; empty if it does not say."""
        return self._queue_of.get(namespace, "")

    def opted_in(self, namespace: str) -> bool:
        """The server gives its pods to the scheduler that it names (`opting_in`)."""
        return namespace in self._opted_in

    def news(self) -> list[Observation]:
        facts, self._facts = self._facts, []
        return facts

    def everything(self) -> list[Observation]:
        self._facts = []
        return [*map(PoolSeen, self.pools.values()), *map(QueueSeen, self.queues.values())]
