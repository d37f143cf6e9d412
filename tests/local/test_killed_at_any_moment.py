"""`kill -9` of the whole scheduler while it works: nothing is lost, nothing runs twice, nothing is left behind."""

from __future__ import annotations

import time
from pathlib import Path

from tests.local.killing import play
from tests.local.machines import Up, until


def test_everything_runs_as_often_as_it_should_however_often_the_scheduler_dies(tmp_path: Path) -> None:
    """A sample; `python -m tests.local.killing` has the full count."""
    assert play(1, 4, tmp_path) == []


def test_what_runs_outlives_its_scheduler_and_is_known_again(tmp_path: Path) -> None:
    machine = Up(tmp_path / "store")
    try:
        flag = tmp_path / "go"
        command = f"while [ ! -e {flag} ]; do sleep 0.1; done; echo through"
        machine.cli("run", "-d", "--name", "long", "--", "bash", "-c", command)
        machine.reaches("long", "Running")
        started = machine.job("long")["replicas"][0]
        assert "1 replicas go on running" in machine.stop()
        time.sleep(0.5)
        machine.start()
        assert machine.job("long")["replicas"][0] == started, "the very same process"
        flag.touch()
        machine.reaches("long", "Succeeded")
        assert machine.cli("logs", "long").stdout == "through\n"
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
