"""Who is where: the stage's own book, kept from the facts it reported and the plans it was given.

Why: whoever checks the brain must not ask the brain.
Owns: nodes, pools, queues and workloads as last described; every replica with its phase; what happened to whom.
Must not: decide what happens next or when (`stage` does).

Replicas go through the phases of `optimus.model.slots`. One that was told to stop is in `leaving`; a workload that
is moved has the same replica twice: leaving its old place, promised a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from optimus.api.scenario import ExpectedState
from optimus.drivers.sim.happenings import Happening
from optimus.model import gangs
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node
from optimus.model.plans import Placement, Plan, Reservation
from optimus.model.pools import DEFAULT_POOL, NodePool
from optimus.model.queues import Queue
from optimus.model.reasons import Reason
from optimus.model.slots import Event, Phase, after
from optimus.model.workloads import Request, Workload, share_milli

Key = tuple[str, int]
"""Role and ordinal."""


@dataclass(slots=True)
class Replica:
    role: str
    ordinal: int
    node: str
    devices: tuple[int, ...]
    gpu_milli: int
    """Of each device."""
    phase: Phase
    told_ms: int
    """When it was told to start or to stop."""
    promised: bool = False
    """Its room is still being left by others."""
    exact: bool = True
    """False: somebody else picks the devices; `devices` only counts them."""
    failure: str = ""
    """Why the body will not be able to start it."""


@dataclass(slots=True)
class Entry:
    """One workload."""

    spec: Workload
    live: dict[Key, Replica] = field(default_factory=dict)
    leaving: dict[Key, Replica] = field(default_factory=dict)
    over: ExpectedState | None = None
    """`finished` or `stopped`, once it is."""
    waits: Reason | None = None
    """The last plan's word on why it does not run."""
    cause: Reason | None = None
    """Why it was last evicted, moved, shrunk or refused."""
    reservation: Reservation | None = None
    happened: list[Happening] = field(default_factory=list)
    runs_since_ms: int | None = None
    done_ms: int = 0
    """Run time of earlier attempts that a checkpoint has kept."""
    overran: bool = False
    """Was past its expected duration when the story began: it does not end by itself."""

    @property
    def state(self) -> ExpectedState:
        if any(not replica.promised for replica in self.live.values()):
            return ExpectedState.RUNNING
        if self.live:
            return ExpectedState.HELD
        if self.leaving:
            return ExpectedState.STOPPING
        return self.over or ExpectedState.PENDING

    @property
    def reason(self) -> Reason | None:
        """Why it does not run; for work that is over by decision, why."""
        if self.state in (ExpectedState.RUNNING, ExpectedState.FINISHED):
            return None
        return self.cause if self.over is ExpectedState.STOPPED else self.waits

    def placed(self) -> list[Replica]:
        """The replicas that its state is about: those that run, else those with promised room, else those leaving."""
        running = [replica for replica in self.live.values() if not replica.promised]
        found = running or list(self.live.values()) or list(self.leaving.values())
        return sorted(found, key=lambda replica: (replica.role, replica.ordinal))

    def cycles(self, kind: str) -> tuple[int, ...]:
        return tuple(dict.fromkeys(event.cycle for event in self.happened if event.kind == kind))


