"""Release: work that must not go on holding room, whoever else may want it.

Ran too long, idle too long, its queue is drained or above a lowered limit, larger than its queue allows, a gang below
its minimum without replacement, holds that were never taken. And promises whose room has come free: those start.
"""

from __future__ import annotations

import numpy as np

from optimus.decide import still_there
from optimus.decide.durations import elapsed_ms
from optimus.decide.quotas import largest_amount, limits_allow_now, standing_refusal
from optimus.decide.shares import Shares, compute_shares
from optimus.decide.sick_devices import give_up_on_sick_devices
from optimus.decide.victims import HoldingsCache, Unit, shedding_units, steps_down, with_steps_before
from optimus.decide.world import NEVER_TAKEN, World
from optimus.model import gangs
from optimus.model.queues import GPU, QueuePolicy, QueueState
from optimus.model.reasons import Code, Reason, counted, reason
from optimus.model.slots import Phase
from optimus.model.units import format_duration_ms, format_resource
from optimus.model.workloads import OnLoss
from optimus.state.arrays import Ints
from optimus.state.resources import GPU_COLUMN


def release(world: World) -> None:
    columns = world.columns
    alive = columns.view("alive") > 0
    holding = alive & (columns.view("held") + columns.view("promised") > 0)
    holding &= columns.view("stays_until") <= world.now_ms
    suspects = set(np.flatnonzero(holding & _suspect(world)).tolist())
    suspects |= {row for row, draft in world.drafts.items() if draft.removed and world.slots_of(row)}
    for row in _by_name(world, np.array(sorted(suspects), dtype=np.int64)):
        cause, final = _must_stop(world, row)
        if cause is not None:
            world.evict(row, cause, final=final)
    give_up_on_sick_devices(world)
    _obey_lowered_sizes(world)
    _obey_lowered_limits(world)


def keep_promises(world: World) -> None:
    """Start what was promised room, where the room is free by now."""
    columns = world.columns
    for row in _by_name(world, np.flatnonzero((columns.view("promised") > 0) & (columns.view("alive") > 0))):
        slots = [slot for slot in world.slots_of(row) if world.slots.promised[slot]]
        if not slots or world.table.leaving[row] or standing_refusal(world, row) is not None:
            continue
        if _is_whole(world, row) and not _room_is_lost(world, row, slots) and _room_is_free(world, slots):
            world.keep_promise(row, slots, grows=columns.held[row] > 0)


def drop_holds(world: World) -> None:
    """Give up places that nobody took in time, and promises that lost a part of their room."""
    slots = world.slots
    until = slots.view("until")
    expired = (slots.view("phase") == Phase.HELD) & (until >= 0) & (until <= world.now_ms)
    promised = (slots.view("phase") == Phase.HELD) & (slots.view("promised") > 0)
    rows = np.unique(slots.view("workload")[expired | promised])
    held = format_duration_ms(world.settings.hold_ms)
    for row in _by_name(world, rows):
        draft = world.drafts.get(row)
        kept = set(draft.kept) if draft is not None else set()
        mine = [slot for slot in world.slots_of(row) if slot not in kept]
        late = [slot for slot in mine if expired[slot]]
        waiting = [slot for slot in mine if promised[slot]]
        refusal = standing_refusal(world, row) if not kept and not world.columns.held[row] else None
        if refusal is not None and refusal.code is not Code.BACKING_OFF and mine:
            world.drop(row, mine, refusal)
        elif late:
            world.drop(row, late, reason(Code.HOLD_EXPIRED, held=held))
        elif waiting and _room_is_lost(world, row, waiting):
            world.drop(row, waiting, reason(Code.ROOM_LOST))


def _room_is_lost(world: World, row: int, promised: list[int]) -> bool:
    """Whether a part of it is gone, or in another pool now: what is left is no gang, or no size to grow to."""
    if not world.strays.isdisjoint(promised):
        return True
    if not world.columns.held[row]:
        return not _is_whole(world, row)
    return world.lost_since(row) < 0 and bool(gangs.misfit_step(world.spec(row).gang, world.present(row)))


def _is_whole(world: World, row: int) -> bool:
    return world.signature(row).is_whole(world.present(row))


