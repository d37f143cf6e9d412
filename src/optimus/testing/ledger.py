"""Who runs where: the pretend body's own book, kept from the observations it sent and the plans it got.

Why: a checker that asked the state would believe the state's mistakes.
Owns: replicas and their phases, by workload; what every node, queue and workload looks like at this moment.
Must not: read anything of `optimus.state` or `optimus.decide`.

A replica is counted twice: against what is taken *now* (held, starting, running, leaving) and against what will be
taken when everybody told to leave has left (*coming*: promised, held, starting, running).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum

from optimus.model import observations as seen
from optimus.model.nodes import Node
from optimus.model.plans import Drop, Evict, Grow, Hold, Placement, Plan, Reject, Shrink, Start
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.queues import Queue
from optimus.model.settings import Settings
from optimus.model.workloads import Request, Workload
from optimus.testing.amounts import Amount, plus, replica_amount, shares_on, total
from optimus.testing.gang_rules import lines, meets_minimum

Key = tuple[str, int]
"""Role and ordinal."""
NOW = "now"
COMING = "coming"


class Stage(StrEnum):
    PROMISED = "promised"
    HELD = "held"
    BINDING = "binding"
    RUNNING = "running"
    LEAVING = "leaving"


@dataclass(slots=True)
class Replica:
    role: str
    ordinal: int
    node: str
    devices: tuple[int, ...]
    gpu_milli: int
    amount: Amount
    stage: Stage
    until_ms: int = -1
    certain: bool = True
    """False while somebody else has yet to pick the devices: their number is right, their indices are not."""
    done: bool = False
    """It has ended well: it counts as there, and takes nothing."""

    def counts(self, view: str) -> bool:
        return self.stage is not (Stage.PROMISED if view == NOW else Stage.LEAVING)


@dataclass(slots=True)
class Record:
    """One workload and what has happened to it."""

    spec: Workload
    live: dict[Key, Replica] = field(default_factory=dict)
    leaving: dict[Key, Replica] = field(default_factory=dict)
    ended: bool = False
    started_ms: int | None = None
    """This attempt: when its minimum first ran."""
    lost_ms: int | None = None
    """Since when what it has (held or running) has been below its minimum."""
    short_ms: int | None = None
    """The same, but a replacement counts only once it runs."""
    ran_ms: int = 0
    runs_since_ms: int | None = None
    retry_at_ms: int = 0
    busy_ms: int | None = None

    def replicas(self, view: str) -> list[Replica]:
        return [r for r in (*self.live.values(), *self.leaving.values()) if r.counts(view)]

    def present(self, *, promised: bool = False) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for (role, ordinal), replica in self.live.items():
            if promised or replica.stage is not Stage.PROMISED:
                found.setdefault(role, set()).add(ordinal)
        return found

    def promises(self) -> list[Replica]:
        return [r for r in self.live.values() if r.stage is Stage.PROMISED]

    def is_waiting(self) -> bool:
        """Nothing of it runs or has room to start in."""
        return not self.ended and all(r.stage is Stage.PROMISED for r in self.live.values())

    def amount(self, view: str) -> Amount:
        return total(r.amount for r in self.replicas(view))

    def elapsed_ms(self, now_ms: int) -> int:
        return self.ran_ms + (0 if self.runs_since_ms is None else max(0, now_ms - self.runs_since_ms))

    def pool(self, ledger: Ledger) -> str | None:
        for replica in (*self.live.values(), *self.leaving.values()):
            return ledger.pool_of(replica.node)
        return None


class Ledger:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.nodes: dict[str, Node] = {}
        self.unready_ms: dict[str, int] = {}
        self.sick_ms: dict[tuple[str, int], int] = {}
        """Node and device -> since when it is unhealthy; only where it is known who has which device."""
        self.pools: dict[str, NodePool] = {DEFAULT_POOL: NodePool(name=DEFAULT_POOL)}
        self.queues: dict[str, Queue] = {}
        self.records: dict[str, Record] = {}

    def copy(self) -> Ledger:
        other = Ledger(self.settings)
        other.nodes, other.unready_ms, other.sick_ms = dict(self.nodes), dict(self.unready_ms), dict(self.sick_ms)
        other.pools, other.queues = dict(self.pools), dict(self.queues)
        for name, record in self.records.items():
            twin = copy(record)
            twin.live = {key: copy(replica) for key, replica in record.live.items()}
            twin.leaving = {key: copy(replica) for key, replica in record.leaving.items()}
            other.records[name] = twin
        return other

    def pool_of(self, node: str) -> str | None:
        """The first pool by name whose selector matches; else the default one. None for a node that is gone."""
        labels = self.nodes[node].labels.items() if node in self.nodes else None
        if labels is None:
            return None
        for name in sorted(self.pools):
            selector = self.pools[name].selector
            if selector and selector.items() <= labels:
                return name
        return DEFAULT_POOL if DEFAULT_POOL in self.pools else min(self.pools)

    def nodes_of(self, pool: str) -> list[Node]:
        return [self.nodes[name] for name in sorted(self.nodes) if self.pool_of(name) == pool]

    # -- facts ------------------------------------------------------------------------------------------------

    def observe(self, fact: seen.Observation, now_ms: int) -> None:
        match fact:
            case seen.NodeSeen(node):
                self.nodes[node.name] = node
                if node.ready:
                    self.unready_ms.pop(node.name, None)
                else:
                    self.unready_ms.setdefault(node.name, now_ms)
                sick = {(node.name, d.index) for d in node.devices if not d.healthy and node.assignable}
                known = {at: since for at, since in self.sick_ms.items() if at[0] != node.name or at in sick}
                self.sick_ms = {**dict.fromkeys(sick, now_ms), **known}
            case seen.NodeGone(name):
                self._lose_node(name, now_ms)
            case seen.PoolSeen(pool):
                self.pools[pool.name] = pool
            case seen.PoolGone(name):
                self.pools.pop(name, None)
                self.pools.setdefault(DEFAULT_POOL, NodePool(name=DEFAULT_POOL))
            case seen.QueueSeen(queue):
                self.queues[queue.name] = queue
            case seen.QueueGone(name):
                self.queues.pop(name, None)
            case seen.WorkloadSeen(workload):
                if workload.id in self.records:
                    self.records[workload.id].spec = workload
                    self._settle(self.records[workload.id], now_ms)
                else:
                    self.records[workload.id] = Record(workload)
            case _:
                self._observe_workload(fact, now_ms)

    def _observe_workload(self, fact: seen.Observation, now_ms: int) -> None:
        name = getattr(fact, "workload", None)
        record = self.records.get(name) if isinstance(name, str) else None
        if record is None:
            return
        match fact:
            case seen.WorkloadEnded():
                record.ended = True
                self._stop(record, list(record.live), now_ms)
            case seen.SlotBinding(_, role, ordinal):
                if (replica := record.live.get((role, ordinal))) and replica.stage is Stage.HELD:
                    replica.stage = Stage.BINDING
            case seen.SlotRunning():
                self._runs(record, fact, now_ms)
            case seen.SlotFailed(_, role, ordinal, _, retry_after_ms):
                replica = record.live.get((role, ordinal))
                if replica is not None and replica.stage in (Stage.HELD, Stage.BINDING):
                    del record.live[role, ordinal]
                    record.retry_at_ms = now_ms + retry_after_ms
            case seen.SlotStopping(_, role, ordinal):
                self._stop(record, [(role, ordinal)], now_ms)
            case seen.SlotDone(_, role, ordinal):
                if (replica := record.live.get((role, ordinal))) and replica.stage is Stage.RUNNING:
                    replica.devices, replica.gpu_milli, replica.amount, replica.done = (), 0, {}, True
            case seen.SlotGone(_, role, ordinal):
                if record.leaving.pop((role, ordinal), None) is None:
                    record.live.pop((role, ordinal), None)
            case seen.ActivitySeen(_, busy_at_ms):
                record.busy_ms = min(busy_at_ms, now_ms)
            case _:
                pass
        self._settle(record, now_ms)

    def _runs(self, record: Record, fact: seen.SlotRunning, now_ms: int) -> None:
        key = (fact.role, fact.ordinal)
        if key not in record.live and key in record.leaving:
            return  # a late word about a replica that was told to stop
        replica = record.live.get(key)
        if replica is None:
            request = lines(record.spec.gang)[fact.role].role.request
            shares = shares_on(request, self.nodes[fact.node])
            milli = max((shares.get(d, 0) for d in fact.devices), default=0)
            amount = replica_amount(request, len(fact.devices), milli)
            replica = Replica(fact.role, fact.ordinal, fact.node, fact.devices, milli, amount, Stage.RUNNING)
            record.live[key] = replica
        elif fact.devices:
            replica.devices = fact.devices
        replica.stage, replica.until_ms, replica.certain = Stage.RUNNING, -1, True
        since = now_ms if fact.since_ms is None else min(fact.since_ms, now_ms)
        if record.runs_since_ms is None:
            record.runs_since_ms = since
        if record.started_ms is None and meets_minimum(record.spec.gang, _running(record)):
            record.started_ms = since

    def _lose_node(self, name: str, now_ms: int) -> None:
        self.nodes.pop(name, None)
        self.unready_ms.pop(name, None)
        self.sick_ms = {at: since for at, since in self.sick_ms.items() if at[0] != name}
        for record in list(self.records.values()):
            for replicas in (record.live, record.leaving):
                for key in [key for key, replica in replicas.items() if replica.node == name and not replica.done]:
                    del replicas[key]
                others = [replica.node for replica in record.live.values() if replica.node != name]
                for key, replica in list(replicas.items()):  # those that are done are missed by nobody
                    if replica.node == name and others:
                        replica.node = others[0]
                    elif replica.node == name:
                        del replicas[key]
            self._settle(record, now_ms)

    # -- plans ------------------------------------------------------------------------------------------------

    def carry_out(self, plan: Plan, now_ms: int) -> None:
        """Count the plan as decided: what is held is held, what is told to go is leaving."""
        for action in plan.actions:
            self.carry_out_one(action, now_ms)

    def carry_out_one(self, action: Start | Grow | Hold | Shrink | Evict | Drop | Reject, now_ms: int) -> None:
        record = self.records.get(action.workload)
        if record is None:
            return
        match action:
            case Start() | Grow():
                for placement in action.placements:
                    self._place(record, placement, Stage.HELD, now_ms + self.settings.hold_ms)
            case Hold():
                for placement in action.placements:
                    self._place(record, placement, Stage.PROMISED, action.until_ms)
            case Shrink():
                self._stop(record, list(action.slots), now_ms)
            case Drop():
                for key in action.slots:
                    record.live.pop(key, None)
            case Evict():
                self._stop(record, list(record.live), now_ms)
                record.ended = record.ended or action.final
                record.started_ms = record.lost_ms = record.short_ms = None
            case Reject():
                record.ended = True
        self._settle(record, now_ms)

    def _place(self, record: Record, placement: Placement, stage: Stage, until_ms: int) -> None:
        key = (placement.role, placement.ordinal)
        known = record.live.get(key)
        if known is not None and known.stage is Stage.PROMISED and stage is Stage.HELD:
            known.stage, known.until_ms = stage, until_ms
            return
        line = lines(record.spec.gang).get(placement.role)
        request = Request() if line is None else line.role.request
        amount = replica_amount(request, len(placement.devices), placement.gpu_milli)
        node = self.nodes.get(placement.node)
        record.live[key] = Replica(
            *key,
            placement.node,
            placement.devices,
            placement.gpu_milli,
            amount,
            stage,
            until_ms,
            certain=node is None or node.assignable or not placement.devices,
        )

    def _stop(self, record: Record, keys: list[Key], now_ms: int) -> None:
        """What runs or is being started leaves; what was only held is free at once."""
        del now_ms
        for key in keys:
            replica = record.live.pop(key, None)
            if replica is not None and replica.stage in (Stage.BINDING, Stage.RUNNING):
                replica.stage = Stage.LEAVING
                record.leaving[key] = replica

    def _settle(self, record: Record, now_ms: int) -> None:
        """Bring times in line with the replicas that are there; forget a workload that is over and gone."""
        if not any(r.stage is Stage.RUNNING for r in record.live.values()) and record.runs_since_ms is not None:
            record.ran_ms += max(0, now_ms - record.runs_since_ms)
            record.runs_since_ms = None
        present = record.present()
        if not present:
            record.started_ms = record.lost_ms = record.short_ms = None
        elif meets_minimum(record.spec.gang, present):
            record.lost_ms = None
            if meets_minimum(record.spec.gang, _running(record)):
                record.short_ms = None
        else:
            record.lost_ms = now_ms if record.lost_ms is None else record.lost_ms
            record.short_ms = now_ms if record.short_ms is None else record.short_ms
        if record.ended and not record.live and not record.leaving:
            self.records.pop(record.spec.id, None)

    # -- sums -------------------------------------------------------------------------------------------------

    def on_node(self, node: str, view: str) -> list[tuple[Record, Replica]]:
        return [
            (record, replica)
            for record in self.records.values()
            for replica in record.replicas(view)
            if replica.node == node
        ]

    def queue_use(self, paths: dict[str, list[str]], view: str) -> dict[tuple[str, str], Amount]:
        """(queue, pool) -> what it and everything below it take; `paths` are the queues above each leaf."""
        found: dict[tuple[str, str], Amount] = {}
        for record in self.records.values():
            for replica in record.replicas(view):
                pool = self.pool_of(replica.node)
                for queue in paths.get(record.spec.queue, ()) if pool is not None else ():
                    plus(found.setdefault((queue, str(pool)), {}), replica.amount)
        return found


def _running(record: Record) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for (role, ordinal), replica in record.live.items():
        if replica.stage is Stage.RUNNING:
            found.setdefault(role, set()).add(ordinal)
    return found
