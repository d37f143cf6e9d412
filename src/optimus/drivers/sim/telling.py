"""What happened and what was decided, in words, while the book still shows how it was before.

Why: the same sentences are printed by the command line and kept in the record.
Owns: one sentence per event and per action.
Must not: change the book.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from optimus.drivers.sim.book import Book, Entry, Key, Replica
from optimus.drivers.sim.outcome import ActionTold, CycleTold, Line, ReplicaTold, ReservationTold, WaitTold, Why
from optimus.drivers.sim.wording import (
    count,
    describe_gang,
    describe_places,
    fold,
    list_devices,
    natural,
    short,
    shorten,
)
from optimus.model import observations as seen
from optimus.model.nodes import Node
from optimus.model.observations import Observation, Outcome
from optimus.model.plans import Action, Drop, Evict, Grow, Hold, Placement, Plan, Reject, Reservation, Shrink, Start
from optimus.model.queues import Queue, QueueState
from optimus.model.reasons import Reason
from optimus.model.slots import Phase
from optimus.model.units import format_duration_ms, format_resource, format_time_ms
from optimus.model.workloads import Workload

_ENDINGS = {Outcome.SUCCEEDED: "finishes", Outcome.FAILED: "fails", Outcome.CANCELLED: "cancelled"}
_PHASES = {
    Phase.HELD: "starting",
    Phase.BINDING: "starting",
    Phase.RUNNING: "running",
    Phase.RELEASING: "leaving",
}


def tell_facts(facts: Iterable[Observation]) -> Iterator[Line]:
    """Of what came true by itself, that which a reader would not expect."""
    failed: dict[str, str] = {}
    for fact in facts:
        if isinstance(fact, seen.WorkloadEnded):
            yield Line(kind="finishes", subject=fact.workload, text="has run as long as it said")
        elif isinstance(fact, seen.SlotFailed):
            failed[fact.workload] = fact.failure
    for workload, failure in failed.items():
        yield Line(kind="start fails", subject=workload, text=failure)


def tell_events(events: Iterable[Observation], book: Book) -> Iterator[Line]:
    lost: dict[str, list[str]] = {}
    for event in events:
        match event:
            case seen.WorkloadSeen(workload):
                yield from _tell_workload(workload, book.entries.get(workload.id))
            case seen.WorkloadEnded(workload_id, outcome):
                yield Line(kind=_ENDINGS[outcome], subject=workload_id, text="")
            case seen.NodeSeen(node):
                yield from _tell_node(node, book.nodes.get(node.name))
            case seen.NodeGone(name):
                yield Line(kind="removed", subject=f"node {name}", text="with everything on it")
            case seen.QueueSeen(queue):
                yield _tell_queue(queue, book.queues.get(queue.name))
            case seen.QueueGone(name):
                yield Line(kind="removed", subject=f"queue {name}", text="")
            case seen.PoolSeen(pool):
                kind = "changes" if pool.name in book.pools else "added"
                yield Line(kind=kind, subject=f"pool {pool.name}", text="")
            case seen.PoolGone(name):
                yield Line(kind="removed", subject=f"pool {name}", text="")
            case seen.SlotGone(workload_id, role, ordinal):
                lost.setdefault(workload_id, []).append(f"{role}-{ordinal}")
            case _:
                yield from _tell_report(event)
    for workload_id, replicas in lost.items():
        yield Line(kind="loses", subject=workload_id, text=f"{count(len(replicas), 'replica')}: {fold(replicas)}")


def tell_actions(plan: Plan, book: Book) -> tuple[ActionTold, ...]:
    """Must be called before the plan is taken up: it says from where to where."""
    promised = {action.workload: action.placements for action in plan.actions if isinstance(action, Hold)}
    moving = {action.workload for action in plan.actions if isinstance(action, Evict) and action.moved}
    told = []
    replicas: dict[str, int] = {}  # as the plan goes on: one workload may gain and give in the same plan
    for action in plan.actions:
        name, entry = action.workload, book.entries[action.workload]
        has = replicas.setdefault(name, sum(not replica.promised for replica in entry.live.values()))
        if isinstance(action, Start | Grow):
            replicas[name] = has + len(action.placements)
        elif isinstance(action, Shrink):
            replicas[name] = has - len(action.slots)
        if not (isinstance(action, Hold) and name in moving):  # said with the move
            told.append(_tell_action(action, entry, promised.get(name, ()), replicas[name]))
    return tuple(told)


def tell_cycle(
    number: int,
    at_ms: int,
    plan: Plan,
    book: Book,
    clock: Callable[[int], str],
    *,
    events: Iterable[Line] = (),
    problems: Iterable[object] = (),
    note: str = "",
) -> CycleTold:
    """Must be called before the plan is taken up, like `tell_actions`."""
    return CycleTold(
        number=number,
        clock=clock(at_ms),
        time=format_time_ms(at_ms),
        at_ms=at_ms,
        note=note,
        events=tuple(events),
        actions=tell_actions(plan, book),
        waiting=_tell_waiting(plan, clock),
        conditions=plan.conditions,
        problems=tuple(map(str, problems)),
        complete=plan.complete,
        unreached=plan.unreached,
    )


def tell_reservation(reservation: Reservation | None, clock: Callable[[int], str]) -> ReservationTold | None:
    if reservation is None:
        return None
    at_ms = reservation.at_ms
    return ReservationTold(
        pool=reservation.pool, clock=clock(at_ms), time=format_time_ms(at_ms), at_ms=at_ms, nodes=reservation.nodes
    )


def _tell_waiting(plan: Plan, clock: Callable[[int], str]) -> tuple[WaitTold, ...]:
    reserved = {reservation.workload: reservation for reservation in plan.reservations}
    return tuple(
        WaitTold(workload=wait.workload, reason=why, reservation=tell_reservation(reserved.get(wait.workload), clock))
        for wait in plan.waiting
        if (why := Why.of(wait.reason)) is not None
    )


def tell_replica(replica: Replica) -> ReplicaTold:
    return ReplicaTold(
        role=replica.role,
        ordinal=replica.ordinal,
        node=replica.node,
        devices=replica.devices,
        devices_known=replica.exact,
        gpu_milli_per_device=replica.gpu_milli,
        phase="promised" if replica.promised else _PHASES[replica.phase],
    )


# -- events -----------------------------------------------------------------------------------------------------


def _tell_workload(workload: Workload, entry: Entry | None) -> Iterator[Line]:
    if entry is None:
        text = f"{describe_gang(workload)}, queue {workload.queue}"
        yield Line(kind="submitted", subject=workload.id, text=text)
    elif workload.suspended != entry.spec.suspended:
        yield Line(kind="suspended" if workload.suspended else "resumed", subject=workload.id, text="")
    elif changed := _differences(entry.spec, workload):
        yield Line(kind="changes", subject=workload.id, text=changed)


def _tell_node(node: Node, before: Node | None) -> Iterator[Line]:
    subject = f"node {node.name}"
    if before is None:
        yield Line(kind="added", subject=subject, text=count(len(node.devices), "GPU"))
        return
    if node.ready != before.ready:
        yield Line(kind="recovers" if node.ready else "fails", subject=subject, text="")
    if node.cordoned != before.cordoned:
        yield Line(kind="cordoned" if node.cordoned else "uncordoned", subject=subject, text="")
    healthy = {device.index: device.healthy for device in before.devices}
    for word, health in (("fails", False), ("recovers", True)):
        changed = [d.index for d in node.devices if d.healthy is health and healthy.get(d.index) is not health]
        if changed:
            yield Line(kind=word, subject=subject, text=f"GPU {list_devices(changed)}")
    other = _differences(before, node, leave_out=("ready", "cordoned", "devices"))
    if other:
        yield Line(kind="changes", subject=subject, text=other)


def _tell_queue(queue: Queue, before: Queue | None) -> Line:
    parts = [
        f"{resource} {name} {format_resource(resource, amount)}"
        for quota in queue.quotas
        for resource, numbers in quota.resources.items()
        for name, amount in (("guarantee", numbers.guarantee), ("limit", numbers.limit))
        if amount is not None and (amount or name == "limit")
    ]
    if queue.state is not QueueState.OPEN:
        parts.append(str(queue.state))
    return Line(kind="added" if before is None else "changes", subject=f"queue {queue.name}", text=", ".join(parts))


def _tell_report(event: Observation) -> Iterator[Line]:
    match event:
        case seen.Checkpointed(workload):
            yield Line(kind="reports", subject=workload, text="a checkpoint")
        case seen.SavesInTime(workload, yes):
            yield Line(kind="reports", subject=workload, text=f"that it {'saves' if yes else 'does not save'} in time")
        case seen.ActivitySeen(workload):
            yield Line(kind="reports", subject=workload, text="its last activity")
        case seen.Predicted(workload, duration_ms):
            text = f"will run {format_duration_ms(duration_ms)} in all"
            yield Line(kind="forecast", subject=workload, text=text)
        case _:
            return


def _differences(before: Workload | Node, now: Workload | Node, leave_out: tuple[str, ...] = ()) -> str:
    fields = [name for name in now.__struct_fields__ if name not in leave_out]
    changed = [name for name in fields if getattr(before, name) != getattr(now, name)]
    simple = {name: getattr(now, name) for name in changed if isinstance(getattr(now, name), int | str)}
    return ", ".join(f"{name.replace('_', ' ')} {simple.get(name, '')}".strip() for name in changed)


# -- actions ----------------------------------------------------------------------------------------------------


def _tell_action(action: Action, entry: Entry, promised: tuple[Placement, ...], after: int) -> ActionTold:
    """`after`: how many replicas it has then."""
    match action:
        case Start(name, _, placements):
            return _told("Start", name, describe_places(placements), replicas=_places(placements, "starting"))
        case Grow(name, placements):
            text = f"by {len(placements)} to {count(after, 'replica')}, on {_on(p.node for p in placements)}"
            return _told("Grow", name, text, replicas=_places(placements, "starting"))
        case Hold(name, _, placements, _, waits_for):
            until = f" until {fold(map(short, waits_for))} {'has' if len(waits_for) == 1 else 'have'} left"
            text = describe_places(placements) + (until if waits_for else "")
            return _told("Hold", name, text, replicas=_places(placements, "promised"))
        case Shrink(name, slots, cause, beneficiary):
            text = f"by {len(slots)} to {count(after, 'replica')}: {cause.text()}"
            return _told("Shrink", name, text, cause, beneficiary, given_up=_given_up(entry, slots))
        case Evict():
            return _tell_eviction(action, entry, promised)
        case Drop(name, slots, cause):
            return _tell_drop(name, cause, "", _given_up(entry, slots))
        case Reject(name, cause):
            return _told("Reject", name, f"for good: {cause.text()}", cause)


def _tell_eviction(action: Evict, entry: Entry, promised: tuple[Placement, ...]) -> ActionTold:
    left = _given_up(entry, entry.live)
    here = _on(replica.node for replica in left)
    if action.moved:
        text = f"from {here} to {_on(place.node for place in promised)}: {action.cause.text()}"
        places = _places(promised, "promised")
        return _told("Move", action.workload, text, action.cause, action.beneficiary, places, left)
    if left and all(replica.promised for replica in entry.live.values()):
        return _tell_drop(action.workload, action.cause, action.beneficiary, left)
    grace = f"; {format_duration_ms(action.grace_ms)} to write a checkpoint" if action.grace_ms else ""
    good = " for good" if action.final else ""
    text = f"from {here}{good}: {action.cause.text()}{grace if not action.final else ''}"
    return _told("Evict", action.workload, text, action.cause, action.beneficiary, given_up=left)


def _tell_drop(name: str, cause: Reason, beneficiary: str, left: tuple[ReplicaTold, ...]) -> ActionTold:
    """Nothing ran there yet."""
    text = f"its held room on {_on(replica.node for replica in left)}: {cause.text()}"
    return _told("Drop", name, text, cause, beneficiary, given_up=left)


def _told(
    kind: str,
    workload: str,
    text: str,
    cause: Reason | None = None,
    beneficiary: str = "",
    replicas: tuple[ReplicaTold, ...] = (),
    given_up: tuple[ReplicaTold, ...] = (),
) -> ActionTold:
    return ActionTold(
        kind=kind,
        workload=workload,
        text=shorten(text),
        cause=Why.of(cause),
        beneficiary=beneficiary,
        replicas=replicas,
        given_up=given_up,
    )


def _on(nodes: Iterable[str]) -> str:
    return fold(sorted(set(nodes), key=natural)) or "nowhere"


def _places(placements: Iterable[Placement], phase: str) -> tuple[ReplicaTold, ...]:
    return tuple(
        ReplicaTold(
            role=place.role,
            ordinal=place.ordinal,
            node=place.node,
            devices=place.devices,
            devices_known=place.exact,
            gpu_milli_per_device=place.gpu_milli,
            phase=phase,
        )
        for place in placements
    )


def _given_up(entry: Entry, slots: Iterable[Key]) -> tuple[ReplicaTold, ...]:
    return tuple(tell_replica(entry.live[key]) for key in sorted(slots) if key in entry.live)