class Book:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pools: dict[str, NodePool] = {}
        self.queues: dict[str, Queue] = {}
        self.entries: dict[str, Entry] = {}
        """In the order in which they were submitted; nobody is forgotten."""

    def pool_of(self, node: str) -> str:
        """The first pool, by name, whose selector matches."""
        labels = self.nodes[node].labels.items() if node in self.nodes else {}.items()
        for name in sorted(self.pools):
            selector = self.pools[name].selector
            if selector and selector.items() <= labels:
                return name
        return DEFAULT_POOL if DEFAULT_POOL in self.pools or not self.pools else min(self.pools)

    def on_node(self, node: str) -> Iterator[tuple[Entry, Replica]]:
        """Everything that takes room there now: running, starting, leaving."""
        for entry in self.entries.values():
            for replica in (*entry.live.values(), *entry.leaving.values()):
                if replica.node == node and not replica.promised:
                    yield entry, replica

    def domain(self, level: str, node: str) -> tuple[str, ...]:
        """Rack 1 of zone a is not rack 1 of zone b; a node without the label is a domain of its own."""
        labels = self.nodes[node].labels if node in self.nodes else {}
        pool = self.pools.get(self.pool_of(node))
        levels = pool.levels if pool is not None and level in pool.levels else (level,)
        path = levels[: levels.index(level) + 1]
        return tuple(labels[key] for key in path) if all(key in labels for key in path) else ("", node)

    # -- replicas ---------------------------------------------------------------------------------------------

    def adopt(self, entry: Entry, key: Key, node: str, devices: tuple[int, ...], since_ms: int) -> None:
        """A replica that runs without having been placed by a plan."""
        request = request_of(entry.spec, key[0])
        described = self.nodes.get(node)
        exact = described is None or described.assignable or bool(devices)
        memory = [d.memory_mib for d in described.devices if not devices or d.index in devices] if described else []
        milli = min(share_milli(request, min(memory, default=0)), WHOLE_DEVICE_MILLI) if request.gpu_count else 0
        taken = devices or tuple(range(request.gpu_count))
        entry.live[key] = Replica(*key, node, taken, milli, Phase.RUNNING, since_ms, exact=exact)
        if entry.runs_since_ms is None:
            entry.runs_since_ms = since_ms

    def place(
        self, entry: Entry, placements: Iterable[Placement], now_ms: int, *, promised: bool, failure: str = ""
    ) -> None:
        for place in placements:
            key = (place.role, place.ordinal)
            entry.live[key] = Replica(
                *key,
                place.node,
                place.devices,
                place.gpu_milli,
                Phase.HELD,
                now_ms,
                promised=promised,
                exact=place.exact,
                failure=failure,
            )

    def stop(self, entry: Entry, keys: Iterable[Key], now_ms: int) -> None:
        """What runs or is being started leaves; room that was only held is free at once."""
        for key in list(keys):
            replica = entry.live.pop(key, None)
            if replica is not None and after(replica.phase, Event.STOP) is Phase.RELEASING:
                replica.phase, replica.told_ms = Phase.RELEASING, now_ms
                entry.leaving[key] = replica
        self._settle(entry, now_ms, kept=entry.spec.checkpoint is not None)

    def lose(self, entry: Entry, key: Key, now_ms: int) -> bool:
        """The replica is gone, asked for or not. Tells whether it was there."""
        if entry.leaving.pop(key, None) is not None:
            return True
        replica = entry.live.get(key)
        if replica is None or replica.promised:
            return False
        del entry.live[key]
        self._settle(entry, now_ms, kept=entry.spec.checkpoint is not None)
        return True

    def lose_node(self, node: str, now_ms: int) -> list[Entry]:
        """The node left with everything on it. Returns the workloads that lost something that was running."""
        self.nodes.pop(node, None)
        hurt = []
        for entry in self.entries.values():
            lost = [key for key, replica in entry.live.items() if replica.node == node]
            for key in lost:
                del entry.live[key]
            for key in [key for key, replica in entry.leaving.items() if replica.node == node]:
                del entry.leaving[key]
            if lost:
                hurt.append(entry)
                self._settle(entry, now_ms, kept=entry.spec.checkpoint is not None)
        return hurt

    def note_plan(self, plan: Plan) -> None:
        """What the plan says about those that wait."""
        reasons = {wait.workload: wait.reason for wait in plan.waiting}
        reservations = {reservation.workload: reservation for reservation in plan.reservations}
        for name, entry in self.entries.items():
            entry.waits = reasons.get(name)
            entry.reservation = reservations.get(name)

    def _settle(self, entry: Entry, now_ms: int, *, kept: bool) -> None:
        if entry.runs_since_ms is not None and not any(r.phase is Phase.RUNNING for r in entry.live.values()):
            entry.done_ms = entry.done_ms + now_ms - entry.runs_since_ms if kept else 0
            entry.runs_since_ms = None


def request_of(workload: Workload, role: str) -> Request:
    return next((chain.role.request for chain in gangs.chains(workload.gang) if chain.role.name == role), Request())
