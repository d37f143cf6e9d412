"""The world while a plan is being made: copies of what changes, views of what does not, and the actions so far.

Every action is applied here exactly as `State.assume` will apply it. That is what makes a plan idempotent: the cycle
goes on until nothing more is to be done in this world, and the next cycle starts from the same world.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import structs

from optimus.decide.asks import Ask
from optimus.decide.boards import Board, Ledger
from optimus.decide.drafts import Addition, Draft, Script
from optimus.decide.durations import end_ms
from optimus.decide.placement.scoring import Scorer, Tables
from optimus.decide.placement.seating import Seating, Seats, Tries
from optimus.decide.placement.shapes import Shape, build_shape, shape_key
from optimus.decide.policies.policy import Policy
from optimus.model.plans import Budget, Condition, Drop, Evict, Grow, Hold, Placement, Reject, Shrink, Start
from optimus.model.reasons import Reason
from optimus.model.slots import Phase
from optimus.model.workloads import Preemptible, Role, Workload
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.snapshot import PoolView, Snapshot
from optimus.state.workload_table import PREEMPTIBLE_CODE, Signature

NEVER_TAKEN = PREEMPTIBLE_CODE[Preemptible.NO]
MINIMUM_KEPT = PREEMPTIBLE_CODE[Preemptible.SURPLUS]


class World:
    def __init__(self, snapshot: Snapshot, policy: Policy, now_ms: int, budget: Budget, seed: int = 0) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.now_ms = now_ms
        self.budget = budget
        self.seed = seed
        """For policies: no rule of the brain draws lots."""
        self.settings = snapshot.settings
        self.table = snapshot.workloads
        self.columns = snapshot.workloads.columns
        self.slots = snapshot.slots.columns
        self.tree = snapshot.tree
        self.conditions: list[Condition] = []
        self.unreached: set[str] = set()
        tables = snapshot.worked_out.once("tables", lambda: Tables(snapshot.tables, snapshot.resources))
        self.scorer = Scorer(tables, policy)
        self.gap = tables.gap
        self.boards: list[Board] = []
        self.boards += [Board(snapshot, view, self.scorer.score, self.boards) for view in snapshot.pools]
        self.node_index: Ints = np.zeros(len(snapshot.node_pool), dtype=np.int64)
        for view in snapshot.pools:
            self.node_index[view.rows] = np.arange(view.size)
        self.strays = self._strays()
        """Slots on a node that was given to another pool under its workload."""
        self._used = np.stack((snapshot.used_coming, snapshot.used_now))
        self.used_coming: Ints = self._used[0]
        self.used_now: Ints = self._used[1]
        self.tries = Tries(budget.trial_fits)
        self.drafts: dict[int, Draft] = {}
        self.refused: set[int] = set()
        """Workloads that cannot be considered at all, whatever room there is."""
        self.ended: set[int] = set()
        """Workloads that are evicted or refused for good."""
        self.requeued: list[int] = []
        """Workloads that only held room and gave it up: they wait again at once."""
        self.regretted: set[int] = set()
        """Workloads whose start was taken back after others had been stopped beside it: perhaps for nothing."""
        self.lowest_started: dict[int, int] = {}
        """By queue: the lowest priority among the workloads this plan starts."""
        self.find_standing: Callable[[], None] | None = None
        """Fills the two below when somebody finds no room: most cycles never need them."""
        self.standing: dict[int, int] = {}
        """Place in line of workloads whose queue takes turns, waiting and running alike; lower is earlier."""
        self.turns: dict[int, int] = {}
        """Of the same: how many running workloads of its queue stand behind it and give their turn. Empty as long as
        nobody has asked (`turns_to_take`)."""
        rows = self.columns.size
        self.line_facts = np.zeros(rows, dtype=np.bool_), np.zeros((3, rows), dtype=np.int64)
        """By row: whether its size, mean and high run time are worked out; and those."""
        self.script = Script()
        self._asks: dict[int, Ask] = {}
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
        key = (pool, *shape_key(workload, role, view.pool.strategy_for(workload.workload_class)))
        return self.snapshot.worked_out.once(("shape", *key), lambda: self._build_shape(workload, role, view))

    def _build_shape(self, workload: Workload, role: Role, view: PoolView) -> Shape:
        shape = build_shape(workload, role, view, self.snapshot)
        shape.key = self.next_shape_key()
        return shape

    def next_shape_key(self) -> int:
        return self.snapshot.worked_out.next_number()

    def ordering_columns(self, amount: Ints) -> list[int]:
        """The resources by which shares and guarantees of this work are measured: GPUs if it has any, else its named
        accelerators, else CPU and memory."""
        if amount[GPU_COLUMN]:
            return [GPU_COLUMN]
        named = [c for c in self.snapshot.resources.named() if amount[c]]
        return named or [CPU_COLUMN, CPU_COLUMN + 1]

    def measures(self, queue: int, pool: int, amount: Ints) -> list[int]:
        """Of those, the resources that the queue names there: what it does not name takes care of itself. All of them
        where it names none, because then it is due nothing."""
        columns = self.ordering_columns(amount)
        if len(columns) == 1:
            return columns
        return [c for c in columns if self.tree.named[queue, pool, c]] or columns

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
        for addition in self.additions_of(row):
            for seats in addition.seating.seats:
                found.setdefault(seats.role_index, set()).update(seats.ordinals)
        return found

    def additions_of(self, row: int) -> list[Addition]:
        draft = self.drafts.get(row)
        return draft.additions if draft is not None else []

    def holds(self, row: int) -> bool:
        """Whether it has any room in this plan, real or promised."""
        return bool(self.additions_of(row)) or bool(self.slots_of(row))

    def is_new(self, row: int) -> bool:
        """Whether this very plan starts it."""
        draft = self.drafts.get(row)
        return draft is not None and draft.start is not None

    def waits(self, row: int) -> bool:
        """Whether it still has to be given room in this plan."""
        draft = self.drafts.get(row)
        return draft is None or not (draft.evicted or draft.additions or draft.kept)

    def turns_to_take(self, row: int) -> int:
        """How many running workloads of its queue stand behind it and give their turn."""
        if self.find_standing is not None:
            find, self.find_standing = self.find_standing, None
            find()
        return self.turns.get(row, 0)

    def awaits_room(self, row: int) -> bool:
        """Whether room is promised to it that it does not have in this plan yet."""
        kept = self.drafts[row].kept if row in self.drafts else ()
        return any(self.slots.promised[slot] and slot not in kept for slot in self.slots_of(row)) or any(
            addition.promised for addition in self.additions_of(row)
        )

    def is_changing(self, row: int) -> bool:
        """Whether this plan does something to running work, or an earlier one did and it is not done yet."""
        columns = self.columns
        under_way = columns.running[row] != columns.held[row] or columns.promised[row] > 0 or columns.releasing[row] > 0
        return row in self.drafts or bool(under_way)

    def under_way(self) -> Bools:
        """By row: whether an earlier plan did something to the work, and it is not done yet."""
        columns = self.columns
        changing: Bools = columns.view("running") != columns.view("held")
        return changing | (columns.view("promised") > 0) | (columns.view("releasing") > 0)

    def blocked_ordinals(self, row: int) -> dict[int, set[int]]:
        """Ordinals that may not be used again yet: their old replica is still leaving."""
        found: dict[int, set[int]] = {}
        for role, ordinal in self.table.leaving[row]:
            found.setdefault(role, set()).add(ordinal)
        draft = self.drafts.get(row)
        for slot in draft.removed if draft else ():
            if int(self.slots.phase[slot]) not in (Phase.BINDING, Phase.RUNNING):
                continue  # nothing ran there: it is gone at once
            found.setdefault(int(self.slots.role[slot]), set()).add(int(self.slots.ordinal[slot]))
        return found

    def lost_since(self, row: int) -> int:
        """Since when it has some replicas but not its minimum; -1 if it is whole or has none."""
        draft = self.drafts.get(row)
        since = int(self.columns.lost_since[row])
        if draft is None or since >= 0 or not draft.removed:
            return since
        present: dict[int, set[int]] = {}
        for slot in self.slots_of(row):
            if not self.slots.promised[slot] or slot in draft.kept:
                present.setdefault(int(self.slots.role[slot]), set()).add(int(self.slots.ordinal[slot]))
        return self.now_ms if present and not self.signature(row).is_whole(present) else -1

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

    # -- acting -----------------------------------------------------------------------------------------------

    def start(self, row: int, seating: Seating) -> None:
        addition = self._add(row, seating, promised=False)
        action = Start(self.spec(row).id, self.pool_name(seating.pool), self.placements(row, seating))
        addition.action = self.draft(row).start = self.script.add(action)
        queue, priority = int(self.columns.queue[row]), int(self.columns.priority[row])
        self.lowest_started[queue] = min(priority, self.lowest_started.get(queue, priority))

    def grow(self, row: int, seating: Seating) -> None:
        self.add_growth(row, seating)
        self.record_growth(row)

    def add_growth(self, row: int, seating: Seating) -> None:
        """Take the room of one step of growth; `record_growth` puts all steps of a workload into one action."""
        draft, signature = self.draft(row), self.signature(row)
        if draft.start is not None and not draft.growth() and signature.any_will_do:
            draft.split_base()
        self._add(row, seating, promised=False)

    def record_growth(self, row: int) -> None:
        draft = self.draft(row)
        steps = [addition for addition in draft.additions if addition.action < 0]
        if not steps:
            return
        number = draft.start if draft.start is not None else self.script.add(Grow(self.spec(row).id, ()))
        for addition in steps:
            addition.action = number
        self._rewrite(row, number)

    def promise(self, row: int, seating: Seating, until_ms: int, waits_for: list[str]) -> None:
        addition = self._add(row, seating, promised=True)
        placements = self.placements(row, seating)
        action = Hold(self.spec(row).id, self.pool_name(seating.pool), placements, until_ms, tuple(waits_for))
        addition.action = self.script.add(action)

    def keep_promise(self, row: int, slots: list[int], *, grows: bool) -> None:
        """The room of promised slots is free: hold it for real."""
        draft = self.draft(row)
        roles = self.signature(row).chains
        for slot in slots:
            self._change_slot(slot, 1, now=True, coming=False)
        placements = tuple(self.slot_placement(slot, roles[int(self.slots.role[slot])].role.name) for slot in slots)
        pool = self.pool_name(self.pool_of_slot(slots[0]))
        workload = self.spec(row).id
        draft.kept_by = self.script.add(Grow(workload, placements) if grows else Start(workload, pool, placements))
        draft.kept = list(slots)

    def fulfil(self, row: int) -> None:
        """Room promised by this very plan has come free in it: start there at once."""
        draft = self.draft(row)
        for addition in draft.additions:
            if addition.promised:
                self._count_addition(row, addition, -1)
                addition.promised = False
                self._count_addition(row, addition, 1)
                held = self.script[addition.action]
                assert isinstance(held, Hold)
                grows = bool(self.slots_of(row))
                if not grows:
                    draft.start = addition.action
                start = Start(held.workload, held.pool, held.placements)
                self.script.replace(addition.action, Grow(held.workload, held.placements) if grows else start)

    def evict(
        self,
        row: int,
        cause: Reason,
        *,
        beneficiary: str = "",
        final: bool = False,
        if_not_moved: Reason | None = None,
    ) -> None:
        """Tell the whole workload to stop. `if_not_moved` is given where it has a new place (promised next)."""
        draft = self.draft(row)
        fixed = self._fixed_part(row)
        self._undo(row, draft.additions)
        self._break_promise(draft)
        if draft.evicted:  # it was to be moved, and now its new place is taken too
            before = self.script[draft.eviction]
            assert isinstance(before, Evict)
            plain = Evict(before.workload, draft.if_not_moved or cause, before.grace_ms, before.beneficiary)
            self.script.replace(draft.eviction, plain)
            self.script.departures += 1
        else:
            self._evict_slots(row, draft, cause, beneficiary, final, if_not_moved)
        self._recount_fixed(row, fixed)

    def _evict_slots(
        self, row: int, draft: Draft, cause: Reason, beneficiary: str, final: bool, if_not_moved: Reason | None
    ) -> None:
        slots = self.slots_of(row)
        if not slots:  # it was this plan's own doing, and is undone
            if draft.start is not None and self.script.asked_since(draft.start, beneficiary):
                self.regretted.add(row)
            draft.start = None
            self.script.departures += 1
            return
        for slot in slots:
            self._stop_slot(slot)
        draft.removed.update(slots)
        moved = if_not_moved is not None
        runs = any(int(self.slots.phase[slot]) in (Phase.BINDING, Phase.RUNNING) for slot in slots)
        draft.evicted = moved or final or runs or bool(self.table.leaving[row])
        draft.if_not_moved = if_not_moved
        if final:
            self.ended.add(row)
        if not draft.evicted:
            self.requeued.append(row)
        spec = self.spec(row)
        draft.eviction = self.script.add(Evict(spec.id, cause, spec.grace_ms, beneficiary, moved, final))

    def shrink(self, row: int, slots: list[int], cause: Reason, beneficiary: str = "") -> None:
        draft, fixed = self.draft(row), self._fixed_part(row)
        for slot in slots:
            self._stop_slot(slot)
        draft.removed.update(slots)
        unkept = [slot for slot in slots if slot in draft.kept]
        if leaving := [slot for slot in slots if slot not in unkept]:
            self.script.add(Shrink(self.spec(row).id, self._names(row, leaving), cause, beneficiary))
        if unkept:
            self._keep_less(row, draft, unkept)
            self.script.add(Drop(self.spec(row).id, self._names(row, unkept), cause))
            self.script.departures += 1
        self._recount_fixed(row, fixed)

    def _keep_less(self, row: int, draft: Draft, slots: list[int]) -> None:
        """Some places of a promise that was kept a moment ago go to somebody else: nobody begins there."""
        draft.kept = [slot for slot in draft.kept if slot not in slots]
        before, gone = self.script[draft.kept_by], set(self._names(row, slots))
        assert isinstance(before, Start | Grow)
        left = tuple(one for one in before.placements if (one.role, one.ordinal) not in gone)
        self.script.replace(draft.kept_by, structs.replace(before, placements=left) if left else None)

    def take_back_start(self, row: int) -> None:
        """A start of this very plan is to have other seats: it is not done."""
        draft, fixed = self.draft(row), self._fixed_part(row)
        self._undo(row, draft.additions)
        draft.start, draft.base = None, 1
        self.script.departures += 1
        self._recount_fixed(row, fixed)

    def take_back_growth(self, row: int, step: Addition) -> None:
        """A step of growth of this very plan is in the way: it is not done."""
        fixed = self._fixed_part(row)
        self._undo(row, [step])
        self.script.departures += 1
        self._recount_fixed(row, fixed)

    def drop(self, row: int, slots: list[int], cause: Reason) -> None:
        """Give up held or promised places; nothing runs there."""
        fixed = self._fixed_part(row)
        for slot in slots:
            self._stop_slot(slot)
        self.draft(row).removed.update(slots)
        self.script.add(Drop(self.spec(row).id, self._names(row, slots), cause))
        self.script.departures += 1
        if not self.slots_of(row) and not self.table.leaving[row]:
            self.requeued.append(row)
        self._recount_fixed(row, fixed)

    def reject(self, row: int, cause: Reason) -> None:
        self.ended.add(row)
        self.script.add(Reject(self.spec(row).id, cause))

    def leaving_from(self, pool: int, nodes: set[int]) -> dict[str, int]:
        """Workloads on their way out of these nodes, by name, and by when they have to be gone."""
        rows = set(self.boards[pool].view.rows[sorted(nodes)].tolist())
        found: dict[str, int] = {}
        for slot in np.flatnonzero(self.slots.view("phase") == Phase.RELEASING).tolist():
            if int(self.slots.node[slot]) in rows:
                spec, until = self.spec(int(self.slots.workload[slot])), int(self.slots.until[slot])
                found[spec.id] = max(found.get(spec.id, 0), until if until >= 0 else self.now_ms + spec.grace_ms)
        for row, draft in self.drafts.items():
            ran = [slot for slot in draft.removed if int(self.slots.phase[slot]) in (Phase.BINDING, Phase.RUNNING)]
            if any(int(self.slots.node[slot]) in rows for slot in ran):
                found[self.spec(row).id] = self.now_ms + self.spec(row).grace_ms
        return dict(sorted(found.items()))

    def pool_name(self, pool: int) -> str:
        return self.boards[pool].view.pool.name

    def pool_of_slot(self, slot: int) -> int:
        return int(self.snapshot.node_pool[self.slots.node[slot]])

    # -- inside -----------------------------------------------------------------------------------------------

    def _add(self, row: int, seating: Seating, *, promised: bool) -> Addition:
        fixed = self._fixed_part(row)
        addition = Addition(seating, promised)
        self.draft(row).additions.append(addition)
        self._count_addition(row, addition, 1)
        self._recount_fixed(row, fixed)
        return addition

    def _undo(self, row: int, additions: list[Addition]) -> None:
        draft = self.draft(row)
        numbers = []
        for addition in list(additions):
            self._count_addition(row, addition, -1)
            draft.additions.remove(addition)
            if addition.action >= 0 and addition.action not in numbers:
                numbers.append(addition.action)
        for number in numbers:
            self._rewrite(row, number)

    def _rewrite(self, row: int, number: int) -> None:
        """Bring an action in line with the seats that belong to it now; without any it is struck out."""
        mine = [addition for addition in self.draft(row).additions if addition.action == number]
        placements = tuple(p for addition in mine for p in self.placements(row, addition.seating))
        before = self.script[number]
        if not placements:
            self.script.replace(number, None)
        elif isinstance(before, Start):
            self.script.replace(number, Start(before.workload, before.pool, placements))
        elif isinstance(before, Grow):
            self.script.replace(number, Grow(before.workload, placements))

    def _break_promise(self, draft: Draft) -> None:
        """A promise that was kept a moment ago is not kept after all."""
        for slot in draft.kept:
            self._change_slot(slot, -1, now=True, coming=False)
        if draft.kept:
            self.script.replace(draft.kept_by, None)
            draft.kept = []

    def _count_addition(self, row: int, addition: Addition, sign: int) -> None:
        seating, now = addition.seating, not addition.promised
        board = self.boards[seating.pool]
        amount = sign * seating.amount()
        self.draft(row).change += amount
        board.change(seating, sign, now=now, shadows=self._outlasted(board, row))
        queue = int(self.columns.queue[row])
        if queue >= 0:
            ledgers = slice(0, 2 if now else 1)
            for above in self.tree.paths[queue].tolist():
                self._used[ledgers, above, seating.pool] += amount

    def _outlasted(self, board: Board, row: int) -> list[Ledger]:
        if not board.shadows:
            return []
        return [shadow.ledger for shadow in board.outlasted(end_ms(self, row))]

    def _stop_slot(self, slot: int) -> None:
        draft = self.draft(int(self.slots.workload[slot]))
        draft.change -= self.slots.amount[slot]
        real = not self.slots.promised[slot] or slot in draft.kept
        held = int(self.slots.phase[slot]) == Phase.HELD
        self._change_slot(slot, -1, now=held and real, coming=True)

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
            sign * self.activity_of_slot(slot),
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

    def _strays(self) -> frozenset[int]:
        if len(self.boards) < 2:
            return frozenset()
        workload = self.slots.view("workload")
        used = np.flatnonzero(workload >= 0)
        there = self.snapshot.node_pool[self.slots.node[used]]
        return frozenset(used[there != self.columns.pool[workload[used]]].tolist())

    def activity_of_slot(self, slot: int) -> int:
        chains = self.signature(int(self.slots.workload[slot])).chains
        return chains[int(self.slots.role[slot])].role.request.activity_milli

    def activity_of(self, slots: Ints, added: list[Seats]) -> Ints:
        """Of slots, and of seats this plan gives."""
        found = np.zeros(len(slots), dtype=np.int64)
        if self.snapshot.coming_activity.any() or self.snapshot.now_activity.any():
            found[:] = [self.activity_of_slot(slot) for slot in slots.tolist()]
        return np.concatenate([found, *(np.full(len(s.nodes), s.shape.activity_milli) for s in added)])

    def _fixed_use(self) -> Ints:
        fixed = np.zeros_like(self.used_now)
        kinds = self.columns.view("preemptible")
        holding = self.columns.view("held") + self.columns.view("promised") > 0
        for row in np.flatnonzero(((kinds == NEVER_TAKEN) | (kinds == MINIMUM_KEPT)) & holding).tolist():
            part = self._fixed_part(row)
            if part is not None and self.columns.queue[row] >= 0:
                fixed[int(self.columns.queue[row]), part[0]] += part[1]
        return self.tree.summed_up(fixed)

    def is_fixed(self, row: int) -> bool:
        """Whether the workload, or its minimum, may never be preempted."""
        return self.columns.preemptible[row] in (NEVER_TAKEN, MINIMUM_KEPT)

    def fixed_amount(self, row: int, pool: int) -> Ints:
        """What of the workload must stay inside the guarantee when it starts at its minimum."""
        if self.is_fixed(row):
            return self.ask(row).least_amount(pool)
        return np.zeros(self.snapshot.resources.count, dtype=np.int64)

    def _fixed_part(self, row: int) -> tuple[int, Ints] | None:
        """The pool and how much of what it holds must stay inside the guarantee; None if nothing."""
        if not self.is_fixed(row):
            return None
        draft = self.drafts.get(row)
        pool = draft.pool if draft is not None and draft.pool is not None else int(self.columns.pool[row])
        if pool < 0:
            return None
        held = self.held_amount(row)
        if self.columns.preemptible[row] == MINIMUM_KEPT:
            ask = self.ask(row)
            by_memory = any(chain.role.request.gpu_memory_mib for chain in ask.signature.chains)
            if by_memory or not ask.signature.elastic:
                return pool, held.copy()  # what its minimum really takes depends on the devices it got
            held = np.minimum(held, ask.least_amount(pool))
        return pool, held.copy()

    def _recount_fixed(self, row: int, before: tuple[int, Ints] | None) -> None:
        after = self._fixed_part(row)
        queue = int(self.columns.queue[row])
        for part, sign in ((before, -1), (after, 1)):
            if part is not None and queue >= 0:
                self.fixed[self.tree.paths[queue], part[0]] += sign * part[1]

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
