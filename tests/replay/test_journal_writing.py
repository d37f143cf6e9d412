"""What is written is what is read; segments follow each other and old ones go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optimus import __version__
from optimus.engine.journal import (
    FORMAT_VERSION,
    Cycle,
    Flaw,
    Journal,
    JournalError,
    JournalSettings,
    JournalWriter,
    Keyframe,
    Opened,
)
from optimus.engine.journal_retention import Kept, count_surplus
from optimus.model.nodes import Node
from optimus.model.observations import NodeSeen, TablesRefreshed
from optimus.model.packing import PackingTables
from tests.replay.journal_samples import SMALL, Recording, cycles_in, names_in, read_all, write_journal


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    written = write_journal(tmp_path, 12)
    assert cycles_in(tmp_path) == written
    assert [cycle.sequence for cycle in written] == list(range(12))


def test_every_segment_begins_with_opened_and_a_keyframe(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    assert names_in(tmp_path) == [0, 5, 10]
    kinds = [type(record).__name__ for record in read_all(tmp_path)]
    head = ["Opened", "Keyframe"]
    assert kinds == [*head, *["Cycle"] * 5, *head, *["Cycle"] * 5, *head, *["Cycle"] * 2]


def test_opened_says_who_wrote_it_and_whether_it_continues(tmp_path: Path) -> None:
    write_journal(tmp_path, 6)
    first, second = [record for record in read_all(tmp_path) if isinstance(record, Opened)]
    assert (first.format_version, first.optimus_version) == (FORMAT_VERSION, __version__)
    assert (first.sequence, first.continues) == (0, False)
    assert (second.sequence, second.continues, second.now_ms, second.policy) == (5, True, 5000, "default")


def test_the_keyframe_is_the_state_the_next_cycle_starts_from(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.start()
    for _ in range(5):
        recording.cycle()
    dump = recording.brain.dump()
    recording.writer.close()
    keyframe = [record for record in read_all(tmp_path) if isinstance(record, Keyframe)][-1]
    assert (keyframe.sequence, keyframe.now_ms, bytes(keyframe.state)) == (5, 5000, dump)


def test_rotation_by_bytes_counts_cycles_before_compression(tmp_path: Path) -> None:
    for compress in (False, True):
        settings = JournalSettings(rotate_cycles=1000, rotate_bytes=1500, keep_bytes=None, compress=compress)
        write_journal(tmp_path / str(compress), 60, settings)
    names = names_in(tmp_path / "False")
    assert 5 < len(names) < 40
    assert names_in(tmp_path / "True") == names
    plain, small = (
        sum(path.stat().st_size for path in (tmp_path / name).glob("*.journal")) for name in ("False", "True")
    )
    assert small < 0.8 * plain


def test_compressed_and_plain_segments_live_side_by_side(tmp_path: Path) -> None:
    written = []
    for compress in (True, False, True):
        written += write_journal(tmp_path, 4, JournalSettings(compress=compress))
    assert cycles_in(tmp_path) == written


def test_a_state_larger_than_the_limit_does_not_mean_a_keyframe_per_cycle(tmp_path: Path) -> None:
    settings = JournalSettings(rotate_cycles=1000, rotate_bytes=10, keep_bytes=None)
    recording = Recording(tmp_path, settings=settings)
    dump = b"\xc6" + (5000).to_bytes(4, "big") + b"x" * 5000
    recording.writer = JournalWriter(tmp_path, dump=lambda: dump, settings=settings)
    recording.start()
    for _ in range(60):
        recording.cycle()
    recording.writer.close()
    assert 2 <= len(names_in(tmp_path)) <= 12  # a cycle takes about 500 bytes


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (JournalSettings(rotate_cycles=5, keep_bytes=None, keep_segments=3), [40, 45, 50]),
        (JournalSettings(rotate_cycles=5, keep_bytes=None, keep_ms=12 * 1000), [35, 40, 45, 50]),
        (JournalSettings(rotate_cycles=5, keep_bytes=1), [45, 50]),
        (JournalSettings(rotate_cycles=5, keep_bytes=None, keep_segments=0), [45, 50]),
        (JournalSettings(rotate_cycles=5, keep_bytes=None, keep_ms=0), [45, 50]),
        (JournalSettings(rotate_cycles=5, keep_bytes=None), list(range(0, 51, 5))),
    ],
    ids=["count", "age", "bytes", "never the newest two", "nor by age", "everything"],
)
def test_retention(tmp_path: Path, settings: JournalSettings, expected: list[int]) -> None:
    written = write_journal(tmp_path, 52, settings)
    assert names_in(tmp_path) == expected
    assert cycles_in(tmp_path) == written[expected[0] :]


def test_retention_by_bytes_keeps_the_folder_near_the_limit(tmp_path: Path) -> None:
    write_journal(tmp_path, 200, JournalSettings(rotate_cycles=5, keep_bytes=20_000))
    total = sum(path.stat().st_size for path in tmp_path.glob("*.journal"))
    assert 10_000 < total < 25_000


def test_retention_by_bytes_deletes_no_more_than_needed() -> None:
    kept = [Kept(Path(str(number)), opened_ms=number, bytes=10) for number in range(10)]
    assert [count_surplus(kept, JournalSettings(keep_bytes=limit), 0) for limit in (100, 99, 45, 1)] == [0, 1, 6, 8]


def test_retention_knows_the_segments_of_earlier_runs_and_spares_other_files(tmp_path: Path) -> None:
    write_journal(tmp_path, 22)
    (tmp_path / "notes.journal").write_text("mine")
    recording = Recording(
        tmp_path, settings=JournalSettings(rotate_cycles=5, keep_bytes=None, keep_ms=5000), start_ms=22_000
    )
    assert recording.start() == 22
    recording.writer.close()
    assert sorted(path.name for path in tmp_path.glob("*.journal"))[:-1] == [f"{n:020d}.journal" for n in (15, 20, 22)]
    assert (tmp_path / "notes.journal").read_text() == "mine"


def test_a_start_continues_the_numbers_in_a_new_segment(tmp_path: Path) -> None:
    first = write_journal(tmp_path, 7)
    recording = Recording(tmp_path, start_ms=7000)
    assert recording.start() == 7
    second = [recording.cycle() for _ in range(3)]
    recording.writer.close()
    assert cycles_in(tmp_path) == first + second
    assert names_in(tmp_path) == [0, 5, 7]
    assert not any(isinstance(record, Flaw) for record in read_all(tmp_path))


def test_starting_again_and_again_without_a_cycle_leaves_one_segment(tmp_path: Path) -> None:
    for _ in range(5):
        recording = Recording(tmp_path)
        assert recording.start() == 0
        recording.writer.close()
    assert names_in(tmp_path) == [0]


def test_a_replaced_segment_is_not_counted_twice_by_retention(tmp_path: Path) -> None:
    write_journal(tmp_path, 5)  # the segment that begins with cycle 5 holds no cycle yet
    written = write_journal(tmp_path, 5, JournalSettings(rotate_cycles=5, keep_bytes=None, keep_segments=2))
    assert names_in(tmp_path) == [5, 10]
    assert cycles_in(tmp_path) == written


def test_only_one_writer_per_folder(tmp_path: Path) -> None:
    one, two = Recording(tmp_path), Recording(tmp_path)
    one.start()
    with pytest.raises(JournalError, match="another process writes"):
        two.start()
    one.cycle()
    two.cycle()
    one.writer.close()
    two.cycle()  # the lock is free: the second takes over, after the cycles of the first
    assert two.writer.gap is None
    assert two.cycle().sequence == 3
    two.writer.close()
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [0, 3]


@pytest.mark.parametrize(("every", "cycles", "expected"), [(0, 9, 0), (1, 9, 9), (4, 9, 3)])
def test_fsync_as_often_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int, cycles: int, expected: int
) -> None:
    recording = Recording(tmp_path, settings=JournalSettings(fsync_every=every))
    recording.start()
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    for _ in range(cycles):
        recording.cycle()
    recording.writer.close()  # what is left is synced here
    assert len(calls) == expected


def test_integers_beyond_64_bits_are_recorded(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.start()
    huge = NodeSeen(Node(name="a", memory_mib=2**90, cpu_milli=-(2**70)))
    recording.cycle((huge,))
    recording.cycle()
    recording.writer.close()
    assert cycles_in(tmp_path)[0].observations == (huge,)
    assert recording.writer.gap is None


def test_nan_survives_where_it_may_occur(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.start()
    recording.cycle((TablesRefreshed(PackingTables(gap_value=(float("nan"), 0.1 + 0.2))),))
    recording.writer.close()
    observation = cycles_in(tmp_path)[0].observations[0]
    assert isinstance(observation, TablesRefreshed)
    assert observation.tables.gap_value[0] != observation.tables.gap_value[0]
    assert observation.tables.gap_value[1] == 0.1 + 0.2


def test_what_neither_encoding_can_hold_is_refused_at_once(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.start()
    nan = TablesRefreshed(PackingTables(gap_value=(float("nan"),)))
    with pytest.raises(JournalError, match="cannot be written down"):
        recording.cycle((nan, NodeSeen(Node(name="a", memory_mib=2**90))))
    recording.cycle()
    recording.writer.close()
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [1]


def test_recording_before_starting_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="start"):
        Recording(tmp_path).cycle()


@pytest.mark.parametrize("bad", [{"rotate_cycles": 0}, {"rotate_bytes": 0}, {"fsync_every": -1}, {"keep_ms": -1}])
def test_settings_that_make_no_sense_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        JournalSettings(**bad)  # type: ignore[arg-type]


def test_a_journal_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    recording = Recording(tmp_path, settings=SMALL)
    recording.start()
    read = 0
    for number in range(20):
        reader = Journal(tmp_path).read(from_sequence=max(number - 3, 0))
        next(reader)
        recording.cycle()
        rest = list(reader)
        assert not [item for item in rest if isinstance(item, Flaw)]
        read += sum(isinstance(item, Cycle) for item in rest)
    recording.writer.close()
    assert read > 20
