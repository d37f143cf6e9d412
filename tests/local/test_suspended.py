"""A person lets a job rest: that is no preemption, neither before nor after a restart, and it is told what it costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import optimus
from tests.local.machines import Up, until

TRAINS = "import optimus, time\nfor _ in optimus.steps(100_000, every=20):\n    time.sleep(0.05)\n"


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "1")
    yield machine
    machine.end()


def run(up: Up, name: str, *words: str) -> None:
    made = up.cli("run", "-d", "--name", name, *words)
    assert made.returncode == 0, made.stderr


def test_whoever_suspends_a_job_has_not_preempted_it(up: Up) -> None:
    run(up, "long", "--gpus", "1", "--", "sleep", "600")
    up.reaches("long", "Running")
    said = up.cli("suspend", "long").stdout
    assert said.startswith("default/long: suspended (Running before); it saves nothing: ")
    assert said.endswith(" of work are lost, and it begins anew when it is resumed\n")
    up.reaches("long", "Suspended")
    run(up, "other", "--gpus", "1", "--", "sleep", "600")
    up.reaches("other", "Running")
    assert up.cli("resume", "long").stdout == "default/long: resumed (Suspended before)\n"
    until(lambda: up.job("long")["reason"]["code"] == "NoRoom", "it says why it waits")
    assert (up.phase("long"), up.job("long")["preemptions"]) == ("Pending", 0)
    up.kill()
    up.start()
    assert (up.phase("long"), up.job("long")["preemptions"]) == ("Pending", 0)
    up.cli("cancel", "other")
    up.reaches("long", "Running")
    assert "attempt    2 (0 failures, 0 preemptions)" in up.cli("describe", "job", "long").stdout
    job = optimus.job("long", address=up.api.address)
    assert (job.phase, job.view["preemptions"]) == ("Running", 0)
    codes = [event["code"] for event in up.api.get("/v1/jobs/default/long/events")]
    assert codes == ["Submitted", "Admitted", "Suspended", "Resumed", "Admitted"]


def test_suspended_across_a_restart(up: Up) -> None:
    run(up, "long", "--gpus", "1", "--", "sleep", "600")
    up.reaches("long", "Running")
    up.cli("suspend", "long")
    up.kill()
    up.start()
    up.reaches("long", "Suspended")
    up.cli("resume", "long")
    up.reaches("long", "Running")
    assert up.job("long")["preemptions"] == 0


def test_who_has_a_checkpoint_is_told_from_where_it_goes_on(up: Up) -> None:
    run(up, "train", "--gpus", "1", "--checkpoint", "30", "--", sys.executable, "-c", TRAINS)
    up.reaches("train", "Running")
    until(lambda: (up.job("train")["progress"] or {}).get("last_checkpoint_ms"), "it has saved")
    job = optimus.job("train", address=up.api.address)
    said = job.suspend()
    assert "it saves first and loses nothing" in said or "it resumes from its checkpoint of " in said, said
    assert "begins anew" not in said
    up.reaches("train", "Suspended")
    assert job.resume() == "default/train: resumed (Suspended before)"


def test_a_suggestion_says_what_those_lose_who_would_be_stopped(up: Up) -> None:
    run(up, "long", "--gpus", "1", "--", "sleep", "600")
    up.reaches("long", "Running")
    run(up, "next", "--gpus", "1", "--", "sleep", "600")
    page = up.cli("explain", "next", "--no-forecast").stdout
    assert "starts by stopping long, which saves nothing: " in " ".join(page.split()), page
    told = json.loads(up.cli("explain", "next", "--no-forecast", "-o", "json").stdout)
    losses = [loss for one in told["suggestions"] for loss in one["outcome"]["losses"]]
    assert {(loss["workload"], loss["anew"], loss["checkpointMs"]) for loss in losses} == {("default/long", True, None)}
    assert all(loss["lostMs"] > 0 and loss["text"].startswith("saves nothing: ") for loss in losses)
