"""Reading one segment: its records in order, and where it stops being readable.

Why: every segment begins with Opened and a Keyframe, so each can be read alone, whatever became of its neighbours.
Owns: the order of records inside a segment and what is said when it is broken.
Must not: look at other segments, or change the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeVar

import msgspec

from optimus.engine.journal_files import Segment
from optimus.engine.journal_frames import BadFrame, walk
from optimus.engine.journal_records import (
    FORMAT_VERSION,
    Cycle,
    Facts,
    Flaw,
    FlawKind,
    Keyframe,
    Observed,
    Opened,
    Record,
    decode,
    decode_facts,
)

_HEAD: tuple[type[Record], ...] = (Opened, Keyframe)
_Decoded = TypeVar("_Decoded", Record, Observed)


def read_segment(segment: Segment) -> Iterator[Record | Flaw]:
    """Opened, Keyframe, Cycles; a flaw, if there is one, comes last. FileNotFoundError if the segment is gone."""
    return _read(segment, decode)


def read_facts(segment: Segment) -> Iterator[Observed | Flaw]:
    """The same without plans."""
    return _read(segment, decode_facts)


def _read(segment: Segment, decoding: Callable[[bytes], _Decoded]) -> Iterator[_Decoded | Flaw]:
    reached = 0
    try:
        with segment.path.open("rb") as file:
            for offset, item in _records(file, segment, decoding):
                reached = offset
                yield item
    except FileNotFoundError:
        raise
    except OSError as error:  # a bad sector, or a file we may not open
        yield Flaw(FlawKind.DAMAGED, segment.path.name, reached, f"cannot be read beyond this record: {error}")


def _records(
    file: BinaryIO, segment: Segment, decoding: Callable[[bytes], _Decoded]
) -> Iterator[tuple[int, _Decoded | Flaw]]:
    name = segment.path.name
    count = 0
    for frame in walk(file):
        offset = frame.offset
        if isinstance(frame, BadFrame):
            yield offset, Flaw(FlawKind.TORN if frame.torn else FlawKind.DAMAGED, name, offset, frame.message)
            return
        try:
            record = decoding(frame.payload)
        except msgspec.MsgspecError as error:
            message = f"a whole frame, but not a record that this version of Optimus knows: {error}"
            yield offset, Flaw(FlawKind.FOREIGN, name, offset, message)
            return
        if problem := _problem(record, count, segment.first_sequence):
            yield offset, Flaw(problem[0], name, offset, problem[1])
            return
        yield offset, record
        count += 1
    if count < len(_HEAD):
        message = f"the segment ends before its {_HEAD[count].__name__}"
        yield file.tell(), Flaw(FlawKind.TORN, name, file.tell(), message)


def read_opened(segment: Segment) -> Opened | None:
    """The first record alone, a few hundred bytes; None where it cannot be read."""
    try:
        first = next(read_segment(segment))
    except FileNotFoundError:
        return None
    return first if isinstance(first, Opened) else None


def _problem(record: Record | Observed, place: int, first_sequence: int) -> tuple[FlawKind, str] | None:
    """What is wrong with finding this record at this place."""
    wanted = _HEAD[place] if place < len(_HEAD) else Cycle
    if not isinstance(record, wanted) and not (wanted is Cycle and isinstance(record, Facts)):
        return FlawKind.DAMAGED, f"{type(record).__name__} where {wanted.__name__} belongs"
    if isinstance(record, Opened) and record.format_version != FORMAT_VERSION:
        return FlawKind.FOREIGN, (
            f"written in format {record.format_version} by Optimus {record.optimus_version}; this version reads "
            f"format {FORMAT_VERSION}: read it with the version that wrote it"
        )
    sequence = first_sequence + max(place - len(_HEAD), 0)
    if record.sequence != sequence:
        return FlawKind.DAMAGED, f"{type(record).__name__} {record.sequence} where {sequence} belongs"
    return None
