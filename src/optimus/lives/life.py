"""What is known of one workload of a job: its intent, which is kept, and its replicas, which are seen.

Why: whoever restarts must find both, and nothing else, to go on where it was.
Owns: the records.
Must not: decide what follows from them (`reconciling`).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from optimus.model.observations import Outcome

__all__ = ["Blame", "Ended", "Leaving", "LeavingCause", "Life", "Outcome", "Place", "Replica", "Shortage"]

Slot = tuple[str, int]
"""Role and ordinal."""


class LeavingCause(StrEnum):
    """Why a whole gang is being stopped."""

    PREEMPTED = "preempted"  # the scheduler takes its room; it waits again
    SUSPENDED = "suspended"  # somebody wants it to rest; it waits again once it is resumed
    FAILED = "failed"  # one replica failed: all start again, or it is over
    LOST = "lost"  # a replica vanished, or was taken by others; not the job's fault, so it is not counted
    RESIZED = "resized"  # another size: all save and start again with it, where a job cannot change while it runs
    OVER = "over"  # it has ended, was cancelled or was refused for good


class Blame(StrEnum):
    """Whose doing an end is, where a body can tell. Only the first counts against the job."""

    OWN = "Error"
    NODE_LOST = "NodeLost"
    EVICTED = "Evicted"
    REJECTED = "Rejected"  # by the node, which had no room for it after all: a race, and repaired
    OUT_OF_MEMORY = "OutOfMemory"


class Leaving(Struct, frozen=True, kw_only=True):
    cause: LeavingCause
    text: str
    """For people: the reason of the brain, or what failed."""
    since_ms: int
    retry_after_ms: int = 0
    blame: Blame | None = None
    """Where a replica was the cause."""


class Place(Struct, frozen=True, kw_only=True):
    """A place that the brain has granted to one replica."""

    role: str
    ordinal: int
    node: str
    devices: tuple[int, ...] = ()
    gpu_milli: int = 0

    @property
    def slot(self) -> Slot:
        return self.role, self.ordinal


class Shortage(Struct, frozen=True, kw_only=True):
    """A process of a replica was ended for lack of memory."""

    used_mib: int
    limit_mib: int | None = None
    """The replica's own limit, which was reached; None: the machine had nothing left."""

    def text(self) -> str:
        if self.limit_mib is None:
            return f"was ended because the machine ran out of memory: it used {_size(self.used_mib)}"
        return f"ran out of memory: used {_size(self.used_mib)} of {_size(self.limit_mib)}"


def _size(mib: int) -> str:
    return f"{mib} MiB" if mib < 10 * 1024 else f"{round(mib / 1024, 1):g} GiB"


class Ended(Struct, frozen=True, kw_only=True):
    """How a replica ended."""

    at_ms: int
    code: int | None = None
    signal: int | None = None
    error: str = ""
    """It could not be started, and why."""
    lost: bool = False
    """Nobody knows."""
    shortage: Shortage | None = None
    blame: Blame = Blame.OWN
    words: str = ""
    """Where a body knows better what has happened."""

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.error and not self.lost and self.blame is Blame.OWN

    def text(self) -> str:
        if self.words:
            return self.words
        if self.error:
            return f"could not start: {self.error}"
        if self.lost:
            return "vanished, and nobody knows how it ended"
        if self.shortage is not None:
            return self.shortage.text()
        if self.signal is not None:
            return f"was ended by signal {self.signal}"
        return f"exited with code {self.code}"


class Replica(Struct, frozen=True, kw_only=True):
    """One start of one replica, as a body sees it."""

    start: str
    """Unique name of this start."""
    role: str
    ordinal: int
    started_ms: int | None = None
    """None: asked for, and not seen running yet."""
    asked_ms: int | None = None
    """Since when it is asked to save its work and leave."""
    killed: bool = False
    ended: Ended | None = None
    node: str = ""
    devices: tuple[int, ...] = ()
    """Where it was started: its place may have been taken back while it is still leaving."""

    @property
    def slot(self) -> Slot:
        return self.role, self.ordinal

    @property
    def live(self) -> bool:
        return self.ended is None


class Life(Struct, frozen=True, kw_only=True):
    """The intent: what has been granted, what is being left, and how it ended."""

    workload: str
    places: tuple[Place, ...] = ()
    leaving: Leaving | None = None
    done: frozenset[Slot] = frozenset()
    """Replicas of this attempt that have ended well."""
    attempt: int = 0
    """Of the whole gang; 1 is the first."""
    failures: int = 0
    preemptions: int = 0
    """How often the scheduler has stopped it; being suspended is somebody's wish and is not counted."""
    rejections: int = 0
    """How often a node had no room for it after all."""
    shortages: int = 0
    """How often it ran out of memory, where that is not counted as a failure."""
    last_leaving: LeavingCause | None = None
    """Why it is not running, if it ran before."""
    last_text: str = ""
    last_blame: Blame | None = None
    retry_at_ms: int = 0
    first_started_ms: int | None = None
    since_ms: int | None = None
    """Since when this attempt runs."""
    ran_ms: int = 0
    """In earlier attempts, or in all once it is over."""
    outcome: Outcome | None = None
    ended_ms: int | None = None
    ended_text: str = ""
    """Why it is over, where that was not simply its end."""

    @property
    def over(self) -> bool:
        return self.outcome is not None

    def place(self, slot: Slot) -> Place | None:
        return next((place for place in self.places if place.slot == slot), None)
