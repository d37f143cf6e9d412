"""Who may take from whom: each victim of a statement must have been the beneficiary's to take.

- in the same queue: strictly lower priority for whole workloads, anything above a minimum without asking, and the
  turn of work of equal priority that can continue from its checkpoint, has had a turn worth its restart and is later
  in the order of the policy;
- from another queue: the asker's side stays inside its guarantee (then the other side must be above its own), or
  inside its share (then the other side must be above its share), and the victim lies inside no guarantee;
- moved for somebody: also anything that can continue elsewhere, if it is not protected from stopping at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from optimus.model.plans import Evict, Grow, Hold, Shrink, Start
from optimus.model.reasons import Code
from optimus.model.workloads import Preemptible, WorkloadClass
from optimus.testing.amounts import Amount, measured_by, replica_amount, total
from optimus.testing.body import Cycle
from optimus.testing.fair_shares import Unknown, fair_shares
from optimus.testing.gang_rules import minimum_seats
from optimus.testing.ledger import COMING, Ledger, Record
from optimus.testing.queue_paths import Tree
from optimus.testing.rights import (
    Item,
    Use,
    attribute,
    inside_guarantees,
    measures,
    protection,
    queue_use,
    ran_long_enough,
    sides,
)

Gain = Start | Hold | Grow
Due = dict[tuple[str, str], int]
"""(queue, resource) -> its share in the pool that is talked about."""


def unlawful(
    cycle: Cycle, tree: Tree, ledger: Ledger, asker: str, victims: list[Evict | Shrink], gain: Gain
) -> list[str]:
    pool = ledger.pool_of(gain.placements[0].node)
    if pool is None:
        return []
    by_claimant: dict[str, list[Evict | Shrink]] = {asker: []}
    for victim in victims:
        by_claimant.setdefault(claimant(ledger, victim), []).append(victim)
    found: list[str] = []
    for due in _dues(cycle, tree, ledger, pool):
        found = _unlawful(cycle, tree, ledger, asker, by_claimant[asker], pool, gain, due)
        for other, theirs in sorted(by_claimant.items()):
            if other != asker:  # it took first, and then gave way itself
                found += _unlawful(cycle, tree, ledger, other, theirs, pool, None, due)
        if not found:
            break
    return found


def _dues(cycle: Cycle, tree: Tree, ledger: Ledger, pool: str) -> Iterator[Due]:
    """What queues are due in the pool: as the plan says, and after what stands before in the plan. Work that lists
    several pools asks in the first, but once it has room it asks for more where that is."""
    yield {(s.queue, s.resource): s.share for s in cycle.plan.shares if s.pool == pool}
    with suppress(Unknown):
        shares, _ = fair_shares(ledger, tree, cycle.now_ms)
        yield {(queue, resource): n for (queue, where, resource), n in shares.items() if where == pool}


def claimant(ledger: Ledger, victim: Evict | Shrink) -> str:
    """For whom the victim had to leave by its cause; the room may have gone to somebody with a better right since."""
    named = str(victim.cause.facts.get("beneficiary", ""))
    return named if named in ledger.records else victim.beneficiary


def _unlawful(
    cycle: Cycle, tree: Tree, ledger: Ledger, asker: str, victims: list[Evict | Shrink], pool: str, gain: Gain | None,
    shares: Due,
) -> list[str]:  # fmt: skip
    amount = _amount(cycle, asker, gain) if gain is not None else _least(ledger.records[asker])
    use = queue_use(ledger, tree, COMING)
    items = attribute(ledger, tree, pool, cycle.now_ms)
    spec = ledger.records[asker].spec
    found = []
    by_side: dict[str, list[Amount]] = {}
    for victim in victims:
        record = ledger.records[victim.workload]
        if record.spec.id not in items:
            continue
        pair = sides(tree, spec.queue, record.spec.queue)
        wrong = _protected(cycle, tree, spec.queue, tree.priority(spec), record, victim, items[record.spec.id], pair)
        if wrong is not None:
            found.append(f"{victim.workload} gives way to {asker} ({victim.cause.code}), but {wrong}")
        elif pair is not None and not _is_only_moved(cycle, tree, record, victim):
            by_side.setdefault(pair[1], []).append(_given(ledger, pool, record, victim))
            if not _may_ask(tree, use, shares, spec.queue, pair[0], pool, amount):
                found.append(
                    f"{asker} takes from {victim.workload}, but {pair[0]} is not inside what it is due in {pool}"
                )
    for side, given in by_side.items():
        found += _excess(tree, use, shares, spec.queue, side, pool, amount, given, asker)
    return found


def _is_only_moved(cycle: Cycle, tree: Tree, record: Record, victim: Evict | Shrink) -> bool:
    """It goes on elsewhere, and nothing protects it from being asked to."""
    return (
        isinstance(victim, Evict)
        and victim.moved
        and record.spec.checkpoint is not None
        and ran_long_enough(tree, record, cycle.now_ms, reclaim=False)
    )


def _protected(
    cycle: Cycle, tree: Tree, queue: str, priority: int, record: Record, victim: Evict | Shrink,
    items: tuple[Item, Item | None], pair: tuple[str, str] | None,
) -> str | None:  # fmt: skip
    """Why this victim was not to be touched; None if it was."""
    spec = record.spec
    whole = isinstance(victim, Evict)
    if spec.preemptible is Preemptible.NO:
        return "it may never be preempted"
    if spec.preemptible is Preemptible.SURPLUS and whole:
        return "its minimum may never be preempted"
    if _is_only_moved(cycle, tree, record, victim):
        return None
    item = items[0] if whole else items[1]
    if pair is None:
        if not tree.path(spec.queue):
            return None  # its queue is gone: whoever is due something may take it
        if spec.queue != queue:
            return "one of the two queues is above the other"
        if whole and victim.cause.code is Code.TURN_OVER:
            return _keeps_its_turn(cycle, tree, record, priority)
        if whole and tree.priority(spec) >= priority:
            return f"its priority {tree.priority(spec)} is not below {priority}"
        if whole and not ran_long_enough(tree, record, cycle.now_ms, reclaim=False):
            return "it has not run for its minimum time before preemption"
        attended = spec.workload_class is not WorkloadClass.UNATTENDED and spec.preemptible is Preemptible.DEFAULT
        if whole and (attended or spec.preemptible is Preemptible.LENT) and items[0].inside:
            return f"{spec.workload_class} work is protected inside the guarantee of {sorted(items[0].inside)}"
        return (
            None if victim.cause.code is not Code.RECLAIMED else "it is in the same queue, nothing is taken back there"
        )
    if item is None:
        return "it has nothing above its minimum"
    guarded = protection(tree, item, pair[1])
    if guarded is not None:
        return f"it lies inside the guarantee of {guarded}"
    if whole and not ran_long_enough(tree, record, cycle.now_ms, reclaim=True):
        return "it has not run for its minimum time before reclaim"
    return None if victim.cause.code is not Code.PREEMPTED else "it is in another queue, priority does not count there"


def _keeps_its_turn(cycle: Cycle, tree: Tree, record: Record, priority: int) -> str | None:
    """Why running work of the same queue need not give its turn; None if it must. The order itself is the policy's."""
    spec = record.spec
    if tree.priority(spec) != priority:
        return f"turns are among equals, and its priority is {tree.priority(spec)}, not {priority}"
    if spec.checkpoint is None:
        return "it could not continue where it stopped"
    if spec.preemptible is Preemptible.DEFAULT and spec.workload_class is not WorkloadClass.UNATTENDED:
        return f"{spec.workload_class} work keeps its turn"
    if spec.preemptible is Preemptible.LENT:
        return "it leaves only what is lent"
    if record.started_ms is None:
        return "it has not begun its turn"
    if not ran_long_enough(tree, record, cycle.now_ms, reclaim=False):
        return "it has not run for its minimum time before preemption"
    if cycle.now_ms - record.started_ms < 2 * spec.restart_cost_ms:
        return "its turn has not lasted for twice its restart"
    return None


