"""`kill -9` of the whole scheduler while it works: nothing is lost, nothing runs twice, nothing is left behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.local.killing import play
from tests.local.machines import Up, until


def test_everything_runs_as_often_as_it_should_however_often_the_scheduler_dies(tmp_path: Path) -> None:
    """A sample; `python -m tests.local.killing` has the full count."""
    played = play(1, 4, tmp_path)
    assert played.wrong == []
    assert len(played.running) == 4 and played.waves > 4, "work came all the time"


def test_what_runs_outlives_its_scheduler_and_is_known_again(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store")
    try:
        flag = tmp_path / "go"
        command = f"while [ ! -e {flag} ]; do sleep 0.1; done; echo through"
        machine.cli("run", "-d", "--name", "long", "--", "bash", "-c", command)
        machine.reaches("long", "Running")
        started = machine.job("long")["replicas"][0]
        assert "1 replica goes on running" in machine.stop()
        time.sleep(0.5)
        machine.start()
        assert machine.job("long")["replicas"][0] == started, "the very same process"
        flag.touch()
        machine.reaches("long", "Succeeded")
        assert machine.cli("logs", "long").stdout == "through\n"
    finally:
        machine.end()


def test_who_was_asked_to_leave_is_not_asked_again_and_saves_its_work(tmp_path: Path) -> None:
    """A second request later on would mean: at once, saved or not."""
    script, flag = tmp_path / "train.py", tmp_path / "go"
    script.write_text(
        "import optimus, os, sys, time\nstate = {}\nfor step in optimus.steps(2, state=state):\n"
        "    print('step', step)\n    while not os.path.exists(sys.argv[1]):\n        time.sleep(0.05)\n"
    )
    machine = Up(tmp_path / "store")
    try:
        words = ["--name", "slow", "--checkpoint", "60", "--", sys.executable, str(script), str(flag)]
        machine.cli("run", "-d", *words)
        until(lambda: "step 0" in machine.cli("logs", "slow").stdout, "its first step")
        machine.cli("suspend", "slow")
        until(lambda: any((machine.folder / "runs").glob("*/asked")), "it is asked")
        machine.kill()
        time.sleep(2.2)  # two requests within two seconds are one
        machine.start()
        time.sleep(0.5)
        flag.touch()
        machine.reaches("slow", "Suspended")
        machine.cli("resume", "slow")
        machine.reaches("slow", "Succeeded", "Failed")
        assert machine.cli("logs", "slow").stdout == "step 0\nstep 1\n"
    finally:
        machine.end()


def test_what_ended_while_nobody_looked_is_known(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store")
    try:
        machine.cli("run", "-d", "--name", "short", "--", "bash", "-c", "sleep 0.5; exit 4")
        machine.reaches("short", "Running")
        machine.kill()
        time.sleep(1)
        machine.start()
        until(lambda: machine.job("short")["final"], "its end is known")
        assert machine.phase("short") == "Failed"
        assert "exited with code 4" in machine.job("short")["reason"]["text"]
    finally:
        machine.end()
