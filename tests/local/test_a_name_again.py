"""A job of a name that was there before is a new one: it begins at the beginning, and it is said what is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import optimus
from optimus.client import ApiError
from optimus.client.documents import job_document, name_for, to_text
from optimus.drivers.local.desk import Desk
from optimus.drivers.local.retention import Keep, Retention
from optimus.drivers.local.store import StoreError
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine

TRAIN = """
import optimus, sys
for step in optimus.steps(5, state={}, every=1):
    print("step", step, "of", sys.argv[1], flush=True)
"""
JOB = """
kind: UnifiedJob
metadata: {name: a}
spec: {gpu: 1, command: [train, a]}
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    yield machine
    machine.end()


def document(folder: Path, name: str, rate: str, saving: str = "") -> str:
    script = folder / "train.py"
    script.write_text(TRAIN)
    return f"""
kind: UnifiedJob
metadata: {{name: {name}}}
spec:
  command: [{sys.executable}, {script}, "{rate}"]
  checkpoint: {{graceSeconds: 5{saving}}}
"""


def test_it_begins_at_the_beginning_and_the_answer_says_what_it_replaces(up: Up, tmp_path: Path) -> None:
    first = up.cli("submit", "-", stdin=document(tmp_path, "tr", "0.1"))
    assert (first.returncode, first.stderr) == (0, "")
    up.reaches("tr", "Succeeded")
    saved = up.folder / "checkpoints" / "default" / f"tr.{up.job('tr')['uid']}"
    assert any(saved.iterdir())
    again = up.cli("submit", "-", stdin=document(tmp_path, "tr", "0.2"))
    assert again.returncode == 0 and "default/tr begins anew" in again.stderr and "(Succeeded)" in again.stderr
    until(lambda: up.job("tr")["ranMs"] and up.phase("tr") == "Succeeded", "the second one has ended")
    assert up.cli("logs", "tr").stdout.splitlines() == [f"step {n} of 0.2" for n in range(5)]
    until(lambda: not saved.exists(), "what the first one saved is removed")
    assert "Replaced" in [event["code"] for event in up.api.get("/v1/jobs/default/tr/events")]


def test_a_folder_that_somebody_chose_is_his_and_is_resumed_from(up: Up, tmp_path: Path) -> None:
    own = document(tmp_path, "own", "0.1", f", path: {tmp_path / 'mine'}")
    for _ in range(2):
        assert up.cli("submit", "-", stdin=own).returncode == 0
        until(lambda: up.job("own")["final"], "it is over")
    assert "step" not in up.cli("logs", "own").stdout, "it had finished before"
    assert any((tmp_path / "mine").iterdir())


def test_a_name_that_was_made_is_nobody_elses(up: Up) -> None:
    made = {name_for("python train.py") for _ in range(2000)}
    assert len(made) == 2000 and all(len(name) == len("train-") + 8 for name in made)
    taken = job_document("true", name="taken", namespace="default", queue="default", gpu=0, replicas=1)
    optimus.submit_all(taken, address=up.api.address)
    up.reaches("taken", "Succeeded")
    with pytest.raises(ApiError, match=r"default/taken is there already \(Succeeded\): try again"):
        up.api.post("/v1/submit", to_text(taken).encode(), fresh="1")
    assert up.phase("taken") == "Succeeded"


class Replaced(Machine):
    """`a` has run and saved something; then another `a` is submitted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.comes()
        self.runs()
        self.old = Path(self.hands.spawned[-1].environment["OPTIMUS_CHECKPOINT_DIR"])
        self.old.mkdir(parents=True)
        (self.old / "saved").touch()
        self.ends("a")

    def comes(self) -> dict[str, object]:
        return Desk(self.body).submit(JOB, where="/work")

    def starts_in(self) -> Path:
        self.turn()
        return Path(self.hands.spawned[-1].environment["OPTIMUS_CHECKPOINT_DIR"])


def test_killed_before_the_old_checkpoints_are_removed_the_new_job_is_there_and_does_not_see_them(
    tmp_path: Path,
) -> None:
    machine = Replaced(tmp_path)
    assert machine.comes()["replaced"] == {"default/a": "Succeeded"}
    machine.dies()
    assert machine.starts_in() != machine.old and machine.old.exists()
    Retention(machine.body, Keep()).look(machine.now_ms)
    assert not machine.old.exists() and machine.body.store.doomed() == []


def test_where_the_new_one_cannot_be_written_down_the_old_one_stays_with_all_it_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Replaced(tmp_path)

    def full(_: object) -> None:
        raise StoreError("the disk is full")

    uid = machine.body.jobs["default/a"].uid
    with monkeypatch.context() as patched:
        patched.setattr(machine.body.store, "put_jobs", full)
        with pytest.raises(StoreError):
            machine.comes()
    assert machine.body.jobs["default/a"].uid == uid
    machine.dies()
    assert machine.body.jobs["default/a"].uid == uid
    Retention(machine.body, Keep()).look(machine.now_ms)
    assert os.listdir(machine.old) == ["saved"]


def test_checkpoints_that_another_job_goes_on_from_stay(tmp_path: Path) -> None:
    machine = Replaced(tmp_path)
    other = JOB.replace("name: a", "name: b").replace("command", f"checkpoint: {{path: {machine.old}}}, command")
    Desk(machine.body).submit(other, where="/work")
    machine.comes()
    Retention(machine.body, Keep()).look(machine.now_ms)
    assert os.listdir(machine.old) == ["saved"]