def _suspect(world: World) -> np.ndarray:
    """Rows worth a look: a queue with time rules or not open, an own time rule, or a gang that lost replicas."""
    columns = world.columns
    strict = [
        q
        for q in range(len(world.tree.queues))
        if any(
            world.tree.queues[above].state is QueueState.DRAINING
            or world.tree.queues[above].policy.max_runtime_ms is not None
            or world.tree.queues[above].policy.idle_timeout_ms is not None
            for above in world.tree.paths[q]
        )
    ]
    suspect = (
        np.isin(columns.view("queue"), strict) | (columns.view("lost_since") >= 0) | (columns.view("suspended") > 0)
    )
    return suspect | (columns.view("max_runtime") >= 0)


def _must_stop(world: World, row: int) -> tuple[Reason | None, bool]:
    """Why the workload has to stop now, and whether for good."""
    spec, columns = world.spec(row), world.columns
    queue = int(columns.queue[row])
    entries = [world.tree.queues[q] for q in world.tree.paths[queue]] if queue >= 0 else []
    if spec.suspended:
        return reason(Code.SUSPENDED), False
    draining = next((e for e in entries if e.state is QueueState.DRAINING), None)
    if draining is not None and columns.preemptible[row] != NEVER_TAKEN:
        return reason(Code.QUEUE_DRAINING, queue=draining.name), False
    over = ran_too_long(world, row)
    if over is not None:
        return over, True
    idle = _idle(world, row, [(e.name, e.policy) for e in entries])
    if idle is not None:
        return idle, True
    return _below_minimum(world, row), False


def ran_too_long(world: World, row: int) -> Reason | None:
    """Over all attempts: an eviction does not start the count anew."""
    queue = int(world.columns.queue[row])
    allowed = [world.tree.queues[q].policy.max_runtime_ms for q in world.tree.paths[queue]] if queue >= 0 else []
    allowed.append(world.spec(row).max_runtime_ms)
    least = min((a for a in allowed if a is not None), default=None)
    if least is None or elapsed_ms(world, row) < least:
        return None
    return reason(Code.RAN_TOO_LONG, allowed=format_duration_ms(least))


def _idle(world: World, row: int, entries: list[tuple[str, QueuePolicy]]) -> Reason | None:
    busy_at, started = int(world.columns.busy_at[row]), int(world.columns.started[row])
    if busy_at < 0 or started < 0:
        return None  # never told: not known to be idle
    idle_ms = world.now_ms - max(busy_at, started)
    for name, policy in entries:
        if policy.idle_timeout_ms is not None and idle_ms >= policy.idle_timeout_ms:
            allowed = format_duration_ms(policy.idle_timeout_ms)
            return reason(Code.IDLE, idle=format_duration_ms(idle_ms), queue=name, allowed=allowed)
    return None


def _below_minimum(world: World, row: int) -> Reason | None:
    """A gang that lost replicas waits for replacements as long as its grace lasts."""
    columns, spec = world.columns, world.spec(row)
    lost_since = world.lost_since(row)
    if lost_since < 0:
        return None
    real: dict[int, set[int]] = {}
    for slot in world.slots_of(row):
        if not world.slots.promised[slot]:
            real.setdefault(int(world.slots.role[slot]), set()).add(int(world.slots.ordinal[slot]))
    if world.signature(row).is_whole(real):
        return None  # replacements have their place and are being started
    if spec.on_loss is OnLoss.REPLACE and world.now_ms - lost_since < spec.loss_grace_ms:
        return None
    left = sum(not world.slots.promised[slot] for slot in world.slots_of(row))
    return reason(Code.BELOW_MINIMUM, running=left, minimum=int(columns.minimum[row]))


def _obey_lowered_sizes(world: World) -> None:
    """Elastic work above what its queue allows per workload gives up surplus; its minimum it keeps."""
    columns = world.columns
    elastic = np.array(sorted(world.table.elastic), dtype=np.int64)
    for row in _by_name(world, elastic[(columns.held[elastic] > 0) & (columns.queue[elastic] >= 0)]):
        allowed = largest_amount(world, row)
        draft = world.drafts.get(row)
        if allowed is None or columns.preemptible[row] == NEVER_TAKEN or (draft is not None and draft.evicted):
            continue
        over = int(world.held_amount(row)[GPU_COLUMN]) - allowed
        given_up: list[int] = []
        for slots in steps_down(world, row) if over > 0 else ():
            given_up += slots
            over -= int(world.slots.amount[slots, GPU_COLUMN].sum())
            if over <= 0:
                break
        if given_up:
            path = [world.tree.queues[q] for q in world.tree.paths[int(columns.queue[row])]]
            queue = next(entry.name for entry in path if entry.policy.max_gpu_milli_per_workload == allowed)
            replicas = counted(len(given_up), "replica")
            cause = reason(Code.SIZE_LOWERED, replicas=replicas, queue=queue, allowed=allowed, resource=GPU)
            world.shrink(row, given_up, cause)


