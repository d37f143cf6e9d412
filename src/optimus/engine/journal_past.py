"""The past of a journal, as far as a forecast may use it: who came lately, and how wrong declared run times were.

Why: newcomers overtake those that wait, and people are wrong about their jobs. Both are seen in what has been.
Owns: the record, reading it from a journal, and the small form in which it is handed to somebody else.
Must not: look beyond the moment it is asked for.

In the small form those who asked for the same are told once, with the times at which they came: an array of ten
thousand parts is one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct, structs

from optimus.engine.journal_lives import Recording
from optimus.engine.journal_reading import Journal
from optimus.engine.journal_records import Facts, Keyframe
from optimus.model.workloads import Workload

DAY_MS = 86_400_000
WINDOW_MS = DAY_MS
"""A day and not an hour: nights are quiet, and a forecast may reach into tomorrow."""
SETTLED_MS = 6 * 3_600_000
"""From so long on what came will go on coming; before that nobody knows for how long: a morning begins with a crowd."""
LEAST_EVENTS = 10
"""Fewer in a window that is shorter say nothing about how many come."""


class Ran(NamedTuple):
    """How long one of them has worked, at its smallest size."""

    ms: float
    ended: bool
    """Or so far."""


class Past(Struct, frozen=True, kw_only=True):
    """What was seen until a moment, beyond what the state remembers."""

    arrived: tuple[Workload, ...] = ()
    """Those submitted in the window before the moment."""
    ran: tuple[Ran | None, ...] = ()
    """Of each of these that declared a run time and has run: how long. Empty: of nobody."""
    window_ms: int = 0
    """A day, or less where less was seen; 0: nothing was."""
    errors: tuple[float, ...] = ()
    """True / declared run time of work that has ended."""

    @property
    def settled(self) -> bool:
        """Whether it is long enough to say that people go on coming."""
        return self.window_ms >= SETTLED_MS

    @property
    def tells_arrivals(self) -> bool:
        """Whether it says anything about how many come."""
        return self.settled or len(self.events) >= LEAST_EVENTS

    @property
    def events(self) -> tuple[tuple[Workload, ...], ...]:
        """Those who came in the same moment came together: an array is one event."""
        return tuple(tuple(those) for _, those in groupby(self.arrived, key=lambda one: one.submitted_ms))

    @property
    def rate_per_hour(self) -> float:
        return len(self.arrived) / (self.window_ms / 3_600_000)

    def usable(self) -> Past:
        """Without arrivals where too little is known of them."""
        return self if self.tells_arrivals else self.without_arrivals()

    def without_arrivals(self) -> Past:
        """As if nobody else came; nothing is claimed about who does."""
        return Past(errors=self.errors)


class PastError(ValueError):
    """It cannot be read here; the message says why."""


def past_of(folder: Path, until_ms: int, *, since_ms: int = 0) -> Past:
    """Of a journal, up to a moment; read from the last state before `since_ms` on."""
    recording = Recording()
    begin_ms: int | None = None
    for item in Journal(folder).read_facts(since_ms):
        if isinstance(item, Keyframe) and begin_ms is None:
            begin_ms = item.now_ms
            try:
                recording.begin(item)
            except msgspec.MsgspecError:
                continue
        elif isinstance(item, Facts):
            if item.now_ms > until_ms:
                break
            for fact in item.observations:
                recording.observe(fact, item.now_ms)
    lives = (*recording.over, *recording.lives.values())
    declared = [(life.worked_ms, life.workload.expected_duration_ms) for life in recording.over if life.ran]
    for life in recording.lives.values():
        life.pass_until(until_ms)
    ran = [Ran(life.worked_ms, number < len(recording.over)) if life.ran else None for number, life in enumerate(lives)]
    return gathered(
        [life.workload for life in lives],
        [worked / expected for worked, expected in declared if expected and worked > 0],
        begin_ms=until_ms if begin_ms is None else begin_ms,
        now_ms=until_ms,
        ran=ran,
    )


def gathered(
    workloads: Sequence[Workload],
    errors: Sequence[float],
    *,
    begin_ms: int,
    now_ms: int,
    ran: Sequence[Ran | None] = (),
) -> Past:
    """`ran`: of each of the workloads, where that is known."""
    window = max(min(now_ms - begin_ms, WINDOW_MS), 1)
    told = [
        (one, how_long if one.expected_duration_ms is not None else None)
        for one, how_long in zip(workloads, ran or [None] * len(workloads), strict=True)
        if now_ms - window < one.submitted_ms <= now_ms
    ]
    told.sort(key=lambda pair: (pair[0].submitted_ms, pair[0].id))
    known = tuple(how_long for _, how_long in told) if any(how_long for _, how_long in told) else ()
    return Past(arrived=tuple(one for one, _ in told), ran=known, window_ms=window, errors=tuple(errors))


# -- the small form ---------------------------------------------------------------------------------------------


class _Folded(Struct, frozen=True, kw_only=True):
    kinds: tuple[Workload, ...]
    arrived: tuple[tuple[int, int], ...]
    """Which kind, and when."""
    window_ms: int
    errors: tuple[float, ...]
    ran: tuple[Ran | None, ...] = ()


def write_past(past: Past) -> bytes:
    kinds: dict[bytes, int] = {}
    known: list[Workload] = []
    arrived = []
    for one in past.arrived:
        kind = structs.replace(one, id="", submitted_ms=0)
        number = kinds.setdefault(msgspec.msgpack.encode(kind), len(known))
        if number == len(known):
            known.append(kind)
        arrived.append((number, one.submitted_ms))
    folded = _Folded(
        kinds=tuple(known),
        arrived=tuple(arrived),
        window_ms=past.window_ms,
        errors=past.errors,
        ran=past.ran,
    )
    return msgspec.msgpack.encode(folded)


def read_past(data: bytes) -> Past:
    try:
        folded = msgspec.msgpack.decode(data, type=_Folded)
        arrived = tuple(
            structs.replace(folded.kinds[kind], id=f"arrived/{number}", submitted_ms=at_ms)
            for number, (kind, at_ms) in enumerate(folded.arrived)
        )
    except (msgspec.MsgspecError, IndexError) as error:
        raise PastError(f"the past cannot be read: {error}; use the version that runs the scheduler") from error
    ran = folded.ran if len(folded.ran) == len(arrived) else ()
    return Past(arrived=arrived, ran=ran, window_ms=folded.window_ms, errors=folded.errors)
