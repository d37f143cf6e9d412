"""What jobs say of themselves reaches the brain: when they saved, and whether they save in time when they are asked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from optimus.drivers.local.progress import Progress
from tests.local.test_a_turn_of_the_body import Machine, job


class Told:
    """One job that runs with a grace of five seconds, and what the brain knows of it."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder)
        self.machine.submit(job("train", gpus=2, saves=True))
        self.machine.runs()
        self.progress = Progress(self.machine.body)
        self.written = 0

    def says(self, **words: Any) -> None:
        self.written += 1
        file = self.machine.body.folder_of(self.machine.hands.spawned[-1].start) / "status.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(words))
        os.utime(file, (self.written, self.written))  # it is seen to be another one
        self.progress.look()

    def is_news(self) -> bool:
        return self.machine.body.restless

    def knows(self, column: str) -> int:
        self.machine.turn()
        workloads = self.machine.body.engine.state.workloads
        return int(getattr(workloads.columns, column)[workloads.row_of["default/train"]])


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_the_last_checkpoint_is_known_and_only_news_wake_the_brain(told: Told) -> None:
    told.machine.turn(after_s=60)
    told.says(last_checkpoint_ms=50_000)
    assert told.is_news() and told.knows("checkpoint_at") == 50_000
    told.says(last_checkpoint_ms=50_000, step=7)
    assert not told.is_news()
    told.says(last_checkpoint_ms=55_000)
    assert told.knows("checkpoint_at") == 55_000


@pytest.mark.parametrize(("seconds", "believed"), [(1, 1), (2.5, 1), (2.6, 0), (None, 0), ("soon", 0)])
def test_who_leaves_well_within_its_grace_saves_in_time(told: Told, seconds: Any, believed: int) -> None:
    told.says(leaves_in_s=seconds)
    assert told.knows("saves_in_time") == believed


def test_a_new_attempt_that_does_not_know_yet_changes_nothing(told: Told) -> None:
    told.says(leaves_in_s=1)
    told.says(leaves_in_s=None)
    assert told.knows("saves_in_time") == 1


def test_who_was_killed_at_the_end_of_its_grace_is_not_believed_again(told: Told) -> None:
    machine = told.machine
    told.says(leaves_in_s=1)
    assert told.knows("saves_in_time") == 1
    machine.submit(job("high", gpus=2, priority=900))
    machine.turn(after_s=5)
    assert machine.hands.killed and told.knows("saves_in_time") == 0
    machine.ends("train", code=None, signal=9)
    machine.runs("high")
    machine.ends("high")
    assert machine.hands.spawned[-1].command == ("train", "train")
    told.says(leaves_in_s=1)
    assert told.knows("saves_in_time") == 0