def _obey_lowered_limits(world: World) -> None:
    """A queue above its limit gives up work, in the usual order of victims, until it is inside."""
    tree = world.tree
    if not (world.used_coming > tree.limit).any():
        return
    shares = compute_shares(world)
    for queue in reversed(tree.top_down()[1:]):
        for pool in range(world.used_coming.shape[1]):
            over = world.used_coming[queue, pool] - tree.limit[queue, pool]
            if (over <= 0).all():
                continue
            _shed(world, shares, queue, pool, over)


def _shed(world: World, shares: Shares, queue: int, pool: int, over: Ints) -> None:
    inside = np.full(len(tree_queues := world.tree.queues), -1, dtype=np.int64)
    for q in range(len(tree_queues)):
        if queue in world.tree.paths[q]:
            inside[q] = 0
    units = shedding_units(world, shares, HoldingsCache(world), pool, inside)
    resource = int(np.flatnonzero(over > 0)[0])
    name = world.snapshot.resources.names[resource]
    cause = reason(
        Code.LIMIT_LOWERED,
        queue=world.tree.queues[queue].name,
        pool=world.boards[pool].view.pool.name,
        resource=name,
        limit=format_resource(name, int(world.tree.limit[queue, pool, resource])),
    )
    stopped: set[int] = set()
    shrunk: dict[int, list[int]] = {}
    for unit in _enough_to_shed(units, over):
        if unit.whole:
            stopped.add(unit.row)
        else:
            shrunk.setdefault(unit.row, []).extend(unit.slots or ())
    for row, slots in shrunk.items():
        if row not in stopped:
            world.shrink(row, slots, cause)
    for row in _by_name(world, np.array(sorted(stopped), dtype=np.int64)):
        world.evict(row, cause)


def _enough_to_shed(units: list[Unit], over: Ints) -> list[Unit]:
    """In order of preference until the limit holds; then without those that were not needed after all."""
    chosen: list[Unit] = []
    left = over.copy()
    for unit in units:
        if (left <= 0).all():
            break
        if ((unit.amount > 0) & (left > 0)).any():
            chosen.append(unit)
            left = left - unit.amount
    chosen = with_steps_before(chosen)
    for unit in reversed(list(chosen)):
        total = sum((u.amount for u in chosen if u is not unit), np.zeros_like(over))
        if (over - total <= np.maximum(left, 0)).all() and not any(unit in u.after for u in chosen):
            chosen = [u for u in chosen if u is not unit]
    return chosen


def _room_is_free(world: World, slots: list[int]) -> bool:
    """Whether promised slots, and the queues they count in, have their room by now."""
    pool = world.pool_of_slot(slots[0])
    board = world.boards[pool]
    need_scalars: dict[int, Ints] = {}
    need_gpus: dict[tuple[int, int], int] = {}
    total = np.zeros(world.used_now.shape[2], dtype=np.int64)
    for slot in slots:
        node = int(world.node_index[world.slots.node[slot]])
        if not board.view.usable[node]:
            return False
        amount = world.slots.amount[slot]
        total += amount
        need_scalars[node] = need_scalars.get(node, 0) + amount[1:]
        for device in world.snapshot.slots.devices[slot]:
            need_gpus[(node, device)] = need_gpus.get((node, device), 0) + int(world.slots.milli[slot])
    if not all((board.now.scalars[n] >= need)[need > 0].all() for n, need in need_scalars.items()):
        return False
    if not all(board.now.gpus[at] >= milli for at, milli in need_gpus.items()):
        return False
    if _neighbours_are_leaving(world, pool, slots):
        return False
    queue = int(world.columns.queue[world.slots.workload[slots[0]]])
    return queue >= 0 and limits_allow_now(world, queue, pool, total)


def _neighbours_are_leaving(world: World, pool: int, slots: list[int]) -> bool:
    row = int(world.slots.workload[slots[0]])
    spec, chains = world.spec(row), world.signature(row).chains
    nodes: dict[int, set[int]] = {}
    for slot in slots:
        nodes.setdefault(int(world.slots.role[slot]), set()).add(int(world.node_index[world.slots.node[slot]]))
    return any(
        still_there.breaks(world, world.shape(spec, chains[role].role, pool).rules, pool, places)
        for role, places in nodes.items()
        if chains[role].role.where.neighbours
    )


def _by_name(world: World, rows: Ints) -> list[int]:
    return sorted((int(row) for row in rows), key=world.table.names.__getitem__)
