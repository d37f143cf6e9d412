"""What is not whole is never loaded; what cannot be written does not cost what was written before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import optimus
from optimus.inside.loops import FINISHED
from tests.inside.jobs import Job


def saved_at_two_and_four(folder: Path) -> tuple[Path, Path]:
    state = {"sum": 0}
    for step in optimus.steps(4, state=state, every=2, folder=folder):
        state["sum"] += step
    FINISHED.clear()
    older, newer = sorted((folder / "steps").iterdir())
    return older, newer


def cut(checkpoint: Path) -> None:
    file = checkpoint / "state.pickle"
    file.write_bytes(file.read_bytes()[:-1])


def garble(checkpoint: Path) -> None:
    file = checkpoint / "state.pickle"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def empty_description(checkpoint: Path) -> None:
    (checkpoint / "checkpoint.json").write_text("")


def lose_the_state(checkpoint: Path) -> None:
    (checkpoint / "state.pickle").unlink()


@pytest.mark.parametrize("damage", [cut, garble, empty_description, lose_the_state])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before_and_says_so(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    older, newer = saved_at_two_and_four(tmp_path)
    damage(newer)
    state = {"sum": 0}
    seen = []

    def train() -> None:
        for step in optimus.steps(5, state=state, folder=tmp_path):
            seen.append(step)
            state["sum"] += step

    with pytest.warns(optimus.CheckpointWarning, match=f"{newer.name} .* not whole .* resuming from {older.name}"):
        train()
    assert (seen, state["sum"]) == ([2, 3, 4], sum(range(5)))
    assert (tmp_path / "steps" / f"unreadable-{newer.name}").exists(), "kept for a look, never loaded"


def test_if_none_can_be_read_it_does_not_start_over_by_itself(tmp_path: Path) -> None:
    for checkpoint in saved_at_two_and_four(tmp_path):
        cut(checkpoint)
    before = sorted((tmp_path / "steps").iterdir())
    with pytest.raises(
        optimus.CheckpointError, match=r"none of the checkpoints .* To start from the beginning, remove"
    ):
        next(iter(optimus.steps(5, state={"sum": 0}, folder=tmp_path)))
    assert sorted((tmp_path / "steps").iterdir()) == before


FULL_FOR_A_WHILE = """
    import os, resource, optimus

    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))  # as a full disk: a large file cannot be written
    state = {"sum": 0, "blob": b""}
    for step in optimus.steps(6, state=state, every=1):
        state["sum"] += step
        state["blob"] = bytes(100_000) if 2 <= step <= 3 else b""
        if step == 4:
            print(open(os.environ["OPTIMUS_STATUS_FILE"]).read())
    print(state["sum"])
"""


def test_a_full_disk_keeps_the_old_checkpoint_and_training_goes_on(tmp_path: Path) -> None:
    job = Job(tmp_path, FULL_FOR_A_WHILE)
    ended = job.run()
    assert ended.code == 0, ended.err
    assert "no checkpoint at step 3" in ended.err and "the one of step 2 is kept, and training goes on" in ended.err
    during = json.loads(ended.lines[0])
    assert during["checkpoint"]["step"] == 2 and "File too large" in during["problem"]
    assert ended.lines[-1] == str(sum(range(6)))
    assert (job.status()["checkpoint"]["step"], job.status()["problem"]) == (6, None)


READ_ONLY = """
    import os, sys, optimus
    optimus.steps  # while this user may still read it

    if os.geteuid() == 0:
        os.seteuid(65534)  # nothing is read-only for root
    try:
        for step in optimus.steps(3, folder=sys.argv[1]):
            print(step)
    except optimus.CheckpointError as error:
        print(error)
"""


def test_a_folder_that_cannot_be_written_is_said_before_the_first_step(tmp_path: Path) -> None:
    job = Job(tmp_path, READ_ONLY)
    (tmp_path / "locked").mkdir(mode=0o555)
    ended = job.run(tmp_path / "locked", OPTIMUS_CHECKPOINT_DIR="")
    assert ended.out.startswith("checkpoints cannot be written to "), ended.err
    assert "Permission denied. Make the folder writable" in ended.out


def test_a_status_file_that_cannot_be_written_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIMUS_STATUS_FILE", str(tmp_path / "nowhere" / "status.json"))
    with pytest.warns(optimus.CheckpointWarning, match="status file .* cannot be written"):
        assert list(optimus.steps(3)) == [0, 1, 2]
