"""Sizing: elastic work of one queue gets its sizes together, from one exact knapsack.

Growth by steps helps whoever comes first and never gives anything back. Here the GPUs that the elastic work of a queue
holds, and the idle ones that the queue may have, are divided anew in every cycle: one size for each workload, so that
the sum of what the sizes are worth (`Policy.sizing`) is largest. Who waits is in it with at least its minimum, so room
for a newcomer comes from the work that misses it least. A change costs a restart, which the worth of a size counts in.

Only work that can be stopped and continued is sized: one role of whole GPUs without a topology rule, with a checkpoint,
unattended or preemptible by its own word. All other elastic work grows step by step (`growing`).

A group is what is divided among: one queue, one priority, one pool. Nothing is taken from another group, and nobody is
pushed below its minimum: rights, turns and preemption are for `taking`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from optimus.decide.arranging import Arranger, Change, Member
from optimus.decide.knapsack import Choice, choose
from optimus.decide.placement.seating import Seating
from optimus.decide.policies.policy import size_worths
from optimus.decide.shares import Shares
from optimus.decide.size_facts import SizeFacts
from optimus.decide.taking import Taker
from optimus.decide.turns import divide
from optimus.decide.victims import TURN_RESTARTS
from optimus.decide.world import World
from optimus.model import gangs
from optimus.model.queues import QueueState
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import measured
from optimus.model.workloads import Topology
from optimus.state.workload_table import Signature

TRIALS = 8
"""How often a group is chosen anew because there were no seats for a size."""
EVERYTHING = 1 << 40
Group = tuple[int, int, int]
"""Queue, priority, pool."""


class Sizer:
    def __init__(self, world: World, shares: Shares, taker: Taker) -> None:
        self.world = world
        self.shares = shares
        self.taker = taker
        self._before_preempt = taker.cache.before_preempt
        self._plain: dict[int, bool] = {}
        """By signature."""
        self._able = self._find_able()
        self._surplus: dict[Group, int] = {}
        """GPUs above the minimum that a group could still give to those that wait; by `new_pass`."""
        self._no_seats: set[int] = set()
        """Those that wait and for which sizing found no seats: `taking` may."""
        self._changed: set[int] = set()
        """Those that have their size in this plan."""
        self._facts = SizeFacts(world, self._able)

    def is_sized(self, row: int) -> bool:
        """Whether its size is chosen here and not by growth."""
        return row in self._able

    def new_pass(self) -> None:
        if not self._able:
            return
        self._surplus.clear()
        for group, members in self._groups(()).items():
            self._surplus[group] = sum((m.now - m.least) * m.gpus for m in members)

    def will_serve(self, row: int) -> bool:
        """Whether room for this workload, which found none, is to come from the surplus of its own group."""
        if row not in self._able or row in self._no_seats:
            return False
        group = self._group_of(row)
        member = self._member(row, group[2], now=0, runs=False) if group is not None else None
        if group is None or member is None or self._surplus.get(group, 0) < member.least * member.gpus:
            return False
        self._surplus[group] -= member.least * member.gpus
        return True

    def run(self, in_line: Iterable[int]) -> None:
        """Choose the sizes of every group. `in_line`: those that may start, in the order of their lines."""
        if not self._able:
            return
        waiting = [row for row in in_line if row in self._able and self.world.waits(row)]
        groups = self._groups(waiting)
        portions = self._portions(groups)
        self._size_all(groups, portions)
        if any(portion < EVERYTHING // 2 for portion in portions.values()):  # what a queue could not use is lent
            self._size_all(self._groups(()), {})

    def _size_all(self, groups: dict[Group, list[Member]], portions: dict[tuple[int, int], int]) -> None:
        queues = self.world.tree.queues
        for group in sorted(groups, key=lambda g: (-g[1], queues[g[0]].name, g[2])):
            at = (group[0], group[2])
            portions[at] = portions.get(at, EVERYTHING) - self._size(group, groups[group], portions.get(at, EVERYTHING))

    # -- who ----------------------------------------------------------------------------------------------------

    def _find_able(self) -> set[int]:
        world = self.world
        if world.policy.sizing is None:
            return set()
        return {row for row in world.table.elastic if self._is_able(row)}

    def _is_able(self, row: int) -> bool:
        world, queue = self.world, int(self.world.columns.queue[row])
        signature = int(world.columns.signature[row])
        if signature not in self._plain:
            self._plain[signature] = _is_plain(world.signature(row))
        if not self._plain[signature] or queue < 0 or not world.columns.gives_turns[row]:
            return False
        return all(world.tree.queues[q].state is QueueState.OPEN for q in world.tree.paths[queue])

    def _groups(self, waiting: Iterable[int]) -> dict[Group, list[Member]]:
        """Those whose size may change, by group; those that wait come last, in line."""
        world = self.world
        found: dict[Group, list[Member]] = {}
        for row in sorted(self._able, key=lambda r: (int(world.columns.submitted[r]), world.spec(r).id)):
            fresh = row not in self._changed and self._is_fresh(row)
            if fresh or self._may_change(row):
                group = self._group_of(row)
                count = sum(len(ordinals) for ordinals in world.present(row).values())
                member = self._member(row, group[2], now=count, runs=not fresh) if group is not None else None
                if group is not None and member is not None:
                    found.setdefault(group, []).append(member)
        for row in waiting:
            group = self._group_of(row)
            member = self._member(row, group[2], now=0, runs=False) if group is not None else None
            if group is not None and member is not None and row not in self._no_seats:
                found.setdefault(group, []).append(member)
        return found

    def _group_of(self, row: int) -> Group | None:
        columns, draft = self.world.columns, self.world.drafts.get(row)
        pool: int | None = int(columns.pool[row])
        if draft is not None and draft.pool is not None:
            pool = draft.pool
        elif columns.held[row] <= 0:
            pool = self.world.ask(row).home()
        if pool is None or pool < 0:
            return None
        return int(columns.queue[row]), int(columns.priority[row]), pool

    def _is_fresh(self, row: int) -> bool:
        """Started by this very plan, in room that is free: any size costs the same restart, none."""
        world = self.world
        if not world.is_new(row) or world.slots_of(row):
            return False
        return not any(addition.promised for addition in world.additions_of(row))

    def _may_change(self, row: int) -> bool:
        """It runs as a whole, nothing of it is on its way, and its last change is long enough ago."""
        world, columns = self.world, self.world.columns
        started, resized = int(columns.started[row]), int(columns.resized[row])
        if started < 0 or columns.suspended[row] or not columns.alive[row] or world.is_changing(row):
            return False
        if columns.lost_since[row] >= 0 or columns.held[row] < columns.minimum[row]:
            return False
        if columns.stays_until[row] > world.now_ms:
            return False
        if world.now_ms - started < self._before_preempt[columns.queue[row]]:
            return False
        least = max(world.settings.sizing_interval_ms, world.spec(row).restart_cost_ms * TURN_RESTARTS)
        if world.now_ms - max(started, resized) < least:
            return False
        view = world.boards[int(columns.pool[row])].view
        slots = world.slots_of(row)
        return world.strays.isdisjoint(slots) and all(
            view.usable[world.node_index[world.slots.node[slot]]] for slot in slots
        )

    def _member(self, row: int, pool: int, *, now: int, runs: bool) -> Member | None:
        ask = self.world.ask(row)
        shape = ask.shape(pool, 0)
        if not shape.whole:
            return None
        least = ask.signature.minimum_count
        return Member(row, ask, shape, least, now, runs) if now == 0 or now >= least else None

    def _portions(self, groups: dict[Group, list[Member]]) -> dict[tuple[int, int], int]:
        """(queue, pool) -> idle GPUs that its groups may take. Where several queues want them they take turns, a node
        at a time, as queues do whose work starts."""
        found: dict[tuple[int, int], int] = {}
        for pool in {group[2] for group in groups}:
            here = {group: members for group, members in groups.items() if group[2] == pool}
            if len({queue for queue, _, _ in here}) == 1:
                found.update({(group[0], pool): EVERYTHING for group in here})
                continue
            wants: dict[int, int] = {}
            has: dict[int, int] = {}
            idle, step = 0, 1
            for group, members in here.items():
                arranger = self._arranger(group, members)
                reach = max(arranger.idle(member) for member in members)
                idle = max(idle, reach)
                step = max(step, *(arranger.per_host(member.shape) * member.gpus for member in members))
                most = sum((member.ask.signature.capacity[0] - member.now) * member.gpus for member in members)
                wants[group[0]] = wants.get(group[0], 0) + min(most, reach)
                has[group[0]] = has.get(group[0], 0) + sum(member.now * member.gpus for member in members)
            for queue, gpus in divide(self.world, self.shares.lending, pool, wants, has, idle, step).items():
                found[queue, pool] = gpus
        return found

    # -- how many -----------------------------------------------------------------------------------------------

    def _size(self, group: Group, members: list[Member], portion: int) -> int:
        """Choose and arrange. Sizes for which there are no seats are struck out, and it is chosen again: nobody gives
        anything up for nothing. `portion`: idle GPUs that the queue may have; returned is what it took of them."""
        for _ in range(TRIALS):
            arranger = self._arranger(group, members)
            chosen, capacity = self._admit(arranger, members, portion)
            targets = self._targets(chosen, capacity)
            if targets is None or all(targets[member.row] == member.now for member in chosen):
                return 0
            missed = arranger.settle(targets)
            if not missed:
                self._act(group, arranger)
                return max(sum((targets[m.row] - m.now) * m.gpus for m in chosen), 0)
            for member, size in missed:
                member.sizes = tuple(k for k in member.sizes if k <= size)
                if not member.sizes:
                    self._no_seats.add(member.row)
            members = [member for member in members if member.row not in self._no_seats]
        return 0

    def _arranger(self, group: Group, members: list[Member]) -> Arranger:
        world, path = self.world, self.world.tree.paths[group[0]]
        headroom = world.tree.limit[path, group[2]] - world.used_coming[path, group[2]]
        return Arranger(world, group[2], members, headroom, partial(self._companions, group))

    def _companions(self, group: Group) -> list[Member]:
        """Running work of the group that has only one size: it can be moved like the others."""
        world, columns = self.world, self.world.columns
        alike = (columns.view("queue") == group[0]) & (columns.view("priority") == group[1])
        alike &= (columns.view("pool") == group[2]) & (columns.view("started") >= 0)
        found = []
        for row in np.flatnonzero(alike).tolist():
            if row in world.table.elastic or not self._is_able(row) or not self._may_change(row):
                continue
            member = self._member(row, group[2], now=int(columns.held[row]), runs=True)
            if member is not None:
                found.append(member)
        return sorted(found, key=lambda m: world.spec(m.row).id)

    def _admit(self, arranger: Arranger, members: list[Member], portion: int) -> tuple[list[Member], int]:
        """Those whose minimums there is room for, first in line first; and the GPUs to divide among them."""
        idle = max((arranger.idle(member) for member in members), default=0)
        capacity = sum(member.now * member.gpus for member in members) + min(idle, portion)
        needed = sum(member.least * member.gpus for member in members if member.now)
        admitted = []
        for member in members:
            if not member.now:
                if needed + member.least * member.gpus > capacity:
                    continue
                needed += member.least * member.gpus
            if not member.sizes:
                member.sizes = self._facts.sizes(member, arranger.grain(member.shape))
            admitted.append(member)
        return admitted, capacity

    def _targets(self, members: list[Member], capacity: int) -> dict[int, int] | None:
        if not members:
            return None
        cases = [(member, size) for member in members for size in member.sizes]
        keys, condition = size_worths(self.world.policy, self._facts.columns(cases))
        if condition is not None and condition not in self.world.conditions:
            self.world.conditions.append(condition)
        worths = keys.tolist()
        choices, at = [], 0
        for member in members:
            count = len(member.sizes)
            choices.append(Choice(tuple(k * member.gpus for k in member.sizes), tuple(worths[at : at + count])))
            at += count
        numbers = choose(choices, capacity)
        if numbers is None:
            return None
        return {member.row: member.sizes[number] for member, number in zip(members, numbers, strict=True)}

    # -- doing it -----------------------------------------------------------------------------------------------

    def _act(self, group: Group, arranger: Arranger) -> None:
        """First everybody gives, then everybody takes: the ledgers are never overdrawn in between."""
        world = self.world
        changes = list(arranger.changes.values())
        self._changed.update(arranger.changes)
        for change in changes:
            member, row = change.member, change.member.row
            if change.dropped:
                world.shrink(row, list(change.dropped), self._cause(group, change))
            elif member.runs and change.anew:
                cause = self._cause(group, change)
                world.evict(row, cause, if_not_moved=cause)
            elif member.now and not member.runs:
                self._take_back(change)
        for change in changes:
            if change.seating is not None:
                self._seat(change, change.seating)

    def _take_back(self, change: Change) -> None:
        """A start of this very plan gets other or more seats: it is done anew, with all of them."""
        row = change.member.row
        kept = [] if change.anew else [s for addition in self.world.additions_of(row) for s in addition.seating.seats]
        assert change.seating is not None
        change.seating = Seating(change.seating.pool, [*kept, *change.seating.seats])
        self.world.take_back_start(row)

    def _seat(self, change: Change, seating: Seating) -> None:
        world, member, row = self.world, change.member, change.member.row
        if member.runs and change.anew:
            until = world.now_ms + world.spec(row).grace_ms + world.settings.hold_ms
            names = {world.spec(row).id, *world.leaving_from(seating.pool, seating.nodes())}
            world.promise(row, seating, until, sorted(names))
        elif not self.taker.is_free_now(row, seating):
            self.taker.give(row, seating, grows=member.runs)
        else:
            steps = _steps(member, seating)
            if not member.runs:
                world.start(row, steps.pop(0))
            for step in steps:
                world.add_growth(row, step)
            world.record_growth(row)

    def _cause(self, group: Group, change: Change) -> Reason:
        queue = self.world.tree.queues[group[0]].name
        if change.size == change.member.now:
            return reason(Code.REPACKED, queue=queue)
        return reason(Code.RESIZED, before=change.member.now, after=change.size, queue=queue)


def _is_plain(signature: Signature) -> bool:
    """One role of whole GPUs that may go anywhere."""
    if not signature.plain or signature.workload.gang.topology != Topology():
        return False
    role = signature.chains[0].role
    request = role.request
    whole = request.gpu_count > 0 and request.gpu_milli >= 1000 and not request.gpu_memory_mib
    return whole and role.topology == Topology() and not measured(request.accelerators) and not role.where.neighbours


def _steps(member: Member, seating: Seating) -> list[Seating]:
    """What it starts with, if it does not run yet, and each step up: each can be asked for again by itself."""
    role = member.ask.signature.chains[0].role
    single = sorted((one for seats in seating.seats for one in seats.split()), key=lambda one: one.ordinals[0])
    found, count = [], member.now if member.runs else 0
    while single:
        size = gangs.next_size(count, role.min, role.max, role.sizes) or count + len(single)
        found.append(Seating(seating.pool, single[: size - count]))
        single, count = single[size - count :], size
    return found
