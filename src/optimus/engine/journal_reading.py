"""Reading a journal: everything in order, or one moment at once.

Why: "what did it know, and why did it do that, yesterday at 14:20?" must be answered within a second.
Owns: the order of segments, gaps between them, and the search for a moment.
Must not: change anything, keep files open between calls, or hide a flaw.

The file names are the index by cycle number and the first record of each segment is the index by time, so a search
opens a few files, reads a few hundred bytes of each, and then one segment. A journal may be read while it is written.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from msgspec import Struct

from optimus.engine.journal_files import Segment, list_segments
from optimus.engine.journal_records import Cycle, Flaw, FlawKind, JournalError, Keyframe, Observed, Opened, Record
from optimus.engine.journal_segments import read_facts, read_opened, read_segment
from optimus.model.units import format_time_ms

_END = 2**62
"""No journal has so many cycles."""


class Moment(Struct, frozen=True):
    """A state to start from and the cycles that lead from it to the moment, the last one included."""

    opened: Opened
    keyframe: Keyframe
    cycles: tuple[Cycle, ...]
    flaws: tuple[Flaw, ...]
    """Not empty: the moment itself cannot be reached, this is the nearest before it."""

    @property
    def sequence(self) -> int:
        """Of the last cycle before or at the moment; the keyframe's own is the cycle that would follow it."""
        return self.cycles[-1].sequence if self.cycles else self.keyframe.sequence - 1

    @property
    def now_ms(self) -> int:
        return self.cycles[-1].now_ms if self.cycles else self.keyframe.now_ms


class Journal:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, from_sequence: int = 0) -> Iterator[Record | Flaw]:
        """All records from the segment that holds `from_sequence` on. After a flaw it goes on at the next segment."""
        segments = list_segments(self.folder)
        segments = segments[max(bisect_right(segments, from_sequence, key=_first_sequence) - 1, 0) :]
        expected = segments[0].first_sequence if segments else 0
        flawed = False
        for segment, following in zip_longest(segments, segments[1:]):
            if segment.first_sequence > expected and not flawed:
                yield _gap(segment, expected)
            flawed = False
            expected = segment.first_sequence
            try:
                for item in read_segment(segment):
                    if isinstance(item, Flaw):
                        flawed = True
                        yield _place(item, expected, following)
                        continue
                    if isinstance(item, Cycle):
                        expected = item.sequence + 1
                    yield item
            except FileNotFoundError:  # retention was faster; the next segment reports what is missing
                continue

    def read_facts(self, since_ms: int = 0) -> Iterator[Observed]:
        """What was observed, from the last state at or before `since_ms` on, as far as it can be read."""
        segments = list_segments(self.folder)
        first = bisect_right(range(len(segments)), since_ms, key=lambda index: _opened_ms(segments, index)) - 1
        for segment in segments[max(first, 0) :]:
            with suppress(FileNotFoundError):  # retention was faster
                for item in read_facts(segment):
                    if not isinstance(item, Flaw):
                        yield item

    def seek(self, *, sequence: int | None = None, now_ms: int | None = None) -> Moment:
        """The moment right after cycle `sequence`, or after the last cycle at or before `now_ms`.

        Beyond the end it is the end. JournalError before the beginning, or if no keyframe before it can be read.
        """
        if (sequence is None) == (now_ms is None):
            raise TypeError("seek takes either sequence or now_ms")
        segments = list_segments(self.folder)
        if sequence is not None:
            wanted = sequence
            at = bisect_right(segments, wanted, key=_first_sequence) - 1
            moment = _nearest(segments, at, lambda cycle: cycle.sequence <= wanted)
            if moment is not None and moment.sequence < wanted and at + 1 < len(segments) and not moment.flaws:
                moment = _with_flaw(moment, _gap(segments[at + 1], moment.sequence + 1))
        else:
            assert now_ms is not None
            until = now_ms
            at = bisect_right(range(len(segments)), until, key=lambda index: _opened_ms(segments, index)) - 1
            moment = _nearest(segments, at, lambda cycle: cycle.now_ms <= until)
        if moment is None:
            what = f"cycle {sequence}" if now_ms is None else format_time_ms(now_ms)
            raise JournalError(self._nothing_before(segments, what))
        return moment

    def end(self) -> Moment:
        """The last moment. JournalError if there is none."""
        return self.seek(sequence=_END)

    def _nothing_before(self, segments: list[Segment], what: str) -> str:
        if not segments:
            return f"there is no journal in {self.folder}"
        opened = next(filter(None, map(read_opened, segments)), None)
        if opened is None:
            return f"no segment of the journal in {self.folder} can be read"
        return (
            f"the journal in {self.folder} has no readable state at or before {what}; "
            f"it begins with cycle {opened.sequence} at {format_time_ms(opened.now_ms)}"
        )


