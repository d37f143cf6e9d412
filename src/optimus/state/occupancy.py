"""Who holds what: slots change phase here and only here, and every count follows.

    counted in          held  held+promised  binding  running  releasing
    the *now* ledger     x         -            x        x         x
    the *coming* ledger  x         x            x        x         -

"Counted" means: against the node's room, and against every queue from the workload's own up to the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optimus.model.slots import Event, Phase, after
from optimus.state.arrays import Ints
from optimus.state.history import Use
from optimus.state.node_table import COMING, NOW
from optimus.state.resources import GPU_COLUMN

if TYPE_CHECKING:
    from optimus.state.state import State


class Occupancy:
    def __init__(self, state: State) -> None:
        self._state = state
        self._own_now: Ints = np.zeros((0, 0, 0), dtype=np.int64)
        """[queue, pool, resource], each queue without those below it; they are added up when somebody asks."""
        self._own_coming: Ints = np.zeros((0, 0, 0), dtype=np.int64)

    @property
    def used_now(self) -> Ints:
        """[queue, pool, resource], each queue with everything below it."""
        return self._state.tree.summed_up(self._own_now)

    @property
    def used_coming(self) -> Ints:
        return self._state.tree.summed_up(self._own_coming)

    # -- slots ------------------------------------------------------------------------------------------------

    def hold(
        self,
        row: int,
        role: int,
        ordinal: int,
        node: int,
        devices: Sequence[int],
        milli: int,
        *,
        promised: bool,
        until_ms: int,
        phase: Phase = Phase.HELD,
    ) -> int:
        """Give a wanted slot its place."""
        state = self._state
        request = state.workloads.signature(row).chains[role].role.request
        slot = state.slots.add()
        columns = state.slots.columns
        columns.workload[slot] = row
        columns.role[slot] = role
        columns.ordinal[slot] = ordinal
        columns.node[slot] = node
        columns.milli[slot] = milli
        columns.promised[slot] = int(promised)
        columns.phase[slot] = int(phase)
        columns.until[slot] = until_ms
        columns.amount[slot, GPU_COLUMN] = milli * len(devices)
        columns.amount[slot, 1:] = state.resources.scalars(request)
        state.slots.devices[slot] = tuple(devices)
        workload = state.workloads.columns
        if not state.workloads.slots[row]:
            workload.pool[row] = state.node_pool[node]
        state.workloads.slots[row][(role, ordinal)] = slot
        self._note_beyond(row, role, ordinal)
        state.workloads.pending.pop(row, None)
        if promised:
            workload.promised[row] += 1
        else:
            workload.held[row] += 1
        self._count(slot, 1, *([COMING] if promised else [COMING, NOW]))
        return slot

    def place(
        self,
        row: int,
        role: int,
        ordinal: int,
        node: int,
        devices: Sequence[int],
        milli: int,
        *,
        promised: bool,
        known: bool,
        until_ms: int,
        phase: Phase,
        done: bool,
    ) -> None:
        """Put a slot back in the phase it was in; only for a state that is being restored."""
        slot = self.hold(row, role, ordinal, node, devices, milli, promised=promised, until_ms=until_ms)
        if done:
            self._empty(slot)
        self._state.slots.columns.phase[slot] = int(phase)
        self._state.slots.columns.known[slot] = int(known)
        if phase == Phase.RUNNING:
            self._recount_running(row, slot, 1, 0)
        elif phase == Phase.RELEASING:
            self._leave(slot)

    def keep(self, slot: int, until_ms: int) -> None:
        """A promise comes true: its room is free and is now really held."""
        columns = self._state.slots.columns
        row = int(columns.workload[slot])
        columns.promised[slot] = 0
        columns.until[slot] = until_ms
        self._state.workloads.columns.promised[row] -= 1
        self._state.workloads.columns.held[row] += 1
        self._count(slot, 1, NOW)

    def move(self, slot: int, event: Event, now_ms: int) -> None:
        """One arrow of the state machine; an event that makes no sense in this phase is ignored."""
        columns = self._state.slots.columns
        before = Phase(int(columns.phase[slot]))
        target = after(before, event)
        if target is None or target == before:
            return
        row = int(columns.workload[slot])
        workload = self._state.workloads.columns
        if Phase.RUNNING in (before, target):
            self._state.workloads.count_service(row, now_ms)
        if target == Phase.WANTED:
            self._remove(slot, before, now_ms)
            return
        if target == Phase.RELEASING:
            columns.until[slot] = now_ms + self._state.workloads.spec(row).grace_ms
            self._leave(slot)
            if workload.lost_since[row] < 0 and self.is_short(row):
                workload.lost_since[row] = now_ms  # told by a plan? then the plan ends this attempt as well
        if before == Phase.RELEASING:
            self._come_back(slot, now_ms)
        columns.phase[slot] = int(target)
        if Phase.RUNNING in (before, target):
            self._recount_running(row, slot, 1 if target == Phase.RUNNING else -1, now_ms)

    def finish(self, slot: int, now_ms: int) -> None:
        """It has ended well: its room is free, and it counts as running as long as it has a slot."""
        state, columns = self._state, self._state.slots.columns
        if columns.phase[slot] != Phase.RUNNING or columns.done[slot]:
            return
        row = int(columns.workload[slot])
        state.workloads.count_service(row, now_ms)
        state.workloads.columns.rate[row] -= state.workloads.replica_size(columns.amount[slot])
        self._empty(slot)
        columns.sick_since[slot] = -1

    def leave_node(self, slot: int, now_ms: int) -> None:
        """The node of one that is done goes away, which its gang does not mind: it is kept with one of the others."""
        columns = self._state.slots.columns
        mine = self._state.workloads.slots[int(columns.workload[slot])].values()
        others = [int(columns.node[other]) for other in mine if columns.node[other] != columns.node[slot]]
        if others:
            columns.node[slot] = others[0]
        else:
            self.move(slot, Event.GONE, now_ms)

    def _empty(self, slot: int) -> None:
        columns = self._state.slots.columns
        self._count(slot, -1, COMING, NOW)
        columns.amount[slot] = 0
        columns.milli[slot] = 0
        columns.done[slot] = 1
        self._state.slots.devices[slot] = ()

    def rebook(self, slot: int, devices: tuple[int, ...]) -> None:
        """It is on other devices of its node than was thought."""
        state = self._state
        columns = state.slots.columns
        leaves, promised = columns.phase[slot] == Phase.RELEASING, bool(columns.promised[slot])
        ledgers = ([] if leaves else [COMING]) + ([] if promised else [NOW])
        node, milli, activity = int(columns.node[slot]), int(columns.milli[slot]), self._activity_milli(slot)
        nothing = np.zeros(state.resources.count - 1, dtype=np.int64)
        for ledger in ledgers:
            state.nodes.take(ledger, node, nothing, state.slots.devices[slot], -milli, -activity)
            state.nodes.take(ledger, node, nothing, devices, milli, activity)
        state.slots.devices[slot] = devices

    def end(self, row: int, now_ms: int) -> None:
        """The workload is over: give up what is only held, wait for the rest to go."""
        state = self._state
        state.workloads.columns.alive[row] = 0
        state.workloads.pending.pop(row, None)
        for slot in list(state.workloads.slots[row].values()):
            self.move(slot, Event.STOP, now_ms)
        if state.workloads.specs[row] is not None and not (state.workloads.slots[row] or state.workloads.leaving[row]):
            self._forget_workload(row, now_ms)

    def restart(self, row: int) -> None:
        """This attempt is over; the next one starts from the last checkpoint."""
        workload = self._state.workloads.columns
        if workload.started[row] >= 0:
            workload.restarts[row] += 1
        for name in ("started", "lost_since", "resized"):
            getattr(workload, name)[row] = -1

    def gang_changed(self, row: int, now_ms: int) -> None:
        """Its minimum or maximum is another one: what it has may be too little now, enough, or too much."""
        workloads = self._state.workloads
        if self.is_short(row):
            if workloads.columns.lost_since[row] < 0:
                workloads.columns.lost_since[row] = now_ms
        else:
            self._note_whole(row, now_ms)
        for role, ordinal in workloads.slots[row]:
            self._note_beyond(row, role, ordinal)

    # -- counts -----------------------------------------------------------------------------------------------

    def recount(self) -> None:
        """Count queues' use from nothing; after the tree, the pools or the nodes have changed."""
        state = self._state
        shape = (len(state.tree.queues), len(state.pool_views), state.resources.count)
        self._own_now = np.zeros(shape, dtype=np.int64)
        self._own_coming = np.zeros(shape, dtype=np.int64)
        slots = state.slots.columns
        rows = slots.view("workload")
        used = np.flatnonzero(rows >= 0)
        if not len(used):
            return
        pool = state.node_pool[slots.node[used]]
        stays = slots.phase[used] != Phase.RELEASING
        first_last = np.lexsort((slots.ordinal[used], slots.role[used], ~stays))[::-1]
        state.workloads.columns.pool[rows[used][first_last]] = pool[first_last]  # the pool of its first replica counts
        queue = state.workloads.columns.queue[rows[used]]
        amount = slots.amount[used]
        known = queue >= 0
        for ledger, counted in (
            (self._own_coming, known & (slots.phase[used] != Phase.RELEASING)),
            (self._own_now, known & (slots.promised[used] == 0)),
        ):
            np.add.at(ledger, (queue[counted], pool[counted]), amount[counted])

    def widen(self, resources: int) -> None:
        """Room for a resource that was never named before."""
        for name in ("_own_now", "_own_coming"):
            used: Ints = getattr(self, name)
            if used.shape[2] < resources:
                setattr(self, name, np.pad(used, ((0, 0), (0, 0), (0, resources - used.shape[2]))))

    def in_use(self) -> dict[Use, int]:
        """What is taken now, by the names of queue, pool and resource; each queue with everything below it."""
        state, used = self._state, self.used_now
        shared = state.resources.shared()
        return {
            (state.tree.queues[q].name, state.pool_views[p].pool.name, state.resources.names[r]): int(used[q, p, r])
            for q, p, r in np.argwhere(used).tolist()
            if r in shared
        }

    def _count(self, slot: int, sign: int, *ledgers: str) -> None:
        state = self._state
        columns = state.slots.columns
        amount = columns.amount[slot] if sign > 0 else -columns.amount[slot]
        node, row = int(columns.node[slot]), int(columns.workload[slot])
        milli, activity = sign * int(columns.milli[slot]), sign * self._activity_milli(slot)
        queue = int(state.workloads.columns.queue[row])
        for ledger in ledgers:
            state.nodes.take(ledger, node, amount[1:], state.slots.devices[slot], milli, activity)
            if ledger == COMING:
                state.workloads.columns.amount[row] += amount
            own = self._own_now if ledger == NOW else self._own_coming
            if 0 <= queue < len(own):
                own[queue, state.node_pool[node]] += amount

    def _activity_milli(self, slot: int) -> int:
        columns = self._state.slots.columns
        chains = self._state.workloads.signature(int(columns.workload[slot])).chains
        return chains[int(columns.role[slot])].role.request.activity_milli

    def _leave(self, slot: int) -> None:
        """From here on its room is only in use until it is gone."""
        columns, workloads = self._state.slots.columns, self._state.workloads
        row = int(columns.workload[slot])
        workloads.columns.held[row] -= 1
        workloads.columns.releasing[row] += 1
        self._count(slot, -1, COMING)
        key = (int(columns.role[slot]), int(columns.ordinal[slot]))
        workloads.leaving[row][key] = workloads.slots[row].pop(key)

    def _come_back(self, slot: int, now_ms: int) -> None:
        """It does not leave after all: who was promised its place, or its room, is promised nothing any more."""
        state, columns, workloads = self._state, self._state.slots.columns, self._state.workloads
        row, node = int(columns.workload[slot]), int(columns.node[slot])
        key = (int(columns.role[slot]), int(columns.ordinal[slot]))
        if (other := workloads.slots[row].get(key)) is not None:
            self.move(other, Event.FORGET, now_ms)
        columns.until[slot] = -1
        workloads.columns.releasing[row] -= 1
        workloads.columns.held[row] += 1
        self._count(slot, 1, COMING)
        workloads.slots[row][key] = workloads.leaving[row].pop(key)
        workloads.pending.pop(row, None)
        here = (columns.view("node") == node) & (columns.view("promised") > 0) & (columns.view("workload") >= 0)
        for promised in np.flatnonzero(here).tolist():
            if not state.nodes.is_over_promised(node):
                return
            self.move(promised, Event.FORGET, now_ms)

    def _remove(self, slot: int, before: Phase, now_ms: int) -> None:
        state = self._state
        row = int(state.slots.columns.workload[slot])
        workload = state.workloads.columns
        if before == Phase.RUNNING:
            self._recount_running(row, slot, -1, now_ms)
        self.drop(slot)
        if state.workloads.slots[row] or state.workloads.leaving[row]:
            if before != Phase.RELEASING and workload.lost_since[row] < 0 and self.is_short(row):
                workload.lost_since[row] = now_ms
        elif workload.alive[row]:
            self.restart(row)
            workload.pool[row] = -1
            state.workloads.pending[row] = None
        else:
            self._forget_workload(row, now_ms)

    def drop(self, slot: int) -> None:
        """Take a slot out of every count and out of the table."""
        state = self._state
        columns = state.slots.columns
        row = int(columns.workload[slot])
        workload = state.workloads.columns
        phase = Phase(int(columns.phase[slot]))
        promised = bool(columns.promised[slot])
        if phase == Phase.RELEASING:
            workload.releasing[row] -= 1
        elif promised:
            workload.promised[row] -= 1
        else:
            workload.held[row] -= 1
        ledgers = [COMING] * (phase != Phase.RELEASING) + [NOW] * (not promised)
        self._count(slot, -1, *ledgers)
        places = state.workloads.leaving if phase == Phase.RELEASING else state.workloads.slots
        del places[row][(int(columns.role[slot]), int(columns.ordinal[slot]))]
        state.slots.free(slot)

    def _recount_running(self, row: int, slot: int, change: int, now_ms: int) -> None:
        workload = self._state.workloads.columns
        workload.running[row] += change
        workload.rate[row] += change * self._state.workloads.replica_size(self._state.slots.columns.amount[slot])
        self._note_whole(row, now_ms)

    def _note_beyond(self, row: int, role: int, ordinal: int) -> None:
        if ordinal >= self._state.workloads.signature(row).capacity[role]:
            self._state.workloads.oversized[row] = None

    def _note_whole(self, row: int, now_ms: int) -> None:
        """Its whole minimum runs: it has begun, and lacks nothing."""
        workload = self._state.workloads.columns
        if workload.running[row] >= workload.minimum[row] and self._has_minimum(row, Phase.RUNNING):
            workload.lost_since[row] = -1
            if workload.started[row] < 0:
                workload.started[row] = now_ms

    def is_short(self, row: int) -> bool:
        """Whether it has some replicas but not its minimum; promised ones do not count."""
        return bool(self._state.workloads.columns.held[row]) and not self._has_minimum(row, Phase.HELD)

    def _has_minimum(self, row: int, least: Phase) -> bool:
        """Whether its replicas that have come at least as far as the given phase make a whole minimum."""
        slots = self._state.slots.columns
        present: dict[int, set[int]] = {}
        signature = self._state.workloads.signature(row)
        if signature.plain and least is Phase.RUNNING and row not in self._state.workloads.oversized:
            return True  # the caller has counted
        for (role, ordinal), slot in self._state.workloads.slots[row].items():
            if slots.phase[slot] >= least and not slots.promised[slot]:
                present.setdefault(role, set()).add(ordinal)
        return signature.is_whole(present)

    def _forget_workload(self, row: int, now_ms: int) -> None:
        workloads = self._state.workloads
        workloads.count_service(row, now_ms)
        spec = workloads.spec(row)
        if workloads.columns.elapsed[row] > 0:
            run_ms, work_ms = int(workloads.columns.elapsed[row]), int(workloads.columns.worked[row]) // 1000
            self._state.history.ended(spec.queue, spec.family, run_ms, work_ms, spec.speedup_percent)
        workloads.remove(row)
