"""Killed writers, lost power, flipped bytes: what was whole stays, what was torn is noticed and cut."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optimus.engine.journal import Cycle, Flaw, FlawKind, Journal, JournalSettings, Keyframe
from optimus.engine.journal_frames import HEADER_BYTES, MARK
from tests.replay.journal_samples import Recording, cycles_in, names_in, read_all, write_journal

ONE_SEGMENT = JournalSettings(rotate_cycles=100, keep_bytes=None)
REPOSITORY = Path(__file__).parents[2]


def last_segment(folder: Path) -> Path:
    return max(folder.glob("*.journal"))


def reopen(folder: Path) -> tuple[Recording, list[str]]:
    notices: list[str] = []
    recording = Recording(folder, settings=ONE_SEGMENT, on_notice=notices.append)
    recording.start()
    return recording, notices


@pytest.fixture
def torn(tmp_path: Path) -> tuple[Path, list[Cycle], int]:
    """A journal of five cycles and the place where the last frame begins."""
    folder = tmp_path / "journal"
    write_journal(folder, 4, ONE_SEGMENT)
    before = last_segment(folder).stat().st_size
    shutil.rmtree(folder)
    return folder, write_journal(folder, 5, ONE_SEGMENT), before


def test_torn_at_every_byte_of_the_last_frame(
    torn: tuple[Path, list[Cycle], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # a thousand of them would take ten seconds
    folder, written, begin = torn
    path = last_segment(folder)
    whole = path.read_bytes()
    assert len(whole) - begin > 100
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        flaws = [item for item in read_all(folder) if isinstance(item, Flaw)]
        assert [flaw.kind for flaw in flaws] == ([FlawKind.TORN] if end > begin else [])
        recording, notices = reopen(folder)
        assert len(notices) == (1 if end > begin else 0), end
        assert path.stat().st_size == begin
        assert recording.cycle().sequence == 4
        recording.writer.close()
        assert [cycle.sequence for cycle in cycles_in(folder)] == [0, 1, 2, 3, 4]
        assert cycles_in(folder)[:4] == written[:4]
        assert not any(isinstance(item, Flaw) for item in read_all(folder))
        last_segment(folder).unlink()


def test_torn_at_every_byte_of_the_head(tmp_path: Path) -> None:
    write_journal(tmp_path, 5)  # rotated: the last segment is Opened and Keyframe only
    path = last_segment(tmp_path)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        recording, _ = reopen(tmp_path)
        assert recording.cycle().sequence == 5
        recording.writer.close()
        assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [0, 1, 2, 3, 4, 5]
        assert not any(isinstance(item, Flaw) for item in read_all(tmp_path))


@pytest.mark.parametrize("zeros", [1, HEADER_BYTES - 1, HEADER_BYTES, 4096, 100_000])
def test_a_tail_of_zeros_as_power_loss_leaves_it(torn: tuple[Path, list[Cycle], int], zeros: int) -> None:
    folder, written, begin = torn
    path = last_segment(folder)
    path.write_bytes(path.read_bytes()[: begin + 20] + b"\0" * zeros)
    recording, notices = reopen(folder)
    recording.writer.close()
    assert len(notices) == 1
    assert "cut off" in notices[0]
    assert cycles_in(folder) == written[:4]


def test_two_torn_segments_at_the_end(tmp_path: Path) -> None:
    """Without fsync a power loss can take the ends of several files."""
    written = write_journal(tmp_path, 8)
    for path in sorted(tmp_path.glob("*.journal"))[-2:]:
        path.write_bytes(path.read_bytes()[:-5])
    recording, notices = reopen(tmp_path)
    assert recording.cycle().sequence == 7
    recording.writer.close()
    assert len(notices) == 2
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [0, 1, 2, 3, 5, 6, 7]
    assert cycles_in(tmp_path)[:4] == written[:4]
    gap = next(item for item in read_all(tmp_path) if isinstance(item, Flaw))
    assert (gap.kind, "cycles 4 to 4" in gap.message) == (FlawKind.GAP, True)


def test_a_blank_segment_after_a_torn_one(tmp_path: Path) -> None:
    write_journal(tmp_path, 7)
    torn, blank = sorted(tmp_path.glob("*.journal"))
    torn.write_bytes(torn.read_bytes()[:-5])
    for content in (b"", b"\0" * 4096):
        blank.write_bytes(content)
        recording, notices = reopen(tmp_path)
        recording.writer.close()
        assert "was blank; removed" in notices[0]
        assert not list(tmp_path.glob("*.unreadable"))
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [0, 1, 2, 3]
    assert not [item for item in read_all(tmp_path) if isinstance(item, Flaw) and item.kind is not FlawKind.GAP]


def test_a_length_that_is_garbage_is_not_believed(tmp_path: Path) -> None:
    write_journal(tmp_path, 3, ONE_SEGMENT)
    with last_segment(tmp_path).open("ab") as file:
        file.write(MARK + b"\xff" * 8 + b"short")
    flaw = read_all(tmp_path)[-1]
    assert isinstance(flaw, Flaw)
    assert flaw.message == "a frame of 4294967295 bytes, and the file ends after 5"


@pytest.mark.slow
@pytest.mark.parametrize("segment", [0, 1, 2])
def test_a_flipped_byte_anywhere_is_noticed_and_the_next_segment_is_read(tmp_path: Path, segment: int) -> None:
    written = write_journal(tmp_path, 6, JournalSettings(rotate_cycles=2, keep_bytes=None))
    path = sorted(tmp_path.glob("*.journal"))[segment]
    whole = bytearray(path.read_bytes())
    elsewhere = {0, 1, 2, 3, 4, 5} - {2 * segment, 2 * segment + 1}
    for place in range(len(whole)):
        whole[place] ^= 0x10
        path.write_bytes(whole)
        whole[place] ^= 0x10
        items = read_all(tmp_path)
        flaws = [item for item in items if isinstance(item, Flaw)]
        assert len(flaws) == 1, place
        assert flaws[0].segment == path.name
        assert flaws[0].offset <= place
        cycles = [item for item in items if isinstance(item, Cycle)]
        numbers = [cycle.sequence for cycle in cycles]
        assert numbers == sorted(set(numbers))
        assert elsewhere <= set(numbers)
        assert cycles == [written[number] for number in numbers]


def test_damage_in_the_middle_of_the_last_segment_costs_nothing_behind_it(tmp_path: Path) -> None:
    write_journal(tmp_path, 9, ONE_SEGMENT)
    path = last_segment(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    recording, notices = reopen(tmp_path)
    assert recording.cycle().sequence == 9  # the numbers behind the damage are known
    recording.writer.close()
    assert path.read_bytes() == content
    assert "nothing is cut off" in notices[0]
    flaw = next(item for item in read_all(tmp_path) if isinstance(item, Flaw))
    assert flaw.kind is FlawKind.DAMAGED
    assert "to 8 cannot be read" in flaw.message


def test_a_file_that_cannot_be_understood_is_set_aside_not_deleted(tmp_path: Path) -> None:
    write_journal(tmp_path, 5)
    path = last_segment(tmp_path)
    path.write_bytes(b"something else altogether")
    recording, notices = reopen(tmp_path)
    recording.writer.close()
    assert "set aside" in notices[0]
    assert (tmp_path / f"{path.name}.unreadable").read_bytes() == b"something else altogether"


def test_a_journal_of_a_later_format_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimus.engine.journal_writing.FORMAT_VERSION", 99)
    write_journal(tmp_path, 3)
    monkeypatch.undo()
    path = last_segment(tmp_path)
    before = path.read_bytes()
    recording, _ = reopen(tmp_path)
    assert recording.cycle().sequence == 3
    recording.writer.close()
    assert path.read_bytes() == before
    flaw = read_all(tmp_path)[0]
    assert isinstance(flaw, Flaw)
    assert (flaw.kind, "format 99" in flaw.message) == (FlawKind.FOREIGN, True)
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [3]


def test_records_out_of_order_are_damage(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    _first, second, third = sorted(tmp_path.glob("*.journal"))
    second.write_bytes(third.read_bytes())
    flaw = next(item for item in read_all(tmp_path) if isinstance(item, Flaw))
    assert flaw.message.startswith("Opened 10 where 5 belongs")


def test_a_segment_cut_short_in_the_middle_of_the_journal_is_damage(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    path = sorted(tmp_path.glob("*.journal"))[1]
    path.write_bytes(path.read_bytes()[:-5])
    flaw = next(item for item in read_all(tmp_path) if isinstance(item, Flaw))
    assert (flaw.kind, "cycles 9 to 9 cannot be read" in flaw.message) == (FlawKind.DAMAGED, True)


def test_a_segment_that_ends_between_its_first_two_records_is_torn(tmp_path: Path) -> None:
    write_journal(tmp_path, 3, ONE_SEGMENT)
    path = last_segment(tmp_path)
    length = int.from_bytes(path.read_bytes()[4:8], "little")
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + length])
    _opened, flaw = read_all(tmp_path)
    assert isinstance(flaw, Flaw)
    assert (flaw.kind, flaw.message) == (FlawKind.TORN, "the segment ends before its Keyframe")


def test_a_missing_segment_is_a_gap(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    sorted(tmp_path.glob("*.journal"))[1].unlink()
    items = read_all(tmp_path)
    flaw = next(item for item in items if isinstance(item, Flaw))
    assert (flaw.kind, flaw.message) == (FlawKind.GAP, "cycles 5 to 9 are not in the journal")
    assert isinstance(items[items.index(flaw) + 2], Keyframe)


@pytest.mark.slow
def test_kill_nine_at_random_moments_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(7)
    expected_first = 0
    for _ in range(12):
        acknowledged = _run_and_kill(tmp_path, chance.uniform(0.0, 0.15))
        assert acknowledged[0] == expected_first
        cycles = cycles_in(tmp_path)
        numbers = [cycle.sequence for cycle in cycles]
        assert numbers == list(range(len(numbers)))
        assert numbers[-1] in (acknowledged[-1], acknowledged[-1] + 1)
        assert all(item.kind is FlawKind.TORN for item in Journal(tmp_path).read() if isinstance(item, Flaw))
        expected_first = numbers[-1] + 1
    recording, _ = reopen(tmp_path)
    assert recording.cycle().sequence == expected_first
    recording.writer.close()
    assert len(names_in(tmp_path)) > 12
    assert not list(tmp_path.glob("*.part"))


def _run_and_kill(folder: Path, after_s: float) -> list[int]:
    """Sequence numbers the writer said were recorded before it was killed."""
    command = [sys.executable, "-m", "tests.replay.journal_endless_writer", str(folder)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, env={"PYTHONPATH": f"{REPOSITORY / 'src'}"}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    return [int(line) for line in lines if line.endswith("\n")]