def _nearest(segments: list[Segment], at: int, wanted: Callable[[Cycle], bool]) -> Moment | None:
    """From the keyframe of segment `at`, or of the nearest one before it whose head can be read."""
    flaws: tuple[Flaw, ...] = ()
    for index in range(at, -1, -1):
        moment = _read_moment(segments[index], wanted)
        if isinstance(moment, Flaw):
            flaws = (moment, *flaws)
            continue
        if not moment.cycles and moment.opened.continues and index > 0:
            # the keyframe was taken right after the last cycle of the segment before: show that cycle, too
            before = _read_moment(segments[index - 1], wanted)
            if isinstance(before, Moment) and before.sequence == moment.sequence:
                moment = before
        return Moment(moment.opened, moment.keyframe, moment.cycles, (*moment.flaws, *flaws))
    return None


def _read_moment(segment: Segment, wanted: Callable[[Cycle], bool]) -> Moment | Flaw:
    opened: Opened | None = None
    keyframe: Keyframe | None = None
    cycles: list[Cycle] = []
    flaws: list[Flaw] = []
    collecting = gc.isenabled()
    gc.disable()  # many small objects that all stay: searching them for cycles would take as long as decoding them
    try:
        for item in read_segment(segment):
            if isinstance(item, Opened):
                opened = item
            elif isinstance(item, Keyframe):
                keyframe = item
            elif isinstance(item, Flaw):
                flaws.append(item)
            elif wanted(item):
                cycles.append(item)
            else:
                break
    except FileNotFoundError:
        return Flaw(FlawKind.GAP, segment.path.name, 0, "deleted by retention while it was looked for")
    finally:
        if collecting:
            gc.enable()
    if opened is None or keyframe is None:
        return flaws[0]
    return Moment(opened, keyframe, tuple(cycles), tuple(flaws))


def _opened_ms(segments: list[Segment], index: int) -> int:
    """When segment `index` begins; one whose first record cannot be read counts as the one before it."""
    while index >= 0:
        opened = read_opened(segments[index])
        if opened is not None:
            return opened.now_ms
        index -= 1
    return -(2**63)


def _first_sequence(segment: Segment) -> int:
    return segment.first_sequence


def _gap(segment: Segment, expected: int) -> Flaw:
    opened = read_opened(segment)
    note = f" ({opened.note})" if opened is not None and opened.note else ""
    message = f"cycles {expected} to {segment.first_sequence - 1} are not in the journal{note}"
    return Flaw(FlawKind.GAP, segment.path.name, 0, message)


def _place(flaw: Flaw, expected: int, following: Segment | None) -> Flaw:
    """A flaw inside a segment, seen from the whole journal: only its very end can be torn and nothing be lost."""
    if following is None:
        return flaw
    kind = FlawKind.DAMAGED if flaw.kind is FlawKind.TORN else flaw.kind
    lost = f"; cycles {expected} to {following.first_sequence - 1} cannot be read"
    return Flaw(kind, flaw.segment, flaw.offset, flaw.message + (lost if following.first_sequence > expected else ""))


def _with_flaw(moment: Moment, flaw: Flaw) -> Moment:
    return Moment(moment.opened, moment.keyframe, moment.cycles, (*moment.flaws, flaw))
