"""Any moment, from the nearest keyframe before it."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pytest

from optimus.engine import journal_frames, journal_segments
from optimus.engine.journal import Cycle, FlawKind, Journal, JournalError, JournalSettings
from tests.replay.journal_samples import Counting, Recording, write_journal


@pytest.fixture
def written(tmp_path: Path) -> list[Cycle]:
    """Cycles 0 to 32 at 1000, 2000 … 33000 ms; keyframes before 0, 5, 10 … 30."""
    return write_journal(tmp_path, 33)


@pytest.mark.parametrize("sequence", range(33))
def test_by_number(tmp_path: Path, written: list[Cycle], sequence: int) -> None:
    moment = Journal(tmp_path).seek(sequence=sequence)
    begin = sequence // 5 * 5
    assert moment.keyframe.sequence == begin
    assert list(moment.cycles) == written[begin : sequence + 1]
    assert (moment.sequence, moment.flaws) == (sequence, ())


@pytest.mark.parametrize("now_ms", [0, 999, 1000, 1001, 4999, 5000, 5001, 6000, 29_500, 30_000, 30_001, 33_000, 10**9])
def test_by_time(tmp_path: Path, written: list[Cycle], now_ms: int) -> None:
    moment = Journal(tmp_path).seek(now_ms=now_ms)
    past = [cycle for cycle in written if cycle.now_ms <= now_ms]
    assert moment.sequence == len(past) - 1
    assert moment.cycles[-1:] == tuple(past[-1:])  # the last decision is always there, also right at a rotation
    assert moment.keyframe.sequence + len(moment.cycles) == len(past)


def test_the_moment_leads_to_the_state_of_then(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.start()
    states = []
    for _ in range(23):
        recording.cycle()
        states.append(recording.brain.dump())
    recording.writer.close()
    for sequence, state in enumerate(states):
        moment = Journal(tmp_path).seek(sequence=sequence)
        brain = Counting()
        brain.restore(bytes(moment.keyframe.state))
        for cycle in moment.cycles:
            brain.step(cycle.observations, cycle.now_ms, budget=cycle.budget, policy=cycle.policy, seed=cycle.seed)
        assert brain.dump() == state


def test_beyond_the_end_is_the_end(tmp_path: Path, written: list[Cycle]) -> None:
    moment = Journal(tmp_path).seek(sequence=10**12)
    assert moment.cycles[-1] == written[-1]
    assert moment.flaws == ()


def test_before_the_beginning_is_an_error_that_says_where_it_begins(tmp_path: Path) -> None:
    write_journal(tmp_path, 33, JournalSettings(rotate_cycles=5, keep_bytes=None, keep_segments=2))
    with pytest.raises(JournalError, match="before cycle 3; it begins with cycle 25 at 1970-01-01T00:00:25Z"):
        Journal(tmp_path).seek(sequence=3)
    with pytest.raises(JournalError, match=r"before 1970-01-01T00:00:24\.999Z; it begins"):
        Journal(tmp_path).seek(now_ms=24_999)


def test_no_journal_at_all(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal in"):
        Journal(tmp_path / "nowhere").seek(sequence=0)
    assert list(Journal(tmp_path / "nowhere").read()) == []


def test_number_or_time_not_both(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Journal(tmp_path).seek()
    with pytest.raises(TypeError):
        Journal(tmp_path).seek(sequence=1, now_ms=1)


def test_a_damaged_keyframe_falls_back_to_the_one_before_and_says_so(tmp_path: Path, written: list[Cycle]) -> None:
    path = sorted(tmp_path.glob("*.journal"))[3]
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    for moment in (Journal(tmp_path).seek(sequence=17), Journal(tmp_path).seek(now_ms=18_500)):
        assert moment.keyframe.sequence == 10
        assert moment.sequence == 14
        assert [(flaw.kind, flaw.segment) for flaw in moment.flaws] == [(FlawKind.DAMAGED, path.name)]


def test_a_moment_inside_a_gap_is_the_one_before_it_and_says_so(tmp_path: Path, written: list[Cycle]) -> None:
    sorted(tmp_path.glob("*.journal"))[3].unlink()
    moment = Journal(tmp_path).seek(sequence=17)
    assert moment.sequence == 14
    assert [flaw.message for flaw in moment.flaws] == ["cycles 15 to 19 are not in the journal"]


def test_after_a_start_the_moment_begins_with_the_new_state(tmp_path: Path, written: list[Cycle]) -> None:
    recording = Recording(tmp_path, start_ms=40_000)
    assert recording.start() == 33
    recording.writer.close()
    moment = Journal(tmp_path).seek(now_ms=40_000)
    assert (moment.keyframe.sequence, moment.cycles) == (33, ())
    assert Journal(tmp_path).seek(now_ms=39_999).sequence == 32


def test_seeking_opens_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_journal(tmp_path, 1000, JournalSettings(rotate_cycles=2, keep_bytes=None))
    opened: list[object] = []
    walk = journal_frames.walk

    def counting(file: BinaryIO) -> object:
        opened.append(file)
        return walk(file)

    monkeypatch.setattr(journal_segments, "walk", counting)
    assert Journal(tmp_path).seek(now_ms=777_000).sequence == 776
    assert len(opened) <= 11  # log2 of 501 segments, and the one that is read
    opened.clear()
    assert Journal(tmp_path).seek(sequence=776).sequence == 776
    assert len(opened) == 1
