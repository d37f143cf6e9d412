"""All peers by name: what `--policy` takes besides the policies of Optimus, and what `--help` says about them.

`oracle` marks those that are told what nobody can know; their rows must be marked wherever they are shown. `takes` says
which jobs a peer makes use of: it may be given others, but then it treats them as it can.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from optimus.drivers.sim.clockwork import Scheduler
from optimus.drivers.sim.peers import native, shortest
from optimus.drivers.sim.peers.afs import afs
from optimus.drivers.sim.peers.elasticflow import elasticflow
from optimus.drivers.sim.peers.fifo import fifo
from optimus.drivers.sim.peers.gavel import gavel_ftf, gavel_las, gavel_las_filled, gavel_sum
from optimus.drivers.sim.peers.kai import kai
from optimus.drivers.sim.peers.lucid import lucid
from optimus.drivers.sim.peers.optimus_eurosys import optimus_eurosys
from optimus.drivers.sim.peers.packing import best_fit, fgd
from optimus.drivers.sim.peers.pollux import pollux
from optimus.drivers.sim.peers.sia import sia
from optimus.drivers.sim.peers.themis import themis
from optimus.drivers.sim.peers.tiresias import tiresias


class Takes(StrEnum):
    RIGID = "rigid"  # replicas as asked for
    ELASTIC = "elastic"  # any number of replicas between two limits, one GPU in each
    ADAPTIVE = "adaptive"  # the same, and jobs tune their batch size to it
    MIXED = "mixed models"  # clusters with several GPU models that jobs run on at different speeds
    QUEUES = "queues"  # guarantees, limits and weights of queues
    SHARED = "shared devices"  # jobs that say how busy they keep a device
    PARTS = "parts of devices"  # jobs that ask for less than a whole one
    DEADLINES = "deadlines"


class Peer(Struct, frozen=True, kw_only=True):
    name: str
    make: Callable[[], Scheduler]
    """A new one for every simulation: peers remember."""
    doc: str
    takes: tuple[Takes, ...] = (Takes.RIGID,)
    oracle: bool = False
    round_ms: int = 0
    """The rhythm of its paper, for the set-up; 0: it acts when something happens."""
    shares: bool = False
    """It puts jobs on one device that did not ask for it, so a run of it needs to know what that costs."""

    def line(self) -> str:
        """For a list of all."""
        told = " Told what nobody can know (oracle)." if self.oracle else ""
        return f"{self.doc} Jobs: {', '.join(self.takes)}.{told}"


def _erring(make: Callable[[float], Scheduler], name: str, what: str) -> list[Peer]:
    def with_sigma(sigma: float) -> Callable[[], Scheduler]:
        return lambda: make(sigma)

    return [
        Peer(
            name=f"{name}-{sigma:g}",
            make=with_sigma(sigma),
            doc=f"{what}, run times known with a log-normal error of {sigma:g}.",
            oracle=True,
        )
        for sigma in (0.3, 0.7, 1.0)
    ]


_MINUTE = 60_000
_ALL = [
    Peer(name="native-pods", make=native.native_pods, doc="Kubernetes pod by pod; partial gangs hold GPUs for 5 min."),
    Peer(name="native-gang", make=native.native_gang, doc="Kubernetes, all pods of a job or none."),
    Peer(name="native-packed", make=native.native_packed, doc="native-gang with MostAllocated on GPUs."),
    Peer(name="native-strict", make=native.native_strict, doc="native-gang in strict FIFO, which Kubernetes is not."),
    Peer(name="fifo", make=fifo, doc="Arrival order, who does not fit is passed, gangs kept together."),
    Peer(name="sjf", make=shortest.sjf, doc="Shortest job first, nobody is preempted.", oracle=True),
    *_erring(shortest.sjf_erring, "sjf", "Shortest job first"),
    Peer(name="sjf-told", make=shortest.sjf_told, doc="Shortest job first, by the run times that the jobs tell."),
    Peer(name="srtf", make=shortest.srtf, doc="Shortest remaining time first, preempting.", oracle=True),
    *_erring(shortest.srtf_erring, "srtf", "Shortest remaining time first"),
    Peer(name="srtf-told", make=shortest.srtf_told, doc="Shortest remaining time, by the run times that jobs tell."),
    Peer(name="qssf", make=shortest.qssf, doc="Least expected GPU time first, from similar jobs (Helios, SC'21)."),
    Peer(
        name="tiresias",
        make=tiresias,
        doc="Least attained GPU time in two classes, preempting (NSDI'19).",
        round_ms=_MINUTE,
    ),
    Peer(
        name="themis",
        make=themis,
        doc="Worst finish-time fairness first, leases of 20 min (NSDI'20 style).",
        oracle=True,
        round_ms=_MINUTE,
    ),
    Peer(
        name="gavel-las",
        make=gavel_las,
        doc="Largest least share of time on mixed models, linear programme (OSDI'20).",
        takes=(Takes.RIGID, Takes.MIXED),
        round_ms=6 * _MINUTE,
    ),
    Peer(
        name="gavel-las-filled",
        make=gavel_las_filled,
        doc="gavel-las, and what is left goes to those who make most of it; better than published.",
        takes=(Takes.RIGID, Takes.MIXED),
        round_ms=6 * _MINUTE,
    ),
    Peer(
        name="gavel-ftf",
        make=gavel_ftf,
        doc="Gavel with the best worst finish-time ratio (OSDI'20).",
        takes=(Takes.RIGID, Takes.MIXED),
        oracle=True,
        round_ms=6 * _MINUTE,
    ),
    Peer(
        name="gavel-sum",
        make=gavel_sum,
        doc="Gavel with the largest sum of throughputs in steps per second (OSDI'20).",
        takes=(Takes.RIGID, Takes.MIXED),
        round_ms=6 * _MINUTE,
    ),
    Peer(
        name="optimus-eurosys",
        make=optimus_eurosys,
        doc="GPUs go where they shorten the rest of the run most (EuroSys'18).",
        takes=(Takes.ELASTIC, Takes.RIGID),
        oracle=True,
        round_ms=_MINUTE,
    ),
    Peer(
        name="afs",
        make=afs,
        doc="Apathetic future share, pair by pair (NSDI'21).",
        takes=(Takes.ELASTIC,),
        oracle=True,
        round_ms=_MINUTE,
    ),
    Peer(
        name="elasticflow",
        make=elasticflow,
        doc="Deadlines kept with the least share, the rest by marginal return (ASPLOS'23).",
        takes=(Takes.ELASTIC, Takes.DEADLINES),
        oracle=True,
        round_ms=_MINUTE,
    ),
    Peer(
        name="pollux",
        make=pollux,
        doc="Best power mean of speed-ups by goodput (OSDI'21).",
        takes=(Takes.ADAPTIVE, Takes.ELASTIC, Takes.RIGID),
        round_ms=_MINUTE,
    ),
    Peer(
        name="sia",
        make=sia,
        doc="Goodput on mixed models, integer programme (SOSP'23 style).",
        takes=(Takes.ADAPTIVE, Takes.ELASTIC, Takes.RIGID, Takes.MIXED),
        round_ms=_MINUTE,
    ),
    Peer(
        name="lucid",
        make=lucid,
        doc="Light jobs two to a device, least expected service first (ASPLOS'23 style).",
        takes=(Takes.RIGID, Takes.SHARED),
        shares=True,
    ),
    Peer(
        name="fgd",
        make=fgd,
        doc="Arrival order, each pod where fragmentation grows least (ATC'23).",
        takes=(Takes.RIGID, Takes.PARTS, Takes.MIXED),
    ),
    Peer(
        name="best-fit",
        make=best_fit,
        doc="Arrival order, each pod on the node with least left afterwards.",
        takes=(Takes.RIGID, Takes.PARTS, Takes.MIXED),
    ),
    Peer(
        name="kai",
        make=kai,
        doc="Fair shares of queues, over-quota by weight, reclaim (KAI scheduler style).",
        takes=(Takes.RIGID, Takes.QUEUES),
    ),
]

PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}


def peer(name: str) -> Peer:
    """Raises KeyError with a message for people."""
    if name in PEERS:
        return PEERS[name]
    near = difflib.get_close_matches(name, PEERS, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(PEERS)}."
    raise KeyError(f"no peer is called {name}. {hint}")
