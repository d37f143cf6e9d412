"""5. Nobody waits inside its guarantee while preemptible work outside its own queue's guarantee runs on capacity it
could use (after grace and minimum run times).

The victims that could make room are tried in every combination, exactly, for gangs that can be counted (one role, no
rule of togetherness). A combination is lawful if each side is above its guarantee before each of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from optimus.model.reasons import Code
from optimus.model.workloads import Preemptible, Workload
from optimus.testing.amounts import Amount, measured_by, plus, total
from optimus.testing.body import Cycle
from optimus.testing.ledger import COMING, Ledger, Record, Replica, Stage
from optimus.testing.queue_paths import TOP, Tree
from optimus.testing.rights import (
    Use,
    attribute,
    inside_guarantees,
    protection,
    queue_use,
    ran_long_enough,
    sides,
)
from optimus.testing.seats import fits, is_counted
from optimus.testing.spaces import Spaces, occupy, spaces
from optimus.testing.waiting import (
    breaks_limit,
    costliest_amount,
    least_amount,
    listed_pools,
    quota_allows,
    standing_refusal,
    waits_for_speed,
)

MOST_VICTIMS = 8


@dataclass(frozen=True, slots=True)
class Victim:
    record: Record
    side: str
    replicas: list[Replica]
    """Those in the pool: a node may have been moved to another one under it."""
    amount: Amount


def nobody_waits_inside_guarantee(cycle: Cycle) -> list[str]:
    if not cycle.plan.complete:
        return []
    ledger = cycle.after
    tree = Tree(ledger.queues)
    use = queue_use(ledger, tree, COMING)
    touched = {action.workload for action in cycle.plan.actions}
    times = {reservation.workload: reservation for reservation in cycle.plan.reservations}
    reserved = {reservation.pool for reservation in cycle.plan.reservations}
    found = []
    for wait in cycle.plan.waiting:
        record = ledger.records.get(wait.workload)
        if record is None or wait.workload in touched or not is_counted(record.spec):
            continue
        if standing_refusal(ledger, tree, record, cycle.now_ms) is not None:
            continue
        for pool in listed_pools(ledger, record.spec):
            amount = costliest_amount(ledger, record.spec, pool)
            if pool in reserved and not inside_guarantees(tree, use, record.spec.queue, TOP, pool, amount):
                continue  # a reservation yields only to work that is inside its guarantee up to the top
            if waits_for_speed(ledger, record.spec, times.get(wait.workload), pool):
                continue
            found += _could_have(cycle, tree, use, record.spec, pool, amount, touched, wait.reason.code)
    return found


def _could_have(
    cycle: Cycle, tree: Tree, use: Use, asker: Workload, pool: str, amount: Amount, touched: set[str], code: Code
) -> list[str]:
    ledger = cycle.after
    if not amount or amount != least_amount(ledger, asker, pool):
        return []  # its share depends on where it lands
    if asker.preemptible in (Preemptible.NO, Preemptible.SURPLUS) and not quota_allows(
        ledger, tree, asker, pool, use={}
    ):
        return []
    victims = _victims(cycle, tree, use, asker, pool, amount, touched)
    room = spaces(ledger, pool, COMING)
    for count in range(1, min(len(victims), MOST_VICTIMS) + 1):
        for chosen in combinations(victims[:MOST_VICTIMS], count):
            if _is_lawful(tree, use, pool, chosen) and _helps(ledger, tree, use, asker, pool, amount, room, chosen):
                names = ", ".join(v.record.spec.id for v in chosen)
                return [f"{asker.id} waits ({code}) inside its guarantee in {pool}, and {names} could give way"]
    return []


def _victims(
    cycle: Cycle, tree: Tree, use: Use, asker: Workload, pool: str, amount: Amount, touched: set[str]
) -> list[Victim]:
    """Work that may be taken whole: old, preemptible, unprotected, on a side that is above its guarantee."""
    found = []
    for name, (least, _surplus) in sorted(attribute(cycle.after, tree, pool, cycle.now_ms).items()):
        record = least.record
        pair = sides(tree, asker.queue, record.spec.queue)
        if not tree.path(record.spec.queue):
            pair = (TOP, TOP)  # nobody guarantees it anything
        if pair is None or name in touched or record.spec.preemptible in (Preemptible.NO, Preemptible.SURPLUS):
            continue
        if not inside_guarantees(tree, use, asker.queue, pair[0], pool, amount):
            continue
        if (
            record.started_ms is None
            or any(r.stage is not Stage.RUNNING for r in record.live.values())
            or record.leaving
        ):
            continue
        guarded = pair[1] != TOP and protection(tree, least, pair[1]) is not None
        if not guarded and ran_long_enough(tree, record, cycle.now_ms, reclaim=True):
            mine = [r for r in record.live.values() if cycle.after.pool_of(r.node) == pool]
            found.append(Victim(record, pair[1], mine, total(r.amount for r in mine)))
    return found


def _is_lawful(tree: Tree, use: Use, pool: str, chosen: tuple[Victim, ...]) -> bool:
    """Each side above its guarantee before each step: the largest step last."""
    for side in {victim.side for victim in chosen} - {TOP}:
        mine = [victim.amount for victim in chosen if victim.side == side]
        resources = {r for amount in mine for r in measured_by(amount)}
        if len(resources) != 1:
            return False  # measured by different things: leave it
        resource = resources.pop()
        numbers = sorted(amount.get(resource, 0) for amount in mine)
        above = use[side, pool].get(resource, 0) - tree.guarantee(side, pool, resource)
        if above - sum(numbers[:-1]) <= 0:
            return False
    return True


def _helps(
    ledger: Ledger, tree: Tree, use: Use, asker: Workload, pool: str, amount: Amount, room: Spaces,
    chosen: tuple[Victim, ...],
) -> bool:  # fmt: skip
    """Whether the asker fits, and its limits hold, once these have left."""
    left = {key: dict(value) for key, value in use.items()}
    for victim in chosen:
        for queue in tree.path(victim.record.spec.queue):
            plus(left[queue, pool], victim.amount, -1)
        for replica in victim.replicas:
            occupy(room[replica.node], victim.record.spec, replica, -1)
    enough = not breaks_limit(tree, left, asker.queue, pool, amount) and bool(fits(asker, ledger.pools[pool], room))
    for victim in chosen:
        for replica in victim.replicas:
            occupy(room[replica.node], victim.record.spec, replica)
    return enough
