"""`checkpoint.command`: work that is saved from outside, by a command that runs beside its replica."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from optimus.model.jobs import Saving
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine, job

WAITS = "import os, time\nwhile not os.path.exists('save-now'): time.sleep(0.02)\nprint('saved')"
"""Until somebody says so; then it has saved, and leaves."""
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1000)"
ASKS = "import json, os\njson.dump({**os.environ}, open('seen', 'w'))\nprint('asks')\nopen('save-now', 'w')"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"), "--nodes", "1", "--gpus", "8")
    yield machine
    machine.end()


def begin(up: Up, folder: Path, name: str, program: str, saver: list[str], grace_s: int = 60) -> None:
    spec = {
        "command": [sys.executable, "-c", program],
        "gpu": 1,
        "checkpoint": {"command": saver, "graceSeconds": grace_s},
        "template": {"spec": {"containers": [{"workingDir": str(folder), "env": [{"name": "MINE", "value": "yes"}]}]}},
    }
    document = {"kind": "UnifiedJob", "metadata": {"name": name}, "spec": spec}
    submitted = up.cli("submit", "-", stdin=json.dumps(document))
    assert submitted.returncode == 0, submitted.stderr
    up.reaches(name, "Running")


def troubles(up: Up, name: str) -> list[str]:
    events: list[dict[str, Any]] = up.api.get(f"/v1/jobs/default/{name}/events")
    return [event["text"] for event in events if event["code"] == "SaverFailed"]


def suspend(up: Up, name: str) -> None:
    up.api.post(f"/v1/jobs/default/{name}/suspend")


def test_a_saver_has_the_environment_and_the_folder_of_its_replica(up: Up, tmp_path: Path) -> None:
    begin(up, tmp_path, "saved", WAITS, [sys.executable, "-c", ASKS])
    replica = Path(f"/proc/{running(up, 'saved')}/environ").read_text()
    suspend(up, "saved")
    up.reaches("saved", "Suspended")
    seen = json.loads((tmp_path / "seen").read_text())
    own = dict(item.split("=", 1) for item in replica.split("\0") if item)
    different = {"OPTIMUS_ATTEMPT_FOLDER", "LC_CTYPE"}  # its log is elsewhere; Python sets the other one itself
    assert {k: v for k, v in seen.items() if k not in different} == {k: v for k, v in own.items() if k not in different}
    assert seen["MINE"] == "yes" and "OPTIMUS_STORE" not in seen
    assert troubles(up, "saved") == []
    logs = up.cli("logs", "saved").stdout
    assert "saved" in logs and "asks" in logs


def test_one_that_is_not_there_is_told_and_the_signal_takes_its_place(up: Up, tmp_path: Path) -> None:
    begin(up, tmp_path, "absent", WAITS, ["no-such-saver", "now"])
    suspend(up, "absent")
    up.reaches("absent", "Suspended")
    (text,) = troubles(up, "absent")
    assert "no-such-saver (checkpoint.command) could not be run: command not found" in text
    assert text.endswith("it got SIGTERM instead")


def test_one_that_fails_is_told(up: Up, tmp_path: Path) -> None:
    begin(up, tmp_path, "fails", DEAF, ["sh", "-c", "exit 3"], grace_s=2)
    suspend(up, "fails")
    up.reaches("fails", "Suspended")
    assert troubles(up, "fails") == ["replica worker-0: sh (checkpoint.command) ended with code 3"]


def test_one_that_hangs_holds_up_nobody_and_ends_with_its_replica(up: Up, tmp_path: Path) -> None:
    begin(up, tmp_path, "hangs", DEAF, ["sleep", "100000"], grace_s=3)
    suspend(up, "hangs")
    assert up.cli("run", "--", "true").returncode == 0
    up.reaches("hangs", "Suspended")
    until(lambda: not up.at_work(), "nothing of it is left")


def test_a_scheduler_that_is_killed_meanwhile_finds_it_again(up: Up, tmp_path: Path) -> None:
    begin(up, tmp_path, "later", WAITS, ["sh", "-c", "echo once >>asked; sleep 100000"])
    begin(up, tmp_path, "absent-later", DEAF, ["no-such-saver"], grace_s=2)
    suspend(up, "later")
    suspend(up, "absent-later")
    until((tmp_path / "asked").exists, "the saver runs")
    up.kill()
    up.start()
    assert up.phase("later") in ("Checkpointing", "Stopping")
    up.reaches("absent-later", "Suspended")
    (tmp_path / "save-now").touch()
    up.reaches("later", "Suspended")
    assert (tmp_path / "asked").read_text() == "once\n"
    until(lambda: not up.at_work(), "nothing of it is left")
    assert "Traceback" not in up.stop()


def running(up: Up, name: str) -> int:
    """The number of its process."""
    uid = up.job(name)["uid"]
    (started,) = (up.folder / "runs").glob(f"{uid}-*/started")
    return next(int(json.loads(line)["pid"]) for line in started.read_text().splitlines() if '"pid"' in line)


# -- played -----------------------------------------------------------------------------------------------------------


def with_saver(name: str) -> Any:
    one = job(name, gpus=2, replicas=1, saves=True)
    return structs.replace(one, job=structs.replace(one.job, saving=Saving(command=("save", "now"))))


def test_it_is_asked_as_it_was_started(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(with_saver("low"))
    machine.runs()
    machine.submit(job("high", gpus=2, priority=900))
    (saver,) = machine.hands.savers
    begun = machine.hands.spawned[0]
    assert (saver.command, saver.environment, saver.workdir) == (("save", "now"), begun.environment, begun.workdir)


def test_one_that_has_not_begun_has_nothing_to_save(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.submit(with_saver("low"))
    machine.submit(job("high", gpus=2, priority=900))
    assert not machine.hands.savers and [signal for _, signal in machine.hands.asked] == ["SIGTERM"]
