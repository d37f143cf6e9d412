"""Who runs where when the story begins.

Why: `running: {on: [a-0, a-1]}` must become replicas with ordinals, nodes and devices.
Owns: which replicas exist for a given number, how places are dealt to them, and to copies of a workload.
Must not: change the description of a workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec import Struct

from optimus.api.building.ledger import Ledger, NoRoom
from optimus.api.building.report import Report
from optimus.api.building.world import World
from optimus.api.marks import Loc
from optimus.api.specs.workloads import PlaceSpec, RunningSpec, ScenarioWorkloadSpec
from optimus.model import gangs
from optimus.model.gang_validation import MOST_REPLICAS
from optimus.model.observations import ActivitySeen, Checkpointed, Observation, Predicted, SlotRunning, SlotStopping
from optimus.model.workloads import Group, Request, Workload

Counts = dict[str, int]
"""Role -> replicas."""
MOST_STEPS = 1000


class Seat(Struct, frozen=True):
    role: str
    ordinal: int
    request: Request


class Place(Struct, frozen=True):
    """One replica's place as written; `nodes` are tried in order."""

    pattern: str
    nodes: tuple[str, ...]
    devices: tuple[int, ...] | None
    role: str | None


class Impossible(Exception):  # noqa: N818 - an answer, not a fault
    """Says in a sentence why the file cannot mean this."""


Placed = tuple[ScenarioWorkloadSpec, list[Workload], Loc]
"""A record of the file, the workloads it stands for, and its path."""


def place_all(world: World, report: Report, records: list[Placed], start_ms: int) -> list[Observation]:
    """Observations for all running work. Places with named devices are dealt first, whatever their order."""
    ledger = Ledger(world.nodes)
    found: dict[int, list[Observation]] = {}
    order = sorted(range(len(records)), key=lambda i: not _names_devices(records[i][0].running))
    for position in order:
        spec, workloads, loc = records[position]
        try:
            found[position] = _place_record(world, report, ledger, spec, workloads, loc, start_ms)
        except (Impossible, NoRoom) as answer:
            report.add((*loc, "running"), str(answer))
    observations = [observation for position in sorted(found) for observation in found[position]]
    for spec, workloads, _ in records:
        if spec.predicted is not None:
            observations.extend(Predicted(workload.id, spec.predicted) for workload in workloads)
    return observations


def _names_devices(running: RunningSpec | None) -> bool:
    return running is not None and any(place.devices is not None for place in running.on)


def _place_record(
    world: World,
    report: Report,
    ledger: Ledger,
    spec: ScenarioWorkloadSpec,
    workloads: list[Workload],
    loc: Loc,
    start_ms: int,
) -> list[Observation]:
    running = spec.running
    if running is None or not workloads:
        return []
    _check_times(running)
    for i, entry in enumerate(running.on):
        if not _matching(world, entry.node):
            place = (*loc, "running", "on", i) if len(running.on) > 1 else (*loc, "running", "on")
            report.unknown(place, "node", entry.node, world.nodes)
            return []
    gang = workloads[0].gang
    observations: list[Observation] = []
    for workload, places in zip(workloads, _deal(world, running, gang, len(workloads)), strict=True):
        seats = seats_for(gang, _wanted(gang, places), partial=running.partial)
        since_ms = start_ms + running.since
        slots = [_sit(world, ledger, workload.id, seat, place, since_ms) for seat, place in _pair(seats, places)]
        observations.extend(slots)
        if running.last_checkpoint is not None:
            observations.append(Checkpointed(workload.id, start_ms + running.last_checkpoint))
        if running.busy_at is not None:
            observations.append(ActivitySeen(workload.id, start_ms + running.busy_at))
        if running.stopping:
            observations.extend(SlotStopping(slot.workload, slot.role, slot.ordinal) for slot in slots)
    return observations


def _check_times(running: RunningSpec) -> None:
    if running.since > 0:
        raise Impossible("since lies in the future: write -10m for ten minutes ago")
    for name, offset in (("lastCheckpoint", running.last_checkpoint), ("busyAt", running.busy_at)):
        if offset is not None and offset > 0:
            raise Impossible(f"{name} lies in the future: write -10m for ten minutes ago")
    if running.last_checkpoint is not None and running.last_checkpoint < running.since:
        raise Impossible("the last checkpoint lies before the start")


def _matching(world: World, name: str) -> tuple[str, ...]:
    if "*" in name:
        return tuple(node for node in world.nodes if fnmatchcase(node, name))
    return (name,) if name in world.nodes else ()


def _deal(world: World, running: RunningSpec, gang: Group, copies: int) -> list[list[Place]]:
    """Places for every copy: the list runs through the copies, or is the same for each."""
    least = sum(len(ordinals) for ordinals in gangs.minimum_replicas(gang).values())
    most = sum(gangs.maximum_replicas(gang))
    sole = running.on[0] if len(running.on) == 1 else None
    if sole is not None and sole.replicas is None and sole.devices is None:
        count = running.replicas if running.replicas is not None else 1 if running.partial else least
        return [_unfold(world, sole, count)] * copies
    places = [place for entry in running.on for place in _unfold(world, entry, 1)]
    if running.replicas is not None and running.replicas * copies != len(places):
        raise Impossible(f"names {len(places)} places for {running.replicas * copies} replicas")
    each, rest = divmod(len(places), copies)
    if rest == 0 and (least <= each <= most or running.partial):
        return [places[i * each : (i + 1) * each] for i in range(copies)]
    if least <= len(places) <= most:
        return [places] * copies
    allowed = str(least) if least == most else f"{least} to {most}"
    whom = f"each of {copies} gangs" if copies > 1 else "a gang"
    raise Impossible(f"names {len(places)} places for {whom} of {allowed} replicas")


