"""The set-up of a simulation: cluster, queues, rhythm of decisions, and what goes wrong.

Why: a result means something only together with these; they are one record, and every scheduler gets the same.
Owns: the record, and models of how neighbours slow each other down.
Must not: contain jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from optimus.model.nodes import Device, Node
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.model.settings import Settings

if TYPE_CHECKING:
    from optimus.drivers.sim.clockwork import Clockwork, Run


class Outage(Struct, frozen=True, kw_only=True):
    node: str
    at_ms: int
    for_ms: int


class Neighbours(Protocol):
    def slowed(self, clock: Clockwork, run: Run) -> float:
        """What is left of a job's speed beside those that share its nodes."""


class SharedNetwork(Struct, frozen=True):
    """Jobs over several nodes disturb each other where two of them meet (Pollux, OSDI'21, section 5.3)."""

    loses: float = 0.0

    def slowed(self, clock: Clockwork, run: Run) -> float:
        if not _is_spread(run):
            return 1.0
        for node in {seat.node for seat in run.seats.values()}:
            for other in clock.neighbours(node):
                if other != run.index and _is_spread(clock.runs[other]):
                    return 1.0 - self.loses
        return 1.0


def _is_spread(run: Run) -> bool:
    return len({seat.node for seat in run.seats.values()}) > 1


class SharedDevice(Struct, frozen=True):
    """Jobs on one device share its time: above full activity all of them slow down in proportion."""

    unknown_milli: int = 500
    """Activity of a replica about which nothing is known."""

    def slowed(self, clock: Clockwork, run: Run) -> float:
        most = 1000
        for seat in run.seats.values():
            busy = dict.fromkeys(seat.devices, 0)
            for other in clock.neighbours(seat.node):
                neighbour = clock.runs[other]
                for theirs in neighbour.seats.values():
                    if theirs.node == seat.node:
                        for device in theirs.devices:
                            if device in busy:
                                busy[device] += neighbour.job.activity_milli or self.unknown_milli
            most = max(most, *busy.values()) if busy else most
        return 1000 / most


class Several(Struct, frozen=True):
    """One kind of disturbance after the other."""

    parts: tuple[SharedDevice | SharedNetwork, ...]

    def slowed(self, clock: Clockwork, run: Run) -> float:
        left = 1.0
        for part in self.parts:
            left *= part.slowed(clock, run)
        return left


class Setup(Struct, frozen=True, kw_only=True):
    nodes: tuple[Node, ...]
    pools: tuple[NodePool, ...] = ()
    queues: tuple[Queue, ...] = ()
    settings: Settings = Settings()
    interval_ms: int = 0
    """Decisions only at multiples of this; 0: as soon as something happens."""
    tick_ms: int = 300_000
    """Without news, a scheduler is asked again after this time as long as something waits."""
    decision_ms: int = 0
    """What a decision takes on the clock: it comes true so long after the news it answers, or after its round begins. A
    number and no measurement, so that the same input gives the same result."""
    coarser_percent: int = 0
    """The farther it is played, the less often somebody decides: news wait until this part of the time since the first
    decision has passed since the last one, unless somebody has left for others. A distant future is not known to the
    minute."""
    coarsest_ms: int = 1 << 62
    """And never longer than this: devices that nobody has decided about stand idle."""
    outages: tuple[Outage, ...] = ()
    neighbours: Neighbours | None = None
    rack_label: str = ""
    seed: int = 0


def uniform_nodes(
    count: int, gpus: int, *, model: str = "gpu", cpu_milli: int = 96_000, memory_mib: int = 786_432
) -> tuple[Node, ...]:
    """So many equal nodes."""
    devices = tuple(Device(index=i, model=model) for i in range(gpus))
    width = len(str(count - 1))
    return tuple(
        Node(name=f"{model}-{i:0{width}d}", cpu_milli=cpu_milli, memory_mib=memory_mib, devices=devices)
        for i in range(count)
    )