def _may_ask(tree: Tree, use: Use, shares: Due, queue: str, own: str, pool: str, amount: Amount) -> bool:
    if inside_guarantees(tree, use, queue, own, pool, amount):
        return True
    used = use.get((own, pool), {})
    return all(used.get(r, 0) + amount.get(r, 0) <= shares.get((own, r), 0) for r in measures(tree, own, pool, amount))


def _excess(
    tree: Tree, use: Use, shares: Due, queue: str, side: str, pool: str, amount: Amount,
    given: list[Amount], asker: str,
) -> list[str]:  # fmt: skip
    """The side must be above its bound before each step; in the best order, the largest step is the last."""
    own = next(q for q in tree.path(queue) if tree.queues[q].parent == tree.queues[side].parent)
    by_guarantee = inside_guarantees(tree, use, queue, own, pool, amount)
    resources = {r for step in given for r in measured_by(step)}
    if len(resources) != 1:
        return []
    resource = resources.pop()
    bound = tree.guarantee(side, pool, resource) if by_guarantee else shares.get((side, resource), 0)
    numbers = sorted(step.get(resource, 0) for step in given)
    above = use.get((side, pool), {}).get(resource, 0) - bound
    if above - sum(numbers[:-1]) > 0:
        return []
    what = "guarantee" if by_guarantee else "share"
    return [f"{asker} takes {sum(numbers)} {resource} from {side}, which was only {above} above its {what} in {pool}"]


def _given(ledger: Ledger, pool: str, record: Record, victim: Evict | Shrink) -> Amount:
    """What it gives up in the pool: a node may have been moved to another one under it."""
    keys = list(record.live) if isinstance(victim, Evict) else victim.slots
    replicas = [record.live[key] for key in keys if key in record.live]
    return total(replica.amount for replica in replicas if ledger.pool_of(replica.node) == pool)


def _least(record: Record) -> Amount:
    """What it asks for at its smallest; where the share follows from a device, it may be anything."""
    seats = minimum_seats(record.spec.gang)
    return total(replica_amount(s.request, s.request.gpu_count, s.request.gpu_milli) for s in seats)


def _amount(cycle: Cycle, asker: str, gain: Gain) -> Amount:
    """What it asks others for: a start asks for the minimum and may grow into what is idle then."""
    record = cycle.after.records.get(asker)
    if record is None:
        return {}
    keys = [(p.role, p.ordinal) for p in gain.placements]
    if isinstance(gain, Start):
        least = {(seat.role, seat.ordinal) for seat in minimum_seats(record.spec.gang)}
        keys = [key for key in keys if key in least]
    return total(record.live[key].amount for key in keys if key in record.live)
