"""What the brain wants done: data, not effects.

A body executes a plan action by action, in order, and reports what came of it as observations.
`Plan.waiting` carries exactly one reason for each workload that waits.
"""

from __future__ import annotations

from msgspec import Struct

from optimus.model.reasons import Reason


class Placement(Struct, frozen=True, gc=False):
    """One replica at one place."""

    role: str
    ordinal: int
    node: str
    devices: tuple[int, ...] = ()
    """Device indices; empty for replicas without GPUs."""
    gpu_milli: int = 0
    """Thousandths of each device."""
    exact: bool = True
    """False on nodes whose devices are only counted: the body gets as many devices, the indices are bookkeeping."""


class Start(Struct, frozen=True, tag=True):
    """Start a gang, at least its minimum, all at once."""

    workload: str
    pool: str
    placements: tuple[Placement, ...]


class Grow(Struct, frozen=True, tag=True):
    """Add replicas to a running workload."""

    workload: str
    placements: tuple[Placement, ...]


class Hold(Struct, frozen=True, tag=True):
    """Keep room that others are leaving; a later plan turns it into Start or Grow."""

    workload: str
    pool: str
    placements: tuple[Placement, ...]
    until_ms: int
    waits_for: tuple[str, ...]


class Shrink(Struct, frozen=True, tag=True):
    """Stop replicas above the minimum, or on a device that has failed."""

    workload: str
    slots: tuple[tuple[str, int], ...]
    cause: Reason
    beneficiary: str = ""


class Evict(Struct, frozen=True, tag=True):
    """Checkpoint and stop the whole workload; it waits again afterwards, unless `final`."""

    workload: str
    cause: Reason
    grace_ms: int
    beneficiary: str = ""
    moved: bool = False
    """A Hold for it elsewhere is in the same plan."""
    final: bool = False


class Drop(Struct, frozen=True, tag=True):
    """Give up places that were held and never taken."""

    workload: str
    slots: tuple[tuple[str, int], ...]
    cause: Reason


class Reject(Struct, frozen=True, tag=True):
    """Refuse a waiting workload for good."""

    workload: str
    cause: Reason


Action = Start | Grow | Hold | Shrink | Evict | Drop | Reject


class Wait(Struct, frozen=True, gc=False):
    workload: str
    reason: Reason


class Reservation(Struct, frozen=True):
    """The earliest time at which a blocked workload can start if predictions hold."""

    workload: str
    pool: str
    at_ms: int
    nodes: tuple[str, ...]


class QueueShare(Struct, frozen=True):
    """What one queue is due and has, of one resource in one pool."""

    queue: str
    pool: str
    resource: str
    share: int
    allocated: int
    demand: int


class Condition(Struct, frozen=True):
    """Something an administrator should know: a broken policy, overlapping pools, a cut plan."""

    subject: str
    code: str
    message: str


class Plan(Struct, frozen=True, kw_only=True):
    version: int
    """Of the snapshot it was made from."""
    actions: tuple[Action, ...] = ()
    waiting: tuple[Wait, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    shares: tuple[QueueShare, ...] = ()
    conditions: tuple[Condition, ...] = ()
    complete: bool = True
    unreached: tuple[str, ...] = ()
    """Steps that the work budget cut short."""


class Budget(Struct, frozen=True, kw_only=True):
    """Counts of work, not time, so that plans stay deterministic. The engine sets them from measured speed."""

    passes: int = 8
    starts: int = 1_000_000
    victim_searches: int = 2_000
    trial_fits: int = 20_000
    growth_steps: int = 100_000
    reservations_per_pool: int = 1
    """1 is the EASY rule; more is the conservative option."""
