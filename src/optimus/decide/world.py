"""The world while a plan is being made: copies of what changes, views of what does not, and the actions so far.

Every action is applied here exactly as `State.assume` will apply it. That is what makes a plan idempotent: the cycle
goes on until nothing more is to be done in this world, and the next cycle starts from the same world.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from optimus.decide.asks import Ask
from optimus.decide.boards import Board, Ledger
from optimus.decide.durations import end_ms
from optimus.decide.placement.scoring import Scorer
from optimus.decide.placement.seating import Seating, Tries
from optimus.decide.placement.shapes import Shape, build_shape, shape_key
from optimus.decide.policies.policy import Policy
from optimus.model.plans import Action, Budget, Condition, Drop, Evict, Grow, Hold, Placement, Reject, Shrink, Start
from optimus.model.reasons import Reason
from optimus.model.slots import Phase
from optimus.model.workloads import Preemptible, Role, Workload
from optimus.state.arrays import Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.snapshot import Snapshot
from optimus.state.workload_table import PREEMPTIBLE_CODE, Signature

NEVER_TAKEN = PREEMPTIBLE_CODE[Preemptible.NO]
MINIMUM_KEPT = PREEMPTIBLE_CODE[Preemptible.SURPLUS]


@dataclass(slots=True)
class Draft:
    """What this plan has done to one workload so far."""

    change: Ints
    """By resource: what it holds more or less than in the snapshot."""
    added: list[tuple[Seating, bool]] = field(default_factory=list)
    """Seats and whether they are only promised."""
    removed: set[int] = field(default_factory=set)
    """Slots of the snapshot that were stopped or dropped."""
    evicted: bool = False
    """Told to stop; it waits again only when its last replica has ended."""
    start: int | None = None
    """Number of the action that started it, so that it can be taken back."""
    resized: bool = False


class World:
    def __init__(self, snapshot: Snapshot, policy: Policy, now_ms: int, budget: Budget) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.now_ms = now_ms
        self.budget = budget
        self.settings = snapshot.settings
        self.table = snapshot.workloads
        self.columns = snapshot.workloads.columns
        self.slots = snapshot.slots.columns
        self.tree = snapshot.tree
        self.conditions: list[Condition] = []
        self.unreached: set[str] = set()
        self.scorer = Scorer(snapshot.tables, snapshot.resources, policy)
        self.gap = self.scorer.gap
        self.boards = [Board(snapshot, view, self.scorer.score) for view in snapshot.pools]
        self.node_index: Ints = np.zeros(len(snapshot.node_pool), dtype=np.int64)
        for view in snapshot.pools:
            self.node_index[view.rows] = np.arange(view.size)
        self.used_now = snapshot.used_now.copy()
        self.used_coming = snapshot.used_coming.copy()
        self.tries = Tries(budget.trial_fits)
        self.drafts: dict[int, Draft] = {}
        self.requeued: list[int] = []
        """Workloads that only held room and gave it up: they wait again at once."""
        self.lowest_started: dict[int, int] = {}
        """By queue: the lowest priority among the workloads this plan starts."""
        self.kept: set[int] = set()
        """Workloads whose promise was kept in this plan."""
        self._actions: list[Action | None] = []
        self._version = 0
        self.departures = 0
        """How often others were told to leave so far."""
        self._asks: dict[int, Ask] = {}
        self._shapes: dict[tuple[object, ...], Shape] = {}
        self._shape_keys = 0
        self.fixed = self._fixed_use()
        """[queue, pool, resource] taken by work that must stay inside the guarantee."""

    # -- reading ----------------------------------------------------------------------------------------------

    def spec(self, row: int) -> Workload:
        return self.table.spec(row)

    def signature(self, row: int) -> Signature:
        return self.table.signature(row)

    def ask(self, row: int) -> Ask:
        return self.ask_of_signature(int(self.columns.signature[row]))

    def ask_of_signature(self, number: int) -> Ask:
        found = self._asks.get(number)
        if found is None:
            signature = self.table.signatures[number]
            assert signature is not None
            found = self._asks[number] = Ask(self, signature)
        return found

    def shape(self, workload: Workload, role: Role, pool: int) -> Shape:
        view = self.boards[pool].view
        key = (pool, *shape_key(workload, role.request, view.pool.strategy_for(workload.workload_class)))
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = build_shape(workload, role.request, view, self.snapshot.resources)
            found.key = self.next_shape_key()
        return found

    def next_shape_key(self) -> int:
        self._shape_keys += 1
        return self._shape_keys

    def ordering_columns(self, amount: Ints) -> list[int]:
        """The resources by which shares and guarantees of this work are measured: GPUs if it has any, else its named
        accelerators, else CPU and memory."""
        if amount[GPU_COLUMN]:
            return [GPU_COLUMN]
        named = [c for c in range(CPU_COLUMN + 2, len(amount)) if amount[c]]
        return named or [CPU_COLUMN, CPU_COLUMN + 1]

    def slots_of(self, row: int) -> list[int]:
        """Slots of the snapshot that the workload still holds in this plan, in a stable order."""
        draft = self.drafts.get(row)
        held = sorted(self.table.slots[row].items())
        return [slot for _, slot in held if draft is None or slot not in draft.removed]

    def present(self, row: int) -> dict[int, set[int]]:
        """Replicas that exist or are promised, by role. Replicas on their way out are not there any more."""
        found: dict[int, set[int]] = {}
        for slot in self.slots_of(row):
            found.setdefault(int(self.slots.role[slot]), set()).add(int(self.slots.ordinal[slot]))
        draft = self.drafts.get(row)
        for seating, _ in draft.added if draft else ():
            for seats in seating.seats:
                found.setdefault(seats.role_index, set()).update(seats.ordinals)
        return found

    def blocked_ordinals(self, row: int) -> dict[int, set[int]]:
        """Ordinals that may not be used again yet: their old replica is still leaving."""
        found: dict[int, set[int]] = {}
        for role, ordinal in self.table.leaving[row]:
            found.setdefault(role, set()).add(ordinal)
        draft = self.drafts.get(row)
        for slot in draft.removed if draft else ():
            found.setdefault(int(self.slots.role[slot]), set()).add(int(self.slots.ordinal[slot]))
        return found

    def held_amount(self, row: int) -> Ints:
        """What it holds or is promised in this plan, by resource."""
        draft = self.drafts.get(row)
        held: Ints = self.columns.amount[row] if draft is None else self.columns.amount[row] + draft.change
        return held

    def draft(self, row: int) -> Draft:
        found = self.drafts.get(row)
        if found is None:
            found = self.drafts[row] = Draft(np.zeros(self.used_now.shape[2], dtype=np.int64))
        return found

    def actions(self) -> tuple[Action, ...]:
        return tuple(action for action in self._actions if action is not None)

    def acted(self) -> int:
        """Changes with everything that is done; equal numbers mean that nothing has happened in between."""
        return self._version

    # -- acting -----------------------------------------------------------------------------------------------

    def start(self, row: int, seating: Seating) -> None:
        self._add(row, seating, promised=False)
        self.draft(row).start = len(self._actions)
        queue, priority = int(self.columns.queue[row]), int(self.columns.priority[row])
        self.lowest_started[queue] = min(priority, self.lowest_started.get(queue, priority))
        pool = self.boards[seating.pool].view.pool.name
        self._act(Start(self.spec(row).id, pool, self.placements(row, seating)))

    def grow(self, row: int, seating: Seating) -> None:
        self.add_growth(row, seating)
        self.record_growth(row, [seating])

    def add_growth(self, row: int, seating: Seating) -> None:
        """Take the room of one step of growth; `record_growth` puts all steps of a workload into one action."""
        self._add(row, seating, promised=False)
        self.draft(row).resized = True

    def record_growth(self, row: int, seatings: list[Seating]) -> None:
        placements = tuple(p for seating in seatings for p in self.placements(row, seating))
        start = self.draft(row).start
        if start is None:
            self._act(Grow(self.spec(row).id, placements))
            return
        begun = self._actions[start]
        assert isinstance(begun, Start)
        self._actions[start] = Start(begun.workload, begun.pool, begun.placements + placements)
        self._version += 1

    def promise(self, row: int, seating: Seating, until_ms: int, waits_for: list[str]) -> None:
        self._add(row, seating, promised=True)
        pool = self.boards[seating.pool].view.pool.name
        self._act(Hold(self.spec(row).id, pool, self.placements(row, seating), until_ms, tuple(waits_for)))

    def keep_promise(self, row: int, slots: list[int], *, grows: bool) -> None:
        """The room of promised slots is free: hold it for real."""
        self.kept.add(row)
        placements = []
        roles = self.signature(row).chains
        for slot in slots:
            self._change_slot(slot, 1, now=True, coming=False)
            placements.append(self.slot_placement(slot, roles[int(self.slots.role[slot])].role.name))
        if grows:
            self._act(Grow(self.spec(row).id, tuple(placements)))
        else:
            pool = self.boards[self.pool_of_slot(slots[0])].view.pool.name
            self._act(Start(self.spec(row).id, pool, tuple(placements)))

    def evict(
        self, row: int, cause: Reason, *, beneficiary: str = "", moved: bool = False, final: bool = False
    ) -> None:
        draft = self.draft(row)
        if draft.start is not None:
            self._take_back_start(row, draft)
            return
        self._count_fixed(row, -1)
        slots = self.slots_of(row)
        for slot in slots:
            self._stop_slot(slot)
        draft.removed.update(slots)
        draft.evicted = moved or final or bool(self.table.leaving[row]) or any(self._runs(slot) for slot in slots)
        if not draft.evicted:
            self.requeued.append(row)
        spec = self.spec(row)
        grace = spec.checkpoint.grace_ms if spec.checkpoint else 0
        self._act(Evict(spec.id, cause, grace, beneficiary, moved, final))

    def shrink(self, row: int, slots: list[int], cause: Reason, beneficiary: str = "") -> None:
        for slot in slots:
            self._stop_slot(slot)
        self.draft(row).removed.update(slots)
        self.draft(row).resized = True
        self._act(Shrink(self.spec(row).id, self._names(row, slots), cause, beneficiary))

    def drop(self, row: int, slots: list[int], cause: Reason) -> None:
        """Give up held or promised places; nothing runs there."""
        if len(slots) == len(self.slots_of(row)):
            self._count_fixed(row, -1)
            if not self.table.leaving[row]:
                self.requeued.append(row)
        for slot in slots:
            self._stop_slot(slot)
        self.draft(row).removed.update(slots)
        self._act(Drop(self.spec(row).id, self._names(row, slots), cause))

    def reject(self, row: int, cause: Reason) -> None:
        self._act(Reject(self.spec(row).id, cause))

    def leaving_from(self, pool: int, nodes: set[int]) -> list[str]:
        """Workloads on their way out of these nodes, by name."""
        leaving = np.flatnonzero(self.slots.view("phase") == Phase.RELEASING)
        rows = set(self.boards[pool].view.rows[sorted(nodes)].tolist())
        found = {int(self.slots.workload[slot]) for slot in leaving if int(self.slots.node[slot]) in rows}
        for row, draft in self.drafts.items():
            if any(int(self.slots.node[slot]) in rows for slot in draft.removed):
                found.add(row)
        return sorted(self.spec(row).id for row in found)

    def pool_of_slot(self, slot: int) -> int:
        return int(self.snapshot.node_pool[self.slots.node[slot]])

    # -- inside -----------------------------------------------------------------------------------------------

    def _act(self, action: Action) -> None:
        self._actions.append(action)
        self._version += 1
        self.departures += isinstance(action, Evict | Shrink)

    def _add(self, row: int, seating: Seating, *, promised: bool) -> None:
        draft = self.draft(row)
        if not self.slots_of(row) and not draft.added:
            self._count_fixed_start(row, seating)
        elif self.columns.preemptible[row] == NEVER_TAKEN:
            self._count_fixed_amount(row, seating.pool, seating.amount())
        draft.added.append((seating, promised))
        draft.change += seating.amount()
        board = self.boards[seating.pool]
        board.change(seating, 1, now=not promised, shadows=self._outlasted(board, row))
        self._count_seating(row, seating, 1, promised)

    def _take_back_start(self, row: int, draft: Draft) -> None:
        """A start of this very plan is in the way: it is simply not done."""
        assert draft.start is not None
        self._actions[draft.start] = None
        self._version += 1
        self.departures += 1
        for seating, promised in draft.added:
            board = self.boards[seating.pool]
            board.change(seating, -1, now=not promised, shadows=self._outlasted(board, row))
            self._count_seating(row, seating, -1, promised)
        self._count_fixed(row, -1)
        del self.drafts[row]

    def _outlasted(self, board: Board, row: int) -> list[Ledger]:
        if not board.shadows:
            return []
        return [shadow.ledger for shadow in board.outlasted(end_ms(self, row))]

    def _count_seating(self, row: int, seating: Seating, sign: int, promised: bool) -> None:
        queue = int(self.columns.queue[row])
        amount = sign * seating.amount()
        for seats in seating.seats:
            if seats.shape.activity_milli:
                activity = self.boards[seating.pool].activity
                for node, devices in zip(seats.nodes, seats.devices, strict=True):
                    activity[node, list(devices)] += sign * seats.shape.activity_milli
        if queue >= 0:
            path = self.tree.paths[queue]
            self.used_coming[path, seating.pool] += amount
            if not promised:
                self.used_now[path, seating.pool] += amount

    def _runs(self, slot: int) -> bool:
        return int(self.slots.phase[slot]) in (Phase.BINDING, Phase.RUNNING)

    def waits(self, row: int) -> bool:
        """Whether it still has to be given room in this plan."""
        draft = self.drafts.get(row)
        return draft is None or not (draft.evicted or draft.added)

    def _stop_slot(self, slot: int) -> None:
        immediate = int(self.slots.phase[slot]) == Phase.HELD and not self.slots.promised[slot]
        self.draft(int(self.slots.workload[slot])).change -= self.slots.amount[slot]
        self._change_slot(slot, -1, now=immediate, coming=True)

    def _change_slot(self, slot: int, sign: int, *, now: bool, coming: bool) -> None:
        pool = self.pool_of_slot(slot)
        board = self.boards[pool]
        node = int(self.node_index[self.slots.node[slot]])
        amount = self.slots.amount[slot]
        board.change_slot(
            node,
            sign * amount[1:],
            self.snapshot.slots.devices[slot],
            sign * int(self.slots.milli[slot]),
            now=now,
            coming=coming,
            shadows=self._outlasted(board, int(self.slots.workload[slot])) if coming else [],
        )
        queue = int(self.columns.queue[self.slots.workload[slot]])
        if queue >= 0:
            path = self.tree.paths[queue]
            if now:
                self.used_now[path, pool] += sign * amount
            if coming:
                self.used_coming[path, pool] += sign * amount

    def _fixed_use(self) -> Ints:
        fixed = np.zeros_like(self.used_now)
        self.fixed = fixed
        kinds = self.columns.view("preemptible")
        holding = self.columns.view("held") + self.columns.view("promised") > 0
        for row in np.flatnonzero(((kinds == NEVER_TAKEN) | (kinds == MINIMUM_KEPT)) & holding):
            self._count_fixed(int(row), 1)
        return fixed

    def fixed_amount(self, row: int, pool: int) -> Ints:
        """What of the workload must stay inside the guarantee when it starts at its minimum."""
        if self.columns.preemptible[row] in (NEVER_TAKEN, MINIMUM_KEPT):
            return self.ask(row).least_amount(pool)
        return np.zeros(self.snapshot.resources.count, dtype=np.int64)

    def _count_fixed(self, row: int, sign: int) -> None:
        """Add or remove all that the workload holds of the guarantee."""
        kind = self.columns.preemptible[row]
        pool = int(self.columns.pool[row])
        draft = self.drafts.get(row)
        if draft is not None and draft.added:
            pool = draft.added[0][0].pool
        if kind == NEVER_TAKEN:
            self._count_fixed_amount(row, pool, sign * self.held_amount(row))
        elif kind == MINIMUM_KEPT:
            self._count_fixed_amount(row, pool, sign * self.ask(row).least_amount(pool))

    def _count_fixed_start(self, row: int, seating: Seating) -> None:
        kind = self.columns.preemptible[row]
        if kind == NEVER_TAKEN:
            self._count_fixed_amount(row, seating.pool, seating.amount())
        elif kind == MINIMUM_KEPT:
            self._count_fixed_amount(row, seating.pool, self.ask(row).least_amount(seating.pool))

    def _count_fixed_amount(self, row: int, pool: int, amount: Ints) -> None:
        queue = int(self.columns.queue[row])
        if queue >= 0:
            self.fixed[self.tree.paths[queue], pool] += amount

    def placements(self, row: int, seating: Seating) -> tuple[Placement, ...]:
        view = self.boards[seating.pool].view
        chains = self.signature(row).chains
        return tuple(
            Placement(
                chains[seats.role_index].role.name,
                ordinal,
                view.nodes[node].name,
                devices,
                milli,
                bool(view.assignable[node]),
            )
            for seats in seating.seats
            for ordinal, node, devices, milli in zip(
                seats.ordinals, seats.nodes, seats.devices, seats.milli, strict=True
            )
        )

    def slot_placement(self, slot: int, role: str) -> Placement:
        view = self.boards[self.pool_of_slot(slot)].view
        node = int(self.node_index[self.slots.node[slot]])
        return Placement(
            role,
            int(self.slots.ordinal[slot]),
            view.nodes[node].name,
            self.snapshot.slots.devices[slot],
            int(self.slots.milli[slot]),
            bool(view.assignable[node]),
        )

    def _names(self, row: int, slots: list[int]) -> tuple[tuple[str, int], ...]:
        chains = self.signature(row).chains
        return tuple((chains[int(self.slots.role[s])].role.name, int(self.slots.ordinal[s])) for s in slots)
