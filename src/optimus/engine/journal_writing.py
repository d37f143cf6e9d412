"""Writing: the engine's hand on the journal.

    not started ──start──► writing ◄──── a new segment with a keyframe ────┐
         │                    │  ▲                                         │
         │ start failed       │  └─ rotation                               │
         ▼                    ▼                                            │
        gap ◄──────── a write failed: one JournalError ─── tries again ────┘

Why: a decision that was recorded can be explained and replayed; one that could not be recorded must not stop the
engine either.
Owns: the numbers of the cycles, when a segment is full, when an old one goes, and the gap.
Must not: read a clock, know what a state is, or raise anything but JournalError for what a disk can do to it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from optimus import __version__
from optimus.engine.journal_files import SegmentFile, list_segments, lock_folder, remove_parts
from optimus.engine.journal_frames import MAX_PAYLOAD_BYTES, header, pack
from optimus.engine.journal_mending import mend
from optimus.engine.journal_records import (
    FORMAT_VERSION,
    Cycle,
    JournalError,
    Keyframe,
    Opened,
    as_state,
    compress,
    encode,
)
from optimus.engine.journal_retention import JournalSettings, Kept, count_surplus
from optimus.engine.journal_segments import read_opened
from optimus.model.observations import Observation
from optimus.model.plans import Budget, Plan

_log = logging.getLogger(__name__)

MAX_CYCLES_BETWEEN_TRIES = 64
"""Each try to leave a gap dumps the state; on a disk that stays full the tries become rare."""


class Gap(Struct, frozen=True):
    """Cycles that were decided and are not in the journal."""

    first_sequence: int
    cycles: int
    cause: str

    def __str__(self) -> str:
        last = self.first_sequence + self.cycles - 1
        which = f"cycles {self.first_sequence} to {last} are" if self.cycles != 1 else f"cycle {last} is"
        return f"{which} not recorded: {self.cause}" if self.cycles else f"nothing can be recorded: {self.cause}"


class JournalWriter:
    """One per folder (a lock sees to it). Not for use from several threads."""

    def __init__(
        self,
        folder: Path,
        *,
        dump: Callable[[], bytes],
        policy: str = "",
        seed: int = 0,
        settings: JournalSettings | None = None,
        on_notice: Callable[[str], None] = _log.warning,
    ) -> None:
        """`dump` gives the state as one msgpack message. It is called inside `start` and `record` only."""
        self.folder = folder
        self.settings = settings or JournalSettings()
        self.next_sequence = 0
        self.gap: Gap | None = None
        """Set while cycles are being lost; None while all is well."""
        self._dump = dump
        self._policy = policy
        self._seed = seed
        self._notice = on_notice
        self._lock = -1
        self._started = False
        self._mended = False
        self._file: SegmentFile | None = None
        self._kept: list[Kept] = []
        self._next_try = 0
        self._unsynced = 0
        self._rotate_at_cycle = 0
        self._bytes_until_rotation = 0

    # ------------------------------------------------------------------------------------------------ for the engine

    def start(self, now_ms: int, note: str = "") -> int:
        """Mend what a crash left, begin a segment with the present state, and say the number of the next cycle.

        After a JournalError the writer is in a gap: the engine may go on, and `record` tries again by itself.
        """
        self._started = True
        try:
            self._mend()
            self._begin(now_ms, continues=False, note=note)
        except (OSError, JournalError) as error:
            raise self._lose(error, cycles=0) from error
        return self.next_sequence

    def record(
        self,
        *,
        now_ms: int,
        observations: tuple[Observation, ...],
        budget: Budget,
        policy: str,
        seed: int,
        plan: Plan,
    ) -> Cycle:
        """Record one cycle. Call it when the state has taken the observations and assumed the plan: a keyframe that
        is due is taken here, and holds what the *next* cycle starts from.

        The first failure raises JournalError; then `gap` is set, and the following calls lose their cycle quietly
        until a new segment could be begun.
        """
        if not self._started:
            raise RuntimeError("call start() before record()")
        self._policy, self._seed = policy, seed
        cycle = Cycle(
            sequence=self.next_sequence,
            now_ms=now_ms,
            observations=observations,
            budget=budget,
            policy=policy,
            seed=seed,
            plan=plan,
        )
        self.next_sequence += 1
        if self._file is None:
            self._leave_gap(now_ms)
            return cycle
        try:
            payload = _payload(cycle)
        except JournalError as error:
            failure = self._lose(error, cycles=1)
            self._leave_gap(now_ms, lost=0)  # nothing is wrong with the disk: the next cycle can be recorded
            raise failure from error
        try:
            self._append(self._file, payload)
        except OSError as error:
            raise self._lose(error, cycles=1) from error
        if self.next_sequence >= self._rotate_at_cycle or self._bytes_until_rotation <= 0:
            self._rotate(now_ms)
        return cycle

    def close(self) -> None:
        """Leave a whole journal behind. Nothing can be recorded afterwards."""
        self._started = False
        self._close_file()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------ segments

    def _begin(self, now_ms: int, *, continues: bool, note: str) -> None:
        """A new segment from the present state; the old one is left only when the new one stands."""
        sequence = self.next_sequence
        opened = Opened(
            format_version=FORMAT_VERSION,
            optimus_version=__version__,
            sequence=sequence,
            now_ms=now_ms,
            policy=self._policy,
            seed=self._seed,
            continues=continues,
            note=note,
        )
        keyframe = Keyframe(sequence=sequence, now_ms=now_ms, state=as_state(self._dump_state()))
        head, state = _payload(opened), _payload(keyframe)
        if self.settings.compress_keyframes:
            state = compress(state)
        pieces = (pack(head), header(state), state)
        file = SegmentFile(self.folder, sequence, pieces, durable=self.settings.fsync_every > 0)
        self._close_file()
        self._file = file
        self._unsynced = 0
        self._kept = [kept for kept in self._kept if kept.path != file.path]  # one without cycles is replaced
        self._kept.append(Kept(file.path, now_ms, file.bytes))
        self._rotate_later()
        self._delete_old(now_ms)

    def _mend(self) -> None:
        if self._mended:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._lock < 0:
            self._lock = lock_folder(self.folder)
        remove_parts(self.folder)
        mended = mend(self.folder)
        for flaw in mended.flaws:
            self._notice(f"journal {self.folder}: {flaw}")
        kept: list[Kept] = []
        for segment in list_segments(self.folder):
            opened = read_opened(segment)
            # one whose first record is damaged is as old as the one before it
            opened_ms = opened.now_ms if opened else kept[-1].opened_ms if kept else 0
            kept.append(Kept(segment.path, opened_ms, segment.path.stat().st_size))
        self._kept = kept
        self._mended = True
        # cycles that were lost before the folder could be read were counted from zero
        self.next_sequence += mended.next_sequence
        if self.gap is not None:
            self.gap = Gap(self.gap.first_sequence + mended.next_sequence, self.gap.cycles, self.gap.cause)

    def _rotate(self, now_ms: int) -> None:
        try:
            self._begin(now_ms, continues=True, note="")
        except (OSError, JournalError) as error:  # no gap: the old segment goes on growing
            self._notice(f"journal {self.folder}: no new segment could be begun, the old one goes on: {error}")
            self._rotate_later()

    def _rotate_later(self) -> None:
        assert self._file is not None
        self._rotate_at_cycle = self.next_sequence + self.settings.rotate_cycles
        self._bytes_until_rotation = max(self.settings.rotate_bytes, self._file.head_bytes // 2)

    def _append(self, file: SegmentFile, payload: bytes) -> None:
        self._bytes_until_rotation -= len(payload)
        file.append(pack(compress(payload) if self.settings.compress else payload))
        self._kept[-1].bytes = file.bytes
        self._unsynced += 1
        if 0 < self.settings.fsync_every <= self._unsynced:
            file.sync()
            self._unsynced = 0

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if self.settings.fsync_every and self._unsynced:
                file.sync()
        except OSError as error:
            self._notice(f"journal {self.folder}: {file.path.name} may not be on disk whole: {error}")
        with suppress(OSError):
            file.close()

    def _delete_old(self, now_ms: int) -> None:
        for kept in self._kept[: count_surplus(self._kept, self.settings, now_ms)]:
            try:
                kept.path.unlink(missing_ok=True)
            except OSError as error:
                self._notice(f"journal {self.folder}: {kept.path.name} is too old and cannot be deleted: {error}")
                return
            self._kept.remove(kept)

    # ------------------------------------------------------------------------------------------------ the gap

    def _lose(self, error: Exception, *, cycles: int) -> JournalError:
        """Enter the gap; the error to raise."""
        if self._file is not None:
            self._unsynced = 0  # after a failed write or fsync nothing more is promised about this file
            self._close_file()
        self.gap = Gap(self.next_sequence - cycles, cycles, str(error))
        self._next_try = 1
        return JournalError(f"journal {self.folder}: {self.gap}; cycles are lost until a new segment can be begun")

    def _leave_gap(self, now_ms: int, lost: int = 1) -> None:
        """Count `lost` cycles and, if it is time, try to begin a segment after them."""
        assert self.gap is not None
        self.gap = Gap(self.gap.first_sequence, self.gap.cycles + lost, self.gap.cause)
        if self.gap.cycles < self._next_try:
            return
        try:
            self._mend()
            self._begin(now_ms, continues=False, note=f"after a gap: {self.gap}")
        except (OSError, JournalError) as error:
            self.gap = Gap(self.gap.first_sequence, self.gap.cycles, str(error))
            self._next_try = self.gap.cycles + min(self.gap.cycles, MAX_CYCLES_BETWEEN_TRIES)
            return
        self._notice(f"journal {self.folder}: recording again from cycle {self.next_sequence}; {self.gap}")
        self.gap = None

    def _dump_state(self) -> bytes:
        try:
            return self._dump()
        except Exception as error:  # whatever the state says, it must not stop the engine
            raise JournalError(f"the state cannot be dumped: {type(error).__name__}: {error}") from error


def _payload(record: Opened | Keyframe | Cycle) -> bytes:
    payload = encode(record)
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise JournalError(f"a {type(record).__name__} of {len(payload)} bytes is too large for a frame")
    return payload
