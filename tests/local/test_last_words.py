"""What a job says at its exit is heard: by people, by the brain, and by a scheduler that comes later."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from optimus.drivers.local.progress import Progress
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine, job

SAYS_AT_ITS_END = """
import json, os, time
def say(**words):
    with open(os.environ["OPTIMUS_STATUS_FILE"] + ".new", "w") as file:
        json.dump(words, file)
    os.replace(file.name, os.environ["OPTIMUS_STATUS_FILE"])
say(step=5, total=10, fraction=0.5)
time.sleep(2.5)
say(step=10, total=10, fraction=1.0)
"""
SAVES_WHEN_ASKED = """
import optimus, time
for step in optimus.steps(100_000, every=1_000_000):
    print(step, flush=True)
    time.sleep(0.05)
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "1")
    yield machine
    machine.end()


def said(up: Up, name: str) -> dict[str, Any]:
    return up.job(name)["progress"] or {}


def test_who_is_done_is_done_to_the_last_step(up: Up) -> None:
    assert up.cli("run", "-d", "--name", "short", "--", sys.executable, "-c", SAYS_AT_ITS_END).returncode == 0
    up.reaches("short", "Succeeded")
    until(lambda: said(up, "short").get("step") == 10, "its last word is heard")


def test_a_suspended_job_says_how_far_it_came_and_where_it_saved_also_after_a_restart(up: Up) -> None:
    words = ("--gpus", "1", "--checkpoint", "30", "--", sys.executable, "-c", SAVES_WHEN_ASKED)
    assert up.cli("run", "-d", "--name", "train", *words).returncode == 0
    until(lambda: said(up, "train").get("step"), "it trains")
    up.cli("suspend", "train")
    up.reaches("train", "Suspended")
    until(lambda: said(up, "train").get("phase") == "left", "its last word is heard")
    last = said(up, "train")
    assert last["checkpoint"]["step"] == last["step"] > 0
    up.kill()
    up.start()
    assert said(up, "train") == last
    page = up.cli("describe", "job", "train").stdout
    assert "\n  done " in page and " ago" in page, page


def test_who_ended_while_nobody_was_up_is_heard_by_the_next_one(up: Up) -> None:
    assert up.cli("run", "-d", "--name", "short", "--", sys.executable, "-c", SAYS_AT_ITS_END).returncode == 0
    until(lambda: said(up, "short").get("step") == 5, "it is half done")
    up.kill()
    (status,) = (up.folder / "runs").glob("*/status.json")
    until(lambda: json.loads(status.read_text())["step"] == 10 and (status.parent / "exit").exists(), "it ends")
    up.start()
    up.reaches("short", "Succeeded")
    assert said(up, "short")["step"] == 10


def test_the_brain_learns_of_a_checkpoint_written_at_the_exit(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(job("train", gpus=2, saves=True))
    machine.runs()
    machine.turn(after_s=60)
    progress, start = Progress(machine.body), machine.hands.spawned[-1].start
    file = machine.body.folder_of(start) / "status.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"last_checkpoint_ms": 55_000, "leaves_in_s": 1}))
    progress.last_words(start)
    machine.ends("train", code=1)
    columns, row = machine.body.engine.state.workloads.columns, 0
    assert (columns.checkpoint_at[row], columns.saves_in_time[row]) == (55_000, 1)
    progress.last_words(start)  # told twice, as after a restart: it is nobody's any more
    progress.last_words("nobody")
    assert machine.body.progress["default/train"]["last_checkpoint_ms"] == 55_000


def test_the_pace_of_a_job_is_measured_where_its_steps_ended(tmp_path: Path) -> None:
    """Ten steps of an hour each, of which it says something every minute."""
    machine = Machine(tmp_path)
    machine.submit(job("train", gpus=2))
    machine.runs()
    progress, start = Progress(machine.body), machine.hands.spawned[-1].start
    file = machine.body.folder_of(start) / "status.json"
    file.parent.mkdir(parents=True)
    hour = 3_600
    for written_s, fraction, reached_s in ((0, 0.0, 0), (hour + 1, 0.1, hour), (2 * hour - 60, 0.1, hour)):
        at_s = 1_000_000 + written_s
        file.write_text(json.dumps({"fraction": fraction, "reached_ms": (1_000_000 + reached_s) * 1000}))
        os.utime(file, (at_s, at_s))
        progress.look()
    left = machine.body.remaining["default/train"]
    assert (left.left_ms, left.at_ms) == (9 * hour * 1000, (1_000_000 + hour) * 1000)
