"""What goes wrong, or merely changes, between two cycles. Seeded, and only things that can happen."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from optimus.model import observations as seen
from optimus.model.nodes import ForeignUsage, Node, Taint
from optimus.model.queues import PoolQuota, Queue, QueueState, Quota
from optimus.model.workloads import Group, Preemptible
from optimus.testing.drawing import Draw
from optimus.testing.ledger import Ledger, Record, Stage
from optimus.testing.worlds import World

Facts = list[seen.Observation]


class Mishaps:
    def __init__(self, world: World, draw: Draw) -> None:
        self._draw = draw
        self._later = list(world.later)
        self._gone: list[Node] = []
        self._kinds: list[tuple[int, Callable[[Ledger, int], Facts]]] = [
            (10, self._submit),
            (10, self._finish),
            (5, self._lose_replica),
            (3, self._finish_replica),
            (3, self._lose_node),
            (3, self._node_returns),
            (3, self._device_dies),
            (2, self._unready),
            (2, self._cordon),
            (1, self._taint),
            (1, self._foreign),
            (5, self._change_quota),
            (2, self._change_queue_state),
            (1, self._queue_gone),
            (3, self._suspend),
            (2, self._stopped_by_others),
            (2, self._edit),
            (1, self._relabel),
            (1, self._say_again),
            (4, self._report),
            (8, lambda _ledger, _now: []),
        ]

    def strike(self, ledger: Ledger, now_ms: int) -> Facts:
        """Nothing to a few things; each sees what the ones before it have done."""
        facts: Facts = []
        copy = ledger.copy()
        for _ in range(self._draw.weighted(((4, 0), (5, 1), (2, 2), (1, 3)))):
            for fact in self._draw.weighted(self._kinds)(copy, now_ms):
                copy.observe(fact, now_ms)
                facts.append(fact)
        return facts

    # -- workloads --------------------------------------------------------------------------------------------

    def _submit(self, _ledger: Ledger, now_ms: int) -> Facts:
        if not self._later:
            return []
        return [seen.WorkloadSeen(structs.replace(self._later.pop(), submitted_ms=now_ms))]

    def _finish(self, ledger: Ledger, _now_ms: int) -> Facts:
        able = [
            r for r in ledger.records.values() if not r.ended and (r.started_ms is not None or self._draw.chance(5))
        ]
        if not able:
            return []
        record = self._draw.pick(able)
        name = record.spec.id
        facts: Facts = [seen.WorkloadEnded(name, self._draw.pick(list(seen.Outcome)))]
        if self._draw.chance(70):  # its replicas are gone by the time anybody hears of it
            there = [k for k, r in record.live.items() if r.stage in (Stage.RUNNING, Stage.BINDING)]
            facts += [seen.SlotGone(name, *key) for key in (*record.leaving, *there)]
        return facts

    def _lose_replica(self, ledger: Ledger, _now_ms: int) -> Facts:
        running = self._running(ledger)
        if not running:
            return []
        record = self._draw.pick(running)
        keys = [key for key, replica in record.live.items() if replica.stage is Stage.RUNNING]
        return [seen.SlotGone(record.spec.id, *key) for key in self._draw.some(keys, self._draw.between(1, 2))]

    def _finish_replica(self, ledger: Ledger, _now_ms: int) -> Facts:
        """One ends well, and the others of its gang go on."""
        able = [r for r in self._running(ledger) if sum(x.stage is Stage.RUNNING for x in r.live.values()) > 1]
        if not able:
            return []
        record = self._draw.pick(able)
        keys = [key for key, replica in record.live.items() if replica.stage is Stage.RUNNING]
        return [seen.SlotDone(record.spec.id, *self._draw.pick(keys))]

    def _suspend(self, ledger: Ledger, _now_ms: int) -> Facts:
        able = [r for r in ledger.records.values() if not r.ended]
        if not able:
            return []
        resting = [r for r in able if r.spec.suspended]
        record = self._draw.pick(resting if resting and self._draw.chance(70) else able)
        return [seen.WorkloadSeen(structs.replace(record.spec, suspended=not record.spec.suspended))]

    def _stopped_by_others(self, ledger: Ledger, _now_ms: int) -> Facts:
        """Somebody deletes a pod: it is leaving, and nobody has asked for that."""
        running = self._running(ledger)
        if not running:
            return []
        record = self._draw.pick(running)
        keys = [key for key, replica in record.live.items() if replica.stage is Stage.RUNNING]
        return [seen.SlotStopping(record.spec.id, *self._draw.pick(keys))]

    def _edit(self, ledger: Ledger, _now_ms: int) -> Facts:
        """Its owner changes his mind about priority, protection, queue or size."""
        able = [r.spec for r in ledger.records.values() if not r.ended]
        if not able:
            return []
        spec = self._draw.pick(able)
        changed = self._draw.pick(
            (
                structs.replace(spec, priority=self._draw.pick((None, 0, 100, 300))),
                structs.replace(spec, preemptible=self._draw.pick(list(Preemptible))),
                structs.replace(spec, queue=self._draw.pick(sorted(ledger.queues) or [spec.queue])),
                structs.replace(spec, gang=self._resized(spec.gang)),
            )
        )
        return [seen.WorkloadSeen(changed)]

    def _resized(self, gang: Group) -> Group:
        """Another minimum and maximum for a plain gang; others stay as they are."""
        if len(gang.roles) != 1 or gang.groups or gang.roles[0].sizes:
            return gang
        most = self._draw.between(1, 6)
        role = structs.replace(gang.roles[0], min=self._draw.between(1, most), max=most)
        return structs.replace(gang, roles=(role,))

    def _say_again(self, ledger: Ledger, _now_ms: int) -> Facts:
        """A body that reports what is known already, or what is long over."""
        running = self._running(ledger)
        if not running:
            return []
        record = self._draw.pick(running)
        key, replica = self._draw.pick([(k, r) for k, r in record.live.items() if r.stage is Stage.RUNNING])
        return [
            seen.SlotRunning(record.spec.id, *key, replica.node, replica.devices),
            seen.SlotGone("team/nobody", "x", 0),
        ]

    def _report(self, ledger: Ledger, now_ms: int) -> Facts:
        running = self._running(ledger)
        if not running:
            return []
        name = self._draw.pick(running).spec.id
        reports: Facts = [
            seen.Checkpointed(name, now_ms - self._draw.between(0, 600_000)),
            seen.ActivitySeen(name, now_ms - self._draw.between(0, 1_200_000)),
            seen.Predicted(name, self._draw.between(1, 10_000_000)),
        ]
        return [self._draw.pick(reports)]

    @staticmethod
    def _running(ledger: Ledger) -> list[Record]:
        return [
            record
            for record in ledger.records.values()
            if not record.ended and any(r.stage is Stage.RUNNING for r in record.live.values())
        ]

    # -- nodes ------------------------------------------------------------------------------------------------

    def _node(self, ledger: Ledger) -> Node | None:
        return self._draw.pick([ledger.nodes[name] for name in sorted(ledger.nodes)]) if ledger.nodes else None

    def _lose_node(self, ledger: Ledger, _now_ms: int) -> Facts:
        node = self._node(ledger)
        if node is None:
            return []
        self._gone.append(node)
        return [seen.NodeGone(node.name)]

    def _node_returns(self, ledger: Ledger, _now_ms: int) -> Facts:
        if self._gone and self._gone[-1].name not in ledger.nodes:
            return [seen.NodeSeen(structs.replace(self._gone.pop(), ready=True))]
        return []

    def _device_dies(self, ledger: Ledger, _now_ms: int) -> Facts:
        node = self._node(ledger)
        if node is None or not node.devices:
            return []
        broken = self._draw.pick(node.devices)
        devices = tuple(structs.replace(d, healthy=not d.healthy) if d == broken else d for d in node.devices)
        facts: Facts = [seen.NodeSeen(structs.replace(node, devices=devices))]
        if broken.healthy and self._draw.chance(60):  # what ran there dies with it; else it is noticed later
            for record, replica in ledger.on_node(node.name, "now"):
                if replica.stage is Stage.RUNNING and broken.index in replica.devices:
                    facts.append(seen.SlotGone(record.spec.id, replica.role, replica.ordinal))
        return facts

    def _unready(self, ledger: Ledger, _now_ms: int) -> Facts:
        node = self._node(ledger)
        return [seen.NodeSeen(structs.replace(node, ready=not node.ready))] if node is not None else []

    def _cordon(self, ledger: Ledger, _now_ms: int) -> Facts:
        node = self._node(ledger)
        return [seen.NodeSeen(structs.replace(node, cordoned=not node.cordoned))] if node is not None else []

    def _taint(self, ledger: Ledger, _now_ms: int) -> Facts:
        node = self._node(ledger)
        if node is None:
            return []
        return [seen.NodeSeen(structs.replace(node, taints=() if node.taints else (Taint("maintenance"),)))]

    def _relabel(self, ledger: Ledger, _now_ms: int) -> Facts:
        """A node turns out to be in another rack, or in another pool."""
        node = self._node(ledger)
        if node is None:
            return []
        labels = dict(node.labels)
        if self._draw.chance(50):
            labels["rack"] = f"rack{self._draw.between(0, 3)}"
        else:
            labels["pool"] = self._draw.pick(sorted(ledger.pools))
        return [seen.NodeSeen(structs.replace(node, labels=labels))]

    def _foreign(self, ledger: Ledger, _now_ms: int) -> Facts:
        node = self._node(ledger)
        if node is None:
            return []
        gpu = {self._draw.pick(node.devices).index: 500} if node.devices and self._draw.chance(50) else {}
        foreign = ForeignUsage(cpu_milli=self._draw.between(0, node.cpu_milli // 2), gpu_milli=gpu)
        return [seen.NodeSeen(structs.replace(node, foreign=foreign))]

    # -- queues -----------------------------------------------------------------------------------------------

    def _queue(self, ledger: Ledger) -> Queue | None:
        return self._draw.pick([ledger.queues[name] for name in sorted(ledger.queues)]) if ledger.queues else None

    def _change_quota(self, ledger: Ledger, _now_ms: int) -> Facts:
        queue = self._queue(ledger)
        if queue is None or not queue.quotas:
            return []
        at = self._draw.between(0, len(queue.quotas) - 1)
        chosen = queue.quotas[at]
        if not chosen.resources:
            return []
        resource = self._draw.pick(sorted(chosen.resources))
        changed = self._changed(chosen.resources[resource])
        quota = PoolQuota(pool=chosen.pool, resources={**chosen.resources, resource: changed})
        quotas = (*queue.quotas[:at], quota, *queue.quotas[at + 1 :])
        return [seen.QueueSeen(structs.replace(queue, quotas=quotas))]

    def _changed(self, quota: Quota) -> Quota:
        unit = max(1, quota.guarantee // 2, (quota.limit or 0) // 2)
        if self._draw.chance(50):
            limit = None if quota.limit is not None and self._draw.chance(40) else self._draw.between(0, 3) * unit
            return structs.replace(quota, limit=limit)
        return structs.replace(quota, guarantee=self._draw.between(0, 3) * unit, weight=self._draw.between(0, 2))

    def _change_queue_state(self, ledger: Ledger, _now_ms: int) -> Facts:
        queue = self._queue(ledger)
        if queue is None:
            return []
        closed = queue.state is not QueueState.OPEN
        state = QueueState.OPEN if closed else self._draw.pick((QueueState.STOPPED, QueueState.DRAINING))
        return [seen.QueueSeen(structs.replace(queue, state=state))]

    def _queue_gone(self, ledger: Ledger, _now_ms: int) -> Facts:
        queue = self._queue(ledger)
        return [seen.QueueGone(queue.name)] if queue is not None and self._draw.chance(50) else []
