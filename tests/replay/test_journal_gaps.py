"""A full or read-only disk: one clear error, the engine goes on, and the journal says what it missed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from optimus.engine.journal import Flaw, FlawKind, Gap, JournalError, JournalSettings, JournalWriter, Opened, replay
from optimus.model.nodes import Node
from optimus.model.observations import NodeSeen
from tests.replay.journal_samples import SMALL, Counting, Recording, cycles_in, names_in, read_all

REPOSITORY = Path(__file__).parents[2]
REAL_WRITE = os.write


class FullDisk:
    """Takes `room` more bytes, a part of a write included, and then no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        monkeypatch.setattr(os, "write", self._write)

    def _write(self, descriptor: int, data: memoryview) -> int:
        if self.room is None:
            return REAL_WRITE(descriptor, data)
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = REAL_WRITE(descriptor, data[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch)


def gap_of(recording: Recording) -> Gap | None:
    return recording.writer.gap


def flaws_in(folder: Path) -> list[Flaw]:
    return [item for item in read_all(folder) if isinstance(item, Flaw)]


def test_one_error_then_quiet_then_a_new_segment_with_a_keyframe(tmp_path: Path, disk: FullDisk) -> None:
    notices: list[str] = []
    recording = Recording(tmp_path, settings=JournalSettings(), on_notice=notices.append)
    recording.start()
    for _ in range(3):
        recording.cycle()
    disk.room = 50
    with pytest.raises(JournalError, match=r"cycle 3 is not recorded: \[Errno 28\] No space left on device"):
        recording.cycle()
    for _ in range(3):
        recording.cycle()  # no error: the engine knows already
    gap = gap_of(recording)
    assert gap is not None
    assert (gap.first_sequence, gap.cycles) == (3, 4)
    disk.room = None
    for _ in range(10):
        recording.cycle()
    assert gap_of(recording) is None
    recording.writer.close()
    numbers = [cycle.sequence for cycle in cycles_in(tmp_path)]
    first = names_in(tmp_path)[1]
    assert numbers == [0, 1, 2, *range(first, 17)]
    (flaw,) = flaws_in(tmp_path)
    assert (flaw.kind, f"cycles 3 to {first - 1} are not" in flaw.message) == (FlawKind.GAP, True)
    assert [record.continues for record in read_all(tmp_path) if isinstance(record, Opened)] == [False, False]
    assert f"recording again from cycle {first}" in notices[-1]
    assert all(replayed.equal for replayed in replay(tmp_path, Counting))


def test_full_after_any_number_of_bytes(tmp_path: Path, disk: FullDisk) -> None:
    """Wherever the disk becomes full, what is read is whole, in order and replays."""
    for room in range(0, 4000, 37):
        folder = tmp_path / str(room)
        recording = Recording(folder, settings=JournalSettings(rotate_cycles=3, keep_bytes=None))
        recording.start()
        errors = 0
        disk.room = room
        for number in range(40):
            if number == 12:
                disk.room = None
            try:
                recording.cycle()
            except JournalError:
                errors += 1
        recording.writer.close()
        assert errors <= 1
        assert recording.writer.gap is None
        numbers = [cycle.sequence for cycle in cycles_in(folder)]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] == 39
        assert all(flaw.kind is FlawKind.GAP for flaw in flaws_in(folder))
        assert all(replayed.equal for replayed in replay(folder, Counting))
        assert not list(folder.glob("*.part"))


def test_a_failed_rotation_loses_nothing(tmp_path: Path) -> None:
    brain = Counting()
    broken = False

    def dump() -> bytes:
        if broken:
            raise ValueError("a bug in the state")
        return brain.dump()

    notices: list[str] = []
    recording = Recording(tmp_path)
    recording.brain = brain
    recording.writer = JournalWriter(tmp_path, dump=dump, settings=SMALL, on_notice=notices.append)
    recording.start()
    broken = True
    for _ in range(12):
        recording.cycle()
    broken = False
    for _ in range(8):
        recording.cycle()
    recording.writer.close()
    assert len(cycles_in(tmp_path)) == 20
    assert names_in(tmp_path) == [0, 15, 20]
    assert len(notices) == 2
    assert "a bug in the state" in notices[0]


@pytest.mark.parametrize("dump", [b"", b"\x93\x01", b"\x01\x02"], ids=["empty", "cut short", "two messages"])
def test_a_dump_that_is_not_one_message_is_refused(tmp_path: Path, dump: bytes) -> None:
    writer = JournalWriter(tmp_path, dump=lambda: dump)
    with pytest.raises(JournalError, match="not one msgpack message"):
        writer.start(0)
    writer.close()
    assert not names_in(tmp_path)


