"""The single mutable owner: observations in, plans assumed, snapshots out.

`apply` takes facts; what it cannot use it reports as a `Problem` and leaves out, so that one bad object never stops
the rest. `assume` counts a plan as done before the body has done it; failures come back as observations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optimus.model import observations as seen
from optimus.model.findings import Findings
from optimus.model.nodes import Node
from optimus.model.packing import PackingTables
from optimus.model.plans import Plan
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.problems import Problem
from optimus.model.queues import Queue
from optimus.model.settings import Settings
from optimus.model.slots import Event, Phase
from optimus.model.validation import node_problems, pool_problems, queue_problems, workload_problems
from optimus.state import assuming, confirming, reshaping
from optimus.state.arrays import Ints
from optimus.state.health import note_health
from optimus.state.history import History
from optimus.state.mix import Mix
from optimus.state.node_table import NodeTable
from optimus.state.occupancy import Occupancy
from optimus.state.queue_tree import UNLIMITED, QueueTree
from optimus.state.resources import ResourceIndex
from optimus.state.slot_table import SlotTable
from optimus.state.snapshot import PoolView, Snapshot, overlapping_pools, view_pools
from optimus.state.worked_out import WorkedOut
from optimus.state.workload_table import WorkloadTable


class State:
    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.version = 0
        self.now_ms = 0
        self.resources = ResourceIndex()
        self.nodes = NodeTable(self.resources)
        self.workloads = WorkloadTable(self.resources)
        self.slots = SlotTable(self.resources.count)
        self.pools: dict[str, NodePool] = {DEFAULT_POOL: NodePool(name=DEFAULT_POOL)}
        self.queues: dict[str, Queue] = {}
        self.history = History()
        self.mix = Mix()
        self.tables = PackingTables()
        self.rejected: dict[str, str] = {}
        """Workloads refused for good in this life of the state: id -> reason code."""
        self.tree = QueueTree((), (DEFAULT_POOL,), self.resources.columns)
        self.pool_views: tuple[PoolView, ...] = ()
        self.overlaps: dict[str, list[str]] = {}
        """Pool -> nodes that match it too, but belong to a pool with an earlier name."""
        self.node_pool: Ints = np.zeros(0, dtype=np.int64)
        """Pool number of each node row."""
        self.worked_out = WorkedOut()
        self.occupancy = Occupancy(self)
        self._layout_dirty = True
        self._apply: dict[type, Callable[[Any, int], list[Problem] | None]] = {
            seen.NodeSeen: self._node_seen,
            seen.NodeGone: self._node_gone,
            seen.PoolSeen: self._pool_seen,
            seen.PoolGone: self._pool_gone,
            seen.QueueSeen: self._queue_seen,
            seen.QueueGone: self._queue_gone,
            seen.WorkloadSeen: self._workload_seen,
            seen.WorkloadEnded: self._workload_ended,
            seen.SlotBinding: self._slot_binding,
            seen.SlotRunning: self._slot_running,
            seen.SlotFailed: self._slot_failed,
            seen.SlotStopping: self._slot_stopping,
            seen.SlotStays: self._slot_stays,
            seen.SlotDone: self._slot_done,
            seen.SlotGone: self._slot_gone,
            seen.Checkpointed: self._checkpointed,
            seen.SavesInTime: self._saves_in_time,
            seen.ActivitySeen: self._activity_seen,
            seen.Predicted: self._predicted,
            seen.RunRemembered: self._run_remembered,
            seen.ServiceRemembered: self._service_remembered,
            seen.UseRemembered: self._use_remembered,
            seen.TablesRefreshed: self._tables_refreshed,
            seen.Tick: lambda _observation, _now: None,
        }

    def apply(self, observation: seen.Observation, now_ms: int) -> list[Problem]:
        self.version += 1
        self.now_ms = max(self.now_ms, now_ms)
        return self._apply[type(observation)](observation, self.now_ms) or []

    def assume(self, plan: Plan, now_ms: int) -> None:
        self.version += 1
        self.now_ms = max(self.now_ms, now_ms)
        self.refresh()
        assuming.assume(self, plan, self.now_ms)

    def snapshot(self, now_ms: int) -> Snapshot:
        """Read-only views, valid until the next `apply` or `assume`."""
        self.now_ms = max(self.now_ms, now_ms)
        self.refresh()
        if self.settings.history_half_life_ms:
            self.history.remember_use(self.occupancy.in_use(), self.now_ms, self.settings.history_half_life_ms)
        return Snapshot(self)

    def refresh(self) -> None:
        """Rebuild what depends on the set of nodes, pools and queues, if it changed."""
        if not self._layout_dirty:
            return
        self._layout_dirty = False
        self.worked_out.forget()
        names = sorted(self.pools)
        self.tree = QueueTree(self.queues.values(), names, self.resources.columns)
        self.pool_views, self.node_pool = view_pools(self.nodes, [self.pools[name] for name in names])
        pools = [self.pools[name] for name in names]
        self.overlaps = (
            overlapping_pools([n for n in self.nodes.nodes if n is not None], pools) if len(pools) > 1 else {}
        )
        for row in self.workloads.row_of.values():
            self._join_queue(row)
        self.occupancy.recount()

    def _join_queue(self, row: int) -> None:
        """Its place in the tree, and the priority it has there."""
        spec, columns = self.workloads.spec(row), self.workloads.columns
        queue = columns.queue[row] = self.tree.index.get(spec.queue, -1)
        most = self.tree.max_priority[queue] if queue >= 0 else UNLIMITED
        columns.priority[row] = min(spec.effective_priority, most)

    def _widen(self, known: int) -> None:
        """A resource was named for the first time: every table gets a column for it at once."""
        if self.resources.count != known:
            self._layout_dirty = True
            self.widen()

    def widen(self) -> None:
        """Columns for every resource that has a name by now."""
        self.nodes.widen_scalars()
        self.slots.columns.widen("amount", self.resources.count)
        self.workloads.columns.widen("amount", self.resources.count)
        self.occupancy.widen(self.resources.count)

    def _node_seen(self, observation: seen.NodeSeen, now_ms: int) -> list[Problem]:
        problems = node_problems(observation.node)
        if problems:
            return problems
        known = self.resources.count
        old: Node | None = None
        row = self.nodes.row_of.get(observation.node.name)
        if row is not None:
            old = self.nodes.nodes[row]
        row = self.nodes.put(observation.node, now_ms)
        if not observation.node.assignable:
            confirming.rebook_unknown(self, row)
        if old != observation.node:
            self._layout_dirty = True
            note_health(self, row, now_ms, old)
        self._widen(known)
        return []

    def _node_gone(self, observation: seen.NodeGone, now_ms: int) -> list[Problem] | None:
        row = self.nodes.row_of.get(observation.name)
        if row is None:
            return [Problem(f"node {observation.name}", "", "went away but was never seen")]
        there = np.flatnonzero(self.slots.columns.view("node") == row).tolist()
        for slot in there:
            if not self.slots.columns.done[slot]:
                self.occupancy.move(slot, Event.GONE, now_ms)
        for slot in there:
            if self.slots.columns.done[slot]:
                self.occupancy.leave_node(slot, now_ms)
        self.nodes.remove(observation.name)
        self._layout_dirty = True
        return None

    def _pool_seen(self, observation: seen.PoolSeen, _now: int) -> list[Problem]:
        problems = pool_problems(observation.pool)
        if not problems:
            self.pools[observation.pool.name] = observation.pool
            self._layout_dirty = True
        return problems

    def _pool_gone(self, observation: seen.PoolGone, _now: int) -> None:
        self.pools.pop(observation.name, None)
        self.pools.setdefault(DEFAULT_POOL, NodePool(name=DEFAULT_POOL))
        self._layout_dirty = True

    def _queue_seen(self, observation: seen.QueueSeen, _now: int) -> list[Problem]:
        problems = queue_problems(observation.queue)
        if problems:
            return problems
        known = self.resources.count
        self.queues[observation.queue.name] = observation.queue
        for quota in observation.queue.quotas:
            for resource in quota.resources:
                self.resources.column(resource)
        self._layout_dirty = True
        self._widen(known)
        return []

    def _queue_gone(self, observation: seen.QueueGone, _now: int) -> None:
        self.queues.pop(observation.name, None)
        self._layout_dirty = True

    def _workload_seen(self, observation: seen.WorkloadSeen, now_ms: int) -> list[Problem] | None:
        workload = observation.workload
        problems = workload_problems(workload)
        if problems:
            return problems
        row = self.workloads.row_of.get(workload.id)
        before = self.workloads.spec(row).gang if row is not None and self.workloads.slots[row] else None
        roles = tuple(self.workloads.signature(row).role_index) if row is not None else ()
        if row is not None and not reshaping.may_become(self, row, workload.gang):
            message = (
                "roles, their requests and the sizes of inner groups cannot change while it has replicas; "
                "suspend it first"
            )
            return [Problem(f"workload {workload.id}", "gang", message)]
        known = self.resources.count
        is_new = row is None
        if row is not None and self.workloads.spec(row).queue != workload.queue:
            self._layout_dirty = True  # what it holds counts in another queue from now on
        if row is not None and self.workloads.spec(row).speedup_percent != workload.speedup_percent:
            self.workloads.count_service(row, now_ms)  # until now it went as fast as was known before
        if row is not None:
            reshaping.leave_roles(self, row, workload.gang, now_ms)
        row = self.workloads.put(workload)
        reshaping.renumber(self, row, roles)
        if before not in (None, workload.gang):
            self.occupancy.gang_changed(row, now_ms)
        if is_new:
            self.rejected.pop(workload.id, None)
            self.mix.arrived(self.workloads.signature(row))
        self._widen(known)
        self._join_queue(row)
        if not self.workloads.columns.counted_at[row]:
            self.workloads.columns.counted_at[row] = now_ms
        return None

    def _workload_ended(self, observation: seen.WorkloadEnded, now_ms: int) -> list[Problem] | None:
        row = self.workloads.row_of.get(observation.workload)
        if row is None:
            return None
        self.occupancy.end(row, now_ms)
        return None

    def _slot_row(self, observation: Any, *, leaving_first: bool = False) -> int | None:
        row = self.workloads.row_of.get(observation.workload)
        if row is None:
            return None
        role = self.workloads.signature(row).role_index.get(observation.role)
        if role is None:
            return None
        places = [self.workloads.slots[row], self.workloads.leaving[row]]
        if leaving_first:
            places.reverse()
        key = (role, observation.ordinal)
        return places[0].get(key, places[1].get(key))

    def _slot_binding(self, observation: seen.SlotBinding, now_ms: int) -> None:
        slot = self._slot_row(observation)
        if slot is not None:
            self.occupancy.move(slot, Event.BIND, now_ms)

    def _slot_running(self, observation: seen.SlotRunning, now_ms: int) -> list[Problem] | None:
        problems = confirming.confirm(self, observation, self._slot_row(observation), now_ms)
        slot = self._slot_row(observation)
        if slot is not None:
            note_health(self, int(self.slots.columns.node[slot]), now_ms)
        return problems

    def _slot_failed(self, observation: seen.SlotFailed, now_ms: int) -> None:
        row = self.workloads.row_of.get(observation.workload)
        if row is None:
            return
        slot = self._slot_row(observation)
        if slot is not None:
            begun = self.slots.columns.phase[slot] not in (Phase.HELD, Phase.BINDING)
            self.occupancy.move(slot, Event.GONE if begun else Event.FORGET, now_ms)
        self.workloads.columns.retry_at[row] = now_ms + observation.retry_after_ms
        self.workloads.failures[row] = observation.failure or "the body could not start it"

    def _slot_stopping(self, observation: seen.SlotStopping, now_ms: int) -> None:
        slot = self._slot_row(observation)
        if slot is not None:
            self.occupancy.move(slot, Event.STOP, now_ms)

    def _slot_stays(self, observation: seen.SlotStays, now_ms: int) -> None:
        row, slot = self.workloads.row_of.get(observation.workload), self._slot_row(observation, leaving_first=True)
        if row is None or slot is None or not self.workloads.columns.alive[row]:
            return
        self.occupancy.move(slot, Event.STAY, now_ms)
        self.workloads.columns.stays_until[row] = now_ms + observation.retry_after_ms

    def _slot_done(self, observation: seen.SlotDone, now_ms: int) -> None:
        slot = self._slot_row(observation)
        if slot is not None:
            self.occupancy.finish(slot, now_ms)

    def _slot_gone(self, observation: seen.SlotGone, now_ms: int) -> None:
        slot = self._slot_row(observation, leaving_first=True)
        if slot is not None and not self.slots.columns.promised[slot]:
            self.occupancy.move(slot, Event.GONE, now_ms)

    def _checkpointed(self, observation: seen.Checkpointed, now_ms: int) -> None:
        row = self.workloads.row_of.get(observation.workload)
        if row is not None:
            self.workloads.columns.checkpoint_at[row] = min(observation.at_ms, now_ms)

    def _saves_in_time(self, observation: seen.SavesInTime, _now: int) -> None:
        row = self.workloads.row_of.get(observation.workload)
        if row is not None:
            self.workloads.columns.saves_in_time[row] = int(observation.yes)

    def _activity_seen(self, observation: seen.ActivitySeen, now_ms: int) -> None:
        row = self.workloads.row_of.get(observation.workload)
        if row is not None:
            self.workloads.columns.busy_at[row] = min(observation.busy_at_ms, now_ms)

    def _predicted(self, observation: seen.Predicted, _now: int) -> None:
        row = self.workloads.row_of.get(observation.workload)
        if row is not None and self.workloads.spec(row).expected_duration_ms is None:
            self.workloads.columns.expected[row] = max(0, observation.duration_ms)

    def _run_remembered(self, observation: seen.RunRemembered, _now: int) -> list[Problem]:
        found = Findings(f"run of queue {observation.queue}")
        found.amount("run_ms", observation.run_ms, least=1)
        if found.problems:
            return found.problems
        self.history.ended(observation.queue, observation.family, observation.run_ms, max(observation.work_ms, 0))
        return []

    def _service_remembered(self, observation: seen.ServiceRemembered, now_ms: int) -> None:
        """It replaces what was counted so far; from that moment on it is counted as ever."""
        row = self.workloads.row_of.get(observation.workload)
        if row is None:
            return
        columns = self.workloads.columns
        columns.elapsed[row] = max(observation.elapsed_ms, 0)
        columns.attained[row] = max(observation.attained, 0)
        columns.worked[row] = max(observation.worked, 0)
        columns.counted_at[row] = max(int(columns.counted_at[row]), min(observation.at_ms, now_ms))

    def _use_remembered(self, observation: seen.UseRemembered, now_ms: int) -> list[Problem] | None:
        if not (observation.amount.isascii() and observation.amount.isdigit()):
            return [Problem(f"past use of queue {observation.queue}", "amount", f"is no number: {observation.amount}")]
        self.history.past_use[observation.queue, observation.pool, observation.resource] = int(observation.amount)
        self.history.past_use_at = max(self.history.past_use_at, min(observation.at_ms, now_ms))
        return None

    def _tables_refreshed(self, observation: seen.TablesRefreshed, _now: int) -> None:
        self.tables = observation.tables
        self.worked_out.forget()