def _unfold(world: World, entry: PlaceSpec, count: int) -> list[Place]:
    number = entry.replicas if entry.replicas is not None else count
    if number > MOST_REPLICAS:
        raise Impossible(f"puts {number} replicas on {entry.node}; at most {MOST_REPLICAS}")
    return [Place(entry.node, _matching(world, entry.node), entry.devices, entry.role)] * number


def _wanted(gang: Group, places: list[Place]) -> Counts | int:
    """How many replicas of each role the places say; only the sum where they name no roles."""
    named = [place.role for place in places if place.role is not None]
    known = [chain.role.name for chain in gangs.chains(gang)]
    unknown = [role for role in named if role not in known]
    if unknown:
        raise Impossible(f"there is no role {unknown[0]}: {', '.join(known)}")
    if not named:
        return len(places)
    if len(named) < len(places):
        raise Impossible("some places name a role and some do not: name it in all of them")
    return {role: named.count(role) for role in known}


def seats_for(gang: Group, wanted: Counts | int, *, partial: bool) -> list[Seat]:
    """The replicas that exist when so many run."""
    chains = gangs.chains(gang)
    minimum = gangs.minimum_replicas(gang)
    present = _grown(gang, wanted) if gang.groups else _counted(chains, minimum, wanted, partial=partial)
    seats = [
        Seat(chains[index].role.name, ordinal, chains[index].role.request)
        for index in sorted(present)
        for ordinal in sorted(present[index])
    ]
    total = wanted if isinstance(wanted, int) else sum(wanted.values())
    if len(seats) > total and not partial:
        raise Impossible(f"names {total} places, but the gang needs at least {len(seats)} (or say partial: true)")
    if isinstance(wanted, int):
        return seats[:total]
    left = dict(wanted)
    chosen = []
    for seat in seats:
        if left[seat.role]:
            left[seat.role] -= 1
            chosen.append(seat)
    if any(left.values()):
        raise Impossible("the gang cannot have so many replicas of these roles")
    return chosen


def _counted(
    chains: tuple[gangs.Chain, ...], minimum: dict[int, tuple[int, ...]], wanted: Counts | int, *, partial: bool
) -> dict[int, set[int]]:
    """Without groups the first replicas of each role exist."""
    least = sum(map(len, minimum.values()))
    if isinstance(wanted, int):
        if wanted <= least:
            return {index: set(ordinals) for index, ordinals in minimum.items()}
        if len(chains) > 1:
            raise Impossible("has several roles: name the role of each place")
        wanted = {chains[0].role.name: wanted}
    for chain in chains:
        role, count = chain.role, wanted.get(chain.role.name, 0)
        if count > role.max or (role.sizes and count > role.min and count not in role.sizes):
            raise Impossible(f"{count} replicas of role {role.name} are not allowed")
        if count < role.min and not partial:
            raise Impossible(f"role {role.name} needs at least {role.min} replicas, {count} are placed")
    return {index: set(range(wanted.get(chain.role.name, 0))) for index, chain in enumerate(chains)}


def _grown(gang: Group, wanted: Counts | int) -> dict[int, set[int]]:
    """With groups: the minimum first, then step by step upwards, as the scheduler would grow it."""
    total = wanted if isinstance(wanted, int) else sum(wanted.values())
    present = {index: set(ordinals) for index, ordinals in gangs.minimum_replicas(gang).items()}
    for _ in range(MOST_STEPS):
        count = sum(map(len, present.values()))
        if count >= total:
            return present
        steps = gangs.growth_steps(gang, present)
        if not steps or count + steps[0].replicas() > total:
            raise Impossible(f"a gang of this shape cannot have {total} replicas")
        for cell in steps[0].all_cells():
            present.setdefault(cell.role_index, set()).update(cell.ordinals)
    raise Impossible(f"has grown in more than {MOST_STEPS} steps above its minimum")


def _pair(seats: list[Seat], places: list[Place]) -> list[tuple[Seat, Place]]:
    """Places in the order of the file, each with the next seat of its role."""
    if all(place.role is None for place in places):
        return list(zip(seats, places, strict=True))
    waiting: dict[str, Iterator[Seat]] = {}
    for role in {seat.role for seat in seats}:
        waiting[role] = iter([seat for seat in seats if seat.role == role])
    return [(next(waiting[str(place.role)]), place) for place in places]


def _sit(world: World, ledger: Ledger, workload: str, seat: Seat, place: Place, since_ms: int) -> SlotRunning:
    node, devices = ledger.take_first(place.pattern, place.nodes, seat.request, place.devices)
    exact = world.nodes[node].assignable or place.devices is not None
    return SlotRunning(workload, seat.role, seat.ordinal, node, devices if exact else (), since_ms)