def test_a_cycle_that_cannot_be_written_down_costs_only_itself(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.start()
    recording.cycle()
    with pytest.raises(JournalError, match=r"cycle 1 is not recorded: a Cycle cannot be written down: .*surrogates"):
        recording.cycle((NodeSeen(Node(name="\ud800")),))
    assert recording.writer.gap is None
    recording.cycle()
    recording.writer.close()
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [0, 2]
    assert all(replayed.equal for replayed in replay(tmp_path, Counting))


def test_fsync_that_fails_is_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(tmp_path, settings=JournalSettings(fsync_every=1))
    recording.start()

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(JournalError, match="Input/output error"):
            recording.cycle()
        recording.cycle()
        assert gap_of(recording)
        assert names_in(tmp_path) == [0]
    for _ in range(5):
        recording.cycle()
    assert not gap_of(recording)
    recording.writer.close()
    assert [cycle.sequence for cycle in cycles_in(tmp_path)] == [0, 4, 5, 6]  # 0 was written, but not promised


def test_a_folder_that_cannot_be_made_and_later_can(tmp_path: Path) -> None:
    in_the_way = tmp_path / "journal"
    in_the_way.write_text("a file")
    recording = Recording(in_the_way / "deeper")
    with pytest.raises(JournalError, match="nothing can be recorded"):
        recording.start()
    recording.cycle()
    in_the_way.unlink()
    recording.cycle()
    recording.cycle()
    recording.writer.close()
    assert [cycle.sequence for cycle in cycles_in(in_the_way / "deeper")] == [2]


def test_lost_numbers_follow_those_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder could not be read at the start: what was lost meanwhile comes after what is in it."""
    before = Recording(tmp_path)
    before.start()
    for _ in range(7):
        before.cycle()
    before.writer.close()
    recording = Recording(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", _refuse)
        with pytest.raises(JournalError, match="Read-only file system"):
            recording.start()
        recording.cycle()
    recording.cycle()
    assert recording.cycle().sequence == 9
    recording.writer.close()
    assert [flaw.message.split(" (")[0] for flaw in flaws_in(tmp_path)] == ["cycles 7 to 8 are not in the journal"]


def _refuse(*_arguments: object, **_keywords: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


class Found(Struct):
    errors: list[int]
    read: list[int]
    flaws: list[str]


def run_limited(folder: Path, before: str, wrapper: Callable[[list[str]], list[str]]) -> Found:
    """What a real process met on a disk that is really full: numbers recorded, numbers refused."""
    script = f"""
import json, resource, sys
from pathlib import Path
from optimus.engine.journal import JournalError, JournalSettings
from tests.replay.journal_samples import Recording, observations_of
folder = Path(sys.argv[1])
{before}
recording = Recording(folder, settings=JournalSettings(rotate_cycles=10_000, keep_bytes=None))
recording.start()
errors = []
for number in range(300):
    try:
        recording.cycle(observations_of(number))
    except JournalError as error:
        errors.append(number)
recording.writer.close()
from tests.replay.journal_samples import cycles_in, read_all
from optimus.engine.journal import Flaw
print(json.dumps({{"errors": errors, "read": [cycle.sequence for cycle in cycles_in(folder)],
                  "flaws": [item.kind for item in read_all(folder) if isinstance(item, Flaw)]}}))
"""
    command = wrapper([sys.executable, "-c", script, str(folder)])
    environment = {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}", "PATH": os.environ["PATH"]}
    result = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return msgspec.json.decode(result.stdout, type=Found)


def test_file_size_limit_of_the_process(tmp_path: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))"
    found = run_limited(tmp_path, limit, lambda command: command)
    assert 1 <= len(found.errors) <= 10  # each segment meets the limit once
    lost = 300 - len(found.read)
    assert len(found.errors) <= lost <= 2 * len(found.errors)  # the failing cycle, and the next for the keyframe
    assert set(found.flaws) == {"gap"}


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="cannot mount a small disk here")
def test_a_really_full_disk(tmp_path: Path) -> None:
    """A 64 KiB tmpfs in a mount namespace of its own; nothing of it is seen outside."""
    mount = f'mount -t tmpfs -o size=64k none {tmp_path} && exec "$@"'
    found = run_limited(tmp_path, "", lambda command: ["unshare", "-m", "sh", "-c", mount, "sh", *command])
    assert len(found.errors) == 1
    assert found.read == list(range(found.errors[0]))
    assert found.flaws == []
