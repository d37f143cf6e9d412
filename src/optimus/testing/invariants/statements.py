"""6. Every eviction is part of a complete, simulated, accepted statement: the beneficiary fits afterwards, the victims
are minimal, and no victim is evicted for nothing.

A statement in a plan is a run of evictions and shrinks for one beneficiary, followed by the room it gets. It is judged
in the world as it was at that point of the plan. Victims must also have been the beneficiary's to take.
Work that is stopped for nobody must have a cause of its own, and that cause must be true.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optimus.model.nodes import Node
from optimus.model.plans import Drop, Evict, Grow, Hold, Shrink, Start
from optimus.model.workloads import Request
from optimus.testing.amounts import Amount, plus, total
from optimus.testing.body import Cycle
from optimus.testing.gang_rules import is_single_role, minimum_seats
from optimus.testing.invariants.releases import unfounded_stops
from optimus.testing.invariants.taking import claimant, unlawful
from optimus.testing.ledger import COMING, Key, Ledger, Record
from optimus.testing.queue_paths import TOP, Tree
from optimus.testing.rights import Use, inside_guarantees, queue_use
from optimus.testing.seats import is_counted
from optimus.testing.spaces import most_fitting, occupy, request_of, spaces
from optimus.testing.waiting import breaks_limit


@dataclass(slots=True)
class Statement:
    beneficiary: str
    ledger: Ledger
    """As it was before its first action, with everything that stands before it in the plan."""
    lean: Ledger
    """The same without growth, which may stand before it and have come after."""
    victims: list[Evict | Shrink] = field(default_factory=list)
    gain: Start | Hold | Grow | None = None


def complete_statements(cycle: Cycle) -> list[str]:
    found = unfounded_stops(cycle)
    tree = Tree(cycle.before.queues)
    for statement in statements(cycle):
        found += _gain(cycle, statement)
        if statement.gain is not None and [v.workload for v in statement.victims] == [statement.beneficiary]:
            found += _moves_somewhere(statement)
        elif statement.gain is not None and statement.beneficiary in statement.ledger.records:
            found += _minimal(cycle, tree, statement)
            asker, victims, gain = statement.beneficiary, statement.victims, statement.gain
            if unlawful(cycle, tree, statement.lean, asker, victims, gain) and unlawful(
                cycle, tree, _grown(cycle, statement), asker, victims, gain
            ):
                found += unlawful(cycle, tree, statement.ledger, asker, victims, gain)
    moved = {a.workload for a in cycle.plan.actions if isinstance(a, Evict) and a.moved}
    held = {a.workload for a in cycle.plan.actions if isinstance(a, Hold)}
    found += [f"{name} is moved, but nothing is held for it" for name in sorted(moved - held)]
    return found


def statements(cycle: Cycle) -> list[Statement]:
    found: list[Statement] = []
    ledger, lean = cycle.before.copy(), cycle.before.copy()
    current: Statement | None = None
    for action in cycle.plan.actions:
        if isinstance(action, Evict | Shrink) and action.beneficiary:
            if current is None or current.beneficiary != action.beneficiary or current.gain is not None:
                current = Statement(action.beneficiary, ledger.copy(), lean.copy())
                found.append(current)
            current.victims.append(action)
        elif isinstance(action, Start | Hold | Grow) and current is not None and current.gain is None:
            if action.workload == current.beneficiary:
                current.gain = action
            else:
                current = None
        elif isinstance(action, Drop):
            current = None
        ledger.carry_out_one(action, cycle.now_ms)
        if isinstance(action, Start) and action.workload in lean.records and not lean.records[action.workload].live:
            least = {(s.role, s.ordinal) for s in minimum_seats(lean.records[action.workload].spec.gang)}
            places = tuple(p for p in action.placements if (p.role, p.ordinal) in least)
            lean.carry_out_one(Start(action.workload, action.pool, places), cycle.now_ms)
        elif not isinstance(action, Grow):
            lean.carry_out_one(action, cycle.now_ms)
    return found


def _gain(cycle: Cycle, statement: Statement) -> list[str]:
    """The beneficiary gets room in the same plan, and has it when the plan is over."""
    name = statement.beneficiary
    victims = ", ".join(v.workload for v in statement.victims)
    if statement.gain is None:
        return [f"{victims} give way to {name}, which gets nothing for it"]
    record = cycle.after.records.get(name)
    if record is None:
        return [f"{victims} give way to {name}, which is not there any more"]
    for placement in statement.gain.placements:
        replica = record.live.get((placement.role, placement.ordinal))
        if replica is None or replica.node != placement.node:
            return [f"{victims} give way to {name}, which loses its room again in the same plan"]
    return []


def _moves_somewhere(statement: Statement) -> list[str]:
    """Who leaves for itself, to be on other devices, must not come back to the same ones."""
    record, gain = statement.ledger.records[statement.beneficiary], statement.gain
    assert gain is not None
    here = {key: (replica.node, tuple(replica.devices)) for key, replica in record.live.items()}
    there = {(p.role, p.ordinal): (p.node, p.devices) for p in gain.placements}
    return [f"{statement.beneficiary} is moved to where it is"] if there.items() <= here.items() else []


def _grown(cycle: Cycle, statement: Statement) -> Ledger:
    """With growth: its steps stand at the end of the plan, but may have been taken before."""
    ledger = statement.ledger.copy()
    for growth in cycle.plan.actions:
        if isinstance(growth, Grow) and growth is not statement.gain:
            ledger.carry_out_one(growth, cycle.now_ms)
    return ledger


def _minimal(cycle: Cycle, tree: Tree, statement: Statement) -> list[str]:
    """Leaving out any one victim must break the fit. Only where counting is exact."""
    ledger, gain = _grown(cycle, statement), statement.gain
    assert gain is not None
    asker = statement.ledger.records[statement.beneficiary]
    if not is_counted(asker.spec) or not is_single_role(asker.spec.gang):
        return []
    needed = len(minimum_seats(asker.spec.gang)) if not asker.live else len(gain.placements)
    amount = total(_amount_of(cycle, statement, key) for key in [(p.role, p.ordinal) for p in gain.placements][:needed])
    pool = ledger.pool_of(gain.placements[0].node)
    use = queue_use(ledger, tree, COMING)
    reserved = {reservation.pool for reservation in cycle.plan.reservations}
    if pool is None or (pool in reserved and not inside_guarantees(tree, use, asker.spec.queue, TOP, pool, amount)):
        return []  # room that is reserved for another was not to be had, and nobody can see how much that was
    found = []
    for spared in (v for v in statement.victims if claimant(ledger, v) == statement.beneficiary):
        others = [
            (ledger.records[v.workload], key) for v in statement.victims for key in _keys(ledger, v) if v is not spared
        ]
        for kept in _could_keep(ledger.records[spared.workload], spared):
            freed = others + [(ledger.records[spared.workload], k) for k in _keys(ledger, spared) if k not in kept]
            if _fits_without(ledger, tree, use, asker, pool, amount, needed, freed, gain.placements[0].node):
                what = f"{spared.workload} gives up {_names(kept)} for {statement.beneficiary}"
                found.append(f"{what} for nothing: it fits without that")
                break
    return found


def _keys(ledger: Ledger, victim: Evict | Shrink) -> list[Key]:
    return list(ledger.records[victim.workload].live) if isinstance(victim, Evict) else list(victim.slots)


def _could_keep(record: Record, victim: Evict | Shrink) -> list[list[Key]]:
    """The smallest things that could have been left to a victim: its minimum, or one step of its surplus."""
    if isinstance(victim, Evict):
        keys = sorted(record.live)
        return [keys[: len(minimum_seats(record.spec.gang))] if is_single_role(record.spec.gang) else keys]
    slots = sorted(victim.slots)
    if not is_single_role(record.spec.gang):
        return [slots]
    sizes = record.spec.gang.roles[0].sizes
    if not sizes:
        return [[key] for key in slots]
    left = len(record.live) - len(slots)
    step = next((size - left for size in sizes if size > left), len(slots))
    return [slots[:step]]


def _names(keys: list[Key]) -> str:
    return ", ".join(f"{role}/{ordinal}" for role, ordinal in keys)


def _amount_of(cycle: Cycle, statement: Statement, key: Key) -> Amount:
    record = cycle.after.records.get(statement.beneficiary)
    return record.live[key].amount if record is not None and key in record.live else {}


def _fits_without(
    ledger: Ledger, tree: Tree, use: Use, asker: Record, pool: str, amount: Amount, needed: int,
    freed: list[tuple[Record, Key]], like: str,
) -> bool:  # fmt: skip
    """`like`: a node that it got; a gang stays on equally fast ones, and on smaller devices it would take more."""
    room = spaces(ledger, pool, COMING)
    left = {key: dict(value) for key, value in use.items()}
    for record, key in freed:
        replica = record.live[key]
        if replica.node not in room:
            continue  # its node was moved to another pool under it
        for queue in tree.path(record.spec.queue):
            plus(left[queue, pool], replica.amount, -1)
        occupy(room[replica.node], record.spec, replica, -1)
    if breaks_limit(tree, left, asker.spec.queue, pool, amount):
        return False
    request = request_of(asker.spec, next(iter(minimum_seats(asker.spec.gang))).role)
    speed = {name: _speed_percent(request, ledger.nodes[name]) for name in room}
    usable = [
        space
        for name, space in room.items()
        if (needed < 2 or speed[name] == speed[like])
        and (
            not request.gpu_memory_mib or _least_memory_mib(ledger.nodes[name]) >= _least_memory_mib(ledger.nodes[like])
        )
    ]
    return sum(most_fitting(space, asker.spec, request) for space in usable) >= needed


def _speed_percent(request: Request, node: Node) -> int:
    """Of the fastest device there that it may use; all are alike to work that names no models."""
    named = {each.model: each.speed_percent for each in request.models}
    return max((named.get(device.model, 0) for device in node.devices), default=0) if named else 100


def _least_memory_mib(node: Node) -> int:
    return min((device.memory_mib for device in node.devices), default=0)
