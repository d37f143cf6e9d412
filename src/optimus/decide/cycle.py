"""One cycle, from snapshot to plan. This is the story; every step is a module of its own.

    release     promises whose room is free, start; what must not go on    releasing.py
    shares      what each queue is due                                     shares.py
    replace     lost replicas of running gangs                             growing.py
    allocate    turn by turn: idle room, taking back, moving, reserving    allocating.py
    size        elastic work that can be stopped gets its sizes together   sizing.py
    grow        other elastic work into what is left                       growing.py
    match       running work to the devices from which it gains most       matching.py

All but the first two are repeated until a pass changes nothing. The world they leave is the world the next
cycle starts from, so deciding again with nothing new gives an empty plan.

A start can be taken back by whoever has a better right to its room. Where others were stopped in between, they may have
been stopped for nothing: the plan is made again, and that workload has its turn behind everybody else.
"""

from __future__ import annotations

import numpy as np

from optimus.decide.allocating import Allocator
from optimus.decide.growing import Grower
from optimus.decide.lines import line_up
from optimus.decide.matching import Matcher
from optimus.decide.policies.policy import Policy
from optimus.decide.quotas import Known, standing_refusal, timed_queues, waited_too_long
from optimus.decide.releasing import drop_holds, keep_promises, ran_too_long, release
from optimus.decide.shares import compute_shares
from optimus.decide.sizing import Sizer
from optimus.decide.taking import Taker
from optimus.decide.world import World
from optimus.decide.writing_down import write_down
from optimus.model.plans import Budget, Plan
from optimus.model.queues import WaitAction
from optimus.model.reasons import Code, Reason, reason
from optimus.state.snapshot import Snapshot

SECOND_THOUGHTS = 4
"""How often a plan is made again because it took back a start for which others had made way."""


def decide(snapshot: Snapshot, policy: Policy, now_ms: int, seed: int = 0, budget: Budget | None = None) -> Plan:
    """What to do now. Pure: the same arguments give the same plan. `seed` is for policies that draw lots."""
    behind: set[int] = set()
    left = SECOND_THOUGHTS
    while True:
        world = World(snapshot, policy, now_ms, budget or Budget(), seed)
        plan = _decide(world, behind, final=left == 0)
        if plan is not None:
            return plan
        behind |= world.regretted
        left -= 1


def _decide(world: World, behind: set[int], *, final: bool) -> Plan | None:
    """A plan in which those `behind` come after everybody else; None if somebody else had better come behind, too."""
    keep_promises(world)
    drop_holds(world)
    release(world)
    refusals, hopefuls = _sort_out(world)
    hopefuls += _waiting_again(world, refusals)
    shares = compute_shares(world)
    taker = Taker(world, shares, hopefuls)
    allocator = Allocator(world, shares, taker)
    grower = Grower(world, shares, taker)
    sizer = Sizer(world, shares, taker)
    allocator.is_served, grower.is_sized = sizer.will_serve, sizer.is_sized
    matcher = Matcher(world, taker)
    for number in range(world.budget.passes):
        before = world.script.version
        if number:  # what was done may have changed what everybody is due, as the next cycle will see it
            taker.shares = allocator.shares = grower.shares = sizer.shares = compute_shares(world)
        grower.replace_lost()
        grower.mend_sizes()
        hopefuls += _waiting_again(world, refusals)
        in_line = [row for row in _still_waiting(world, hopefuls) if number or row not in behind]
        lines = line_up(world, shares, in_line)
        sizer.new_pass()
        allocator.run(lines)
        if not final and not world.regretted <= behind:
            return None
        sizer.run(row for line in lines.values() for row in line)
        grower.run()
        taker.fulfil_promises()
        matcher.run()
        if (world.script.version == before and (number or not behind)) or _all_started(world, hopefuls):
            break
    else:
        world.unreached.add("passes")
        hopefuls += _waiting_again(world, refusals)
    for row in _still_waiting(world, hopefuls):
        if row not in allocator.waiting.reasons:
            refusals[row] = reason(Code.NOT_REACHED)
    return write_down(world, shares, allocator.waiting, refusals)


def _still_waiting(world: World, rows: list[int]) -> list[int]:
    drafts = world.drafts
    return [row for row in rows if row not in drafts or world.waits(row)]


def _all_started(world: World, hopefuls: list[int]) -> bool:
    """Whether another pass would find nothing to do: everybody has started, and nothing leaves, lacks or can grow."""
    if world.table.elastic or world.table.oversized or world.requeued or (world.columns.view("lost_since") >= 0).any():
        return False
    return all(draft.only_starts() for draft in world.drafts.values()) and not _still_waiting(world, hopefuls)


def _sort_out(world: World) -> tuple[dict[int, Reason], list[int]]:
    """Those that cannot be considered, with the reason; and those that can."""
    columns = world.columns
    refusals: dict[int, Reason] = {}
    hopefuls: list[int] = []
    known: Known = {}
    timed = world.snapshot.worked_out.once("timed queues", lambda: timed_queues(world.tree))
    rows = sorted(world.table.pending, key=world.table.names.__getitem__)
    at = np.array(rows, dtype=np.int64)
    kinds = columns.queue[at] * len(world.table.signatures) + columns.signature[at]
    plain = (columns.queue[at] >= 0) & (columns.suspended[at] == 0) & (columns.retry_at[at] <= world.now_ms)
    plain &= columns.obstructed[at] == 0
    plain &= not any(queue.namespaces for queue in world.tree.queues)  # then its kind tells everything
    welcome: set[int] = set()
    for row, kind, is_plain in zip(rows, kinds.tolist(), plain.tolist(), strict=True):
        refusal = None if is_plain and kind in welcome else standing_refusal(world, row, known)
        if refusal is None and is_plain:
            welcome.add(kind)
        if refusal is not None:
            refusals[row] = refusal
            if refusal.code is not Code.BACKING_OFF:
                world.refused.add(row)
        elif (columns.queue[row] not in timed and columns.max_runtime[row] < 0) or not _is_over(world, row):
            hopefuls.append(row)
    return refusals, hopefuls


def _is_over(world: World, row: int) -> bool:
    """Refuse for good what ran or waited too long."""
    over = ran_too_long(world, row) or waited_too_long(world, row, WaitAction.FAIL)
    if over is not None:
        world.reject(row, over)
    return over is not None


def _waiting_again(world: World, refusals: dict[int, Reason]) -> list[int]:
    """Those that gave up held room in this very cycle and may be tried again."""
    again = []
    for row in dict.fromkeys(world.requeued):
        refusal = standing_refusal(world, row)
        if refusal is not None:
            refusals[row] = refusal
        elif not _is_over(world, row):
            again.append(row)
    world.requeued.clear()
    return again
