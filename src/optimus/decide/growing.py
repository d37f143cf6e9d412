"""Grow: elastic workloads take idle room, one step at a time, in turns, after every minimum has had its chance.

Inside a queue the policy says whose next step is worth most. A workload that already runs pays a restart for
growing; it grows only where that pays back and not more often than the settings allow. A queue inside its share may
also take the surplus of others above theirs. Replicas lost from a running gang are replaced first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimus.decide.durations import elapsed_ms, end_ms, remaining_ms
from optimus.decide.lines import line_up
from optimus.decide.obeying import lawful_seats
from optimus.decide.policies.columns import ElasticColumns
from optimus.decide.policies.growth import speed_milli
from optimus.decide.policies.policy import growth_keys
from optimus.decide.quotas import largest_amount, over_guarantee, over_limit
from optimus.decide.shares import Shares
from optimus.decide.taking import Taker
from optimus.decide.turns import RoundTurns
from optimus.decide.world import NEVER_TAKEN, World
from optimus.model import gangs
from optimus.model.gangs import Part
from optimus.model.pools import HOST_LEVEL, NVLINK_LEVEL
from optimus.model.queues import QueueState
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.model.workloads import Group, Topology
from optimus.state.arrays import Bools, Ints
from optimus.state.resources import CPU_COLUMN, GPU_COLUMN
from optimus.state.workload_table import size_milli

STEPS_AHEAD = 512
"""How many steps of one workload a pass looks ahead."""


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


class Grower:
    def __init__(self, world: World, shares: Shares, taker: Taker) -> None:
        self.world = world
        self.shares = shares
        self.taker = taker
        self._grown: dict[int, None] = {}
        self._steps_left = world.budget.growth_steps
        self.is_sized: Callable[[int], bool] = lambda _row: False
        """Whether idle room is given to a workload elsewhere; here it only takes the surplus of other queues."""

    def replace_lost(self) -> None:
        """Gangs below their minimum get their missing replicas before anything new starts."""
        world, columns = self.world, self.world.columns
        rows = set(np.flatnonzero((columns.view("lost_since") >= 0) & (columns.view("alive") > 0)).tolist())
        rows |= {row for row, draft in world.drafts.items() if draft.removed}
        for row in sorted(rows, key=world.table.names.__getitem__):
            draft = world.drafts.get(row)
            if (draft and draft.evicted) or columns.queue[row] < 0 or columns.retry_at[row] > world.now_ms:
                continue
            if world.lost_since(row) < 0:
                continue
            gaps = gangs.missing(world.spec(row).gang, world.present(row))
            if not world.slots_of(row) or any(self._collides(row, gap.all_cells()) for gap in gaps):
                continue  # nothing is left of it, or what it needs is still leaving: it waits or restarts as a whole
            for gap in gaps:
                self._step(row, gap, replacing=True)

    def mend_sizes(self) -> None:
        """After a loss, or when its sizes were changed, a workload may have a number of replicas that is not allowed:
        up if there is room at once, else down to the next size that is."""
        world = self.world
        able = {row for row in world.table.elastic if world.signature(row).can_break} | set(world.table.oversized)
        for row in sorted((r for r in able if world.columns.held[r] > 0), key=world.table.names.__getitem__):
            draft = world.drafts.get(row)
            if world.awaits_room(row) or world.is_new(row) or (draft is not None and draft.evicted):
                continue
            gang, present = world.spec(row).gang, world.present(row)
            if world.lost_since(row) >= 0:
                continue
            extra = gangs.beyond_maximum(gang, present)
            if extra:
                self._give_up(row, extra, Code.ABOVE_MAXIMUM)
                present = world.present(row)
            step = gangs.misfit_step(gang, present)
            if not step:
                continue
            may_grow = not extra and world.columns.queue[row] >= 0
            ups = [*gangs.missing(gang, present), *gangs.growth_steps(gang, present)] if may_grow else []
            if any(not self._collides(row, up.all_cells()) and self._step(row, up, replacing=True) for up in ups):
                continue
            self._give_up(row, step, Code.ODD_SIZE)

    def _give_up(self, row: int, cells: tuple[gangs.Cell, ...], code: Code) -> None:
        world = self.world
        keys = {(cell.role_index, o) for cell in cells for o in cell.ordinals}
        slots = [s for s in world.slots_of(row) if (int(world.slots.role[s]), int(world.slots.ordinal[s])) in keys]
        world.shrink(row, slots, reason(code, replicas=counted(len(slots), "replica")))

    def run(self) -> None:
        """Everybody's next step, round after round, until nobody can or wants to grow."""
        world = self.world
        able = [row for row in self._candidates() if self._pays_back(row)]
        if not able:
            return
        benefit = self._benefits(able)
        lines = line_up(world, self.shares, [row for row in able if benefit(row) > 0])
        turns = RoundTurns(world, self.shares.lending, lines, self._need, benefit)
        while (row := turns.next()) is not None:
            if self._steps_left <= 0:
                world.unreached.add("grow")
                break
            self._steps_left -= 1
            if self._grow_once(row):
                turns.step_taken()
            else:
                turns.done()
        for row in self._grown:
            world.record_growth(row)
        self._grown.clear()

    def _gave_way(self, row: int) -> bool:
        draft = self.world.drafts.get(row)
        return draft is not None and (draft.evicted or bool(draft.removed))

    def _candidates(self) -> list[int]:
        """Elastic workloads that run or start in this plan and may still become larger."""
        world, columns = self.world, self.world.columns
        found = []
        for row in world.table.elastic:
            if self._gave_way(row) or (self.is_sized(row) and not self._could_take(row)):
                continue
            starting = world.is_new(row)
            running = columns.held[row] >= columns.minimum[row] and columns.held[row] > 0 and not columns.promised[row]
            if not (starting or running) or not columns.alive[row] or columns.suspended[row] or columns.queue[row] < 0:
                continue
            if any(
                world.tree.queues[q].state is not QueueState.OPEN for q in world.tree.paths[int(columns.queue[row])]
            ):
                continue
            if running and not starting and columns.started[row] < 0:
                continue  # still being started: let it begin first
            found.append(row)
        return found

    def _could_take(self, row: int) -> bool:
        """Whether there is another queue of which sized work could take surplus; and this plan has not changed it."""
        tree = self.world.tree
        siblings = any(len(tree.children[tree.parent[q]]) > 1 for q in tree.paths[int(self.world.columns.queue[row])])
        return siblings and row not in self.world.drafts

    def _pays_back(self, row: int) -> bool:
        """Growing a running workload costs a restart; the time it saves must be worth several."""
        world, columns = self.world, self.world.columns
        if world.is_new(row):
            return True
        resized = int(columns.resized[row])
        if resized >= 0 and world.now_ms - resized < world.settings.resize_interval_ms:
            return False
        spec = world.spec(row)
        present = world.present(row)
        count = sum(len(o) for o in present.values())
        most = self._could_reach(row, count)
        if most <= count:
            return False
        now, then = speed_milli(count, spec.speedup_percent), speed_milli(most, spec.speedup_percent)
        left = max(remaining_ms(world, row) if columns.expected[row] >= 0 else elapsed_ms(world, row), 0)
        if columns.expected[row] < 0:
            left = max(left, spec.restart_cost_ms * world.settings.resize_payback * 4)
        saved = left - left * now // max(then, 1)
        return saved >= world.settings.resize_payback * spec.restart_cost_ms

    def _could_reach(self, row: int, count: int) -> int:
        """Most replicas it could have if all idle room were its own."""
        world = self.world
        ask = world.ask(row)
        pool = int(world.columns.pool[row])
        most = sum(gangs.maximum_replicas(world.spec(row).gang))
        elastic = max(range(len(ask.signature.chains)), key=lambda i: ask.signature.chains[i].capacity)
        fits = int(world.boards[pool].starting.fits(ask.shape(pool, elastic)).sum())
        return min(most, count + max(fits, 1))

    def _benefits(self, rows: list[int]) -> Callable[[int], int]:
        """Row -> what its next step is worth, by the policy; zero or less: it does not want to grow. All steps that may
        come are asked about at once."""
        world = self.world
        cases: list[tuple[int, int]] = []
        for row in rows:
            count = self._count(row)
            most = sum(gangs.maximum_replicas(world.spec(row).gang))
            cases.extend((row, k) for k in range(count, min(most, count + STEPS_AHEAD)))
        specs = [world.spec(row) for row, _ in cases]
        sizes = {row: size_milli(int(a[GPU_COLUMN]), int(a[CPU_COLUMN])) for row in rows for a in [self._need(row)[1]]}
        left = {row: remaining_ms(world, row) if world.columns.expected[row] >= 0 else -1 for row in rows}
        counts = [k for _, k in cases]
        columns = ElasticColumns(
            replicas=_ints(counts),
            next_replicas=_ints(counts) + 1,
            step_milli=_ints([sizes[row] for row, _ in cases]),
            speed_milli=_ints([speed_milli(k, s.speedup_percent) for k, s in zip(counts, specs, strict=True)]),
            next_speed_milli=_ints([speed_milli(k + 1, s.speedup_percent) for k, s in zip(counts, specs, strict=True)]),
            attained_gpu_ms=_ints([int(world.columns.attained[row]) // 1000 for row, _ in cases]),
            remaining_ms=_ints([left[row] for row, _ in cases]),
            is_new=np.array([world.is_new(row) for row, _ in cases], dtype=np.bool_),
        )
        keys, condition = growth_keys(world.policy, columns)
        if condition is not None and condition not in world.conditions:
            world.conditions.append(condition)
        known = dict(zip(cases, keys.tolist(), strict=True))
        return lambda row: known.get((row, self._count(row)), 0)

    def _count(self, row: int) -> int:
        return sum(len(ordinals) for ordinals in self.world.present(row).values())

    def _need(self, row: int) -> tuple[int, Ints]:
        world = self.world
        ask = world.ask(row)
        pool = self._pool(row)
        elastic = max(range(len(ask.signature.chains)), key=lambda i: ask.signature.chains[i].capacity)
        return pool, ask.replica_amount(pool, elastic)

    def _pool(self, row: int) -> int:
        draft = self.world.drafts.get(row)
        if draft is not None and draft.pool is not None:
            return draft.pool
        return int(self.world.columns.pool[row])

    def _grow_once(self, row: int) -> bool:
        present = self.world.present(row)
        for step in gangs.growth_steps(self.world.spec(row).gang, present):
            if not self._collides(row, step.all_cells()) and self._step(row, step, replacing=False):
                return True
        return False

    def _collides(self, row: int, cells: tuple[gangs.Cell, ...]) -> bool:
        """An ordinal whose old replica is still leaving cannot be used again yet."""
        leaving = self.world.blocked_ordinals(row)
        return any(o in leaving.get(cell.role_index, ()) for cell in cells for o in cell.ordinals)

    def _step(self, row: int, step: Part, *, replacing: bool) -> bool:
        world = self.world
        ask, pool = world.ask(row), self._pool(row)
        queue = int(world.columns.queue[row])
        amount = np.zeros(world.used_now.shape[2], dtype=np.int64)
        for cell in step.all_cells():
            amount += len(cell.ordinals) * ask.replica_amount(pool, cell.role_index)
        if not replacing and self._too_large(row, amount):
            return False
        if over_limit(world, queue, pool, amount) is not None:
            return False
        if world.columns.preemptible[row] == NEVER_TAKEN and over_guarantee(world, queue, pool, amount) is not None:
            return False
        board = world.boards[pool]
        room = board.starting if replacing else board.starting_beside(end_ms(world, row))
        within, near, devices = self._bounds(row, step, pool)
        if not replacing and self.is_sized(row):
            return self.taker.take_surplus(row, pool, step, amount, within)
        seating = lawful_seats(world, row, room, step, grows=True, within=within, near=near, devices=devices)
        if isinstance(seating, Reason):
            return False
        if seating is not None:
            if replacing:
                world.grow(row, seating)
            else:
                world.add_growth(row, seating)
                self._grown.setdefault(row)
            return True
        if replacing or devices is not None or world.is_new(row):
            return False
        return self.taker.take_surplus(row, pool, step, amount, within)

    def _too_large(self, row: int, amount: Ints) -> bool:
        most = largest_amount(self.world, row)
        return most is not None and int(self.world.held_amount(row)[GPU_COLUMN] + amount[GPU_COLUMN]) > most

    def _bounds(self, row: int, step: Part, pool: int) -> tuple[Bools | None, Ints | None, Bools | None]:
        """Where the step may go, inside what the rules around it have already fixed: nodes, nodes to be near to, and
        devices where an NVLink group is required."""
        world = self.world
        view = world.boards[pool].view
        seats = self._seats_by_part(row)
        everything = sorted({node for places in seats.values() for node, _ in places})
        within: Bools | None = None
        devices: Bools | None = None
        for key, role, topology in _rules(world.spec(row).gang, step):
            level = HOST_LEVEL if topology.required == NVLINK_LEVEL else topology.required
            if not level or level not in view.levels:
                continue
            mine = [
                p for (part, r), places in seats.items() if part[: len(key)] == key and role in (-1, r) for p in places
            ]
            if not mine:
                continue
            nodes = sorted({node for node, _ in mine})
            inside = np.isin(view.levels[level], view.levels[level][nodes])
            within = inside if within is None else within & inside
            if topology.required == NVLINK_LEVEL:
                groups = {(n, int(view.nvlink_group[n, d])) for n, chosen in mine for d in chosen}
                same = np.zeros(view.nvlink_group.shape, dtype=np.bool_)
                for node, group in groups:
                    same[node] |= view.nvlink_group[node] == group
                devices = same if devices is None else devices & same
        return within, np.array(everything, dtype=np.int64), devices

    def _seats_by_part(self, row: int) -> dict[tuple[gangs.PartKey, int], list[tuple[int, tuple[int, ...]]]]:
        """(part, role) -> nodes and devices of its replicas."""
        world = self.world
        chains = world.signature(row).chains
        found: dict[tuple[gangs.PartKey, int], list[tuple[int, tuple[int, ...]]]] = {}
        for slot in world.slots_of(row):
            if world.pool_of_slot(slot) != self._pool(row):
                continue  # its node was given to another pool
            role = int(world.slots.role[slot])
            key = (chains[role].part_of(int(world.slots.ordinal[slot])), role)
            node = int(world.node_index[world.slots.node[slot]])
            found.setdefault(key, []).append((node, world.snapshot.slots.devices[slot]))
        for addition in world.additions_of(row):
            for seats in addition.seating.seats:
                for ordinal, node, chosen in zip(seats.ordinals, seats.nodes, seats.devices, strict=True):
                    key = (chains[seats.role_index].part_of(ordinal), seats.role_index)
                    found.setdefault(key, []).append((node, chosen))
        return found


def _rules(gang: Group, step: Part) -> list[tuple[gangs.PartKey, int, Topology]]:
    """Topology rules around a step, outermost first: of the gang, of every group, and of the role itself.

    Each with the part it binds and the role (-1: all roles in it)."""
    rules: list[tuple[gangs.PartKey, int, Topology]] = [((), -1, gang.topology)]
    group = gang
    for depth, (name, _) in enumerate(step.key):
        group = next(child for child in group.groups if child.name == name)
        rules.append((step.key[: depth + 1], -1, group.topology))
    chains = gangs.chains(gang)
    rules += [(step.key, cell.role_index, chains[cell.role_index].role.topology) for cell in step.cells]
    return rules
