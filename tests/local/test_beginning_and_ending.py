"""How `optimus up` begins beside another one, and what makes it end."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path

from tests.calling import ROOT
from tests.local.machines import PATIENCE_S, Up, until

DEAF = (
    "python3",
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execvp(*[sys.argv[1], sys.argv[1:]])",
)
"""As `nohup` starts a command."""


def test_one_that_was_started_by_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    up = Up(tmp_path, inside=DEAF)
    try:
        assert up.process is not None
        up.process.send_signal(signal.SIGHUP)
        ran = up.cli("run", "--", "true")
        assert ran.returncode == 0 and up.process.poll() is None
        up.stop()
        assert up.process.returncode == 0, "it still ends in order when it is asked to"
    finally:
        up.end()


def test_a_terminal_that_closes_ends_any_other(tmp_path: Path) -> None:
    up = Up(tmp_path)
    try:
        assert up.process is not None
        up.process.send_signal(signal.SIGHUP)
        up.process.communicate(timeout=PATIENCE_S)
        assert up.process.returncode == 0
    finally:
        up.end()


def test_what_it_says_to_try_can_be_tried(tmp_path: Path) -> None:
    """Also where a cluster has no queue `default`."""
    up = Up(tmp_path, "--cluster", str(ROOT / "examples" / "10-machine-two-teams" / "cluster.yaml"))
    try:
        first = re.search(r"try: +optimus (.*)", up.stop())
        assert first is not None and "--queue speech" in first[1]
        up.start()
        ran = up.cli(*shlex.split(first[1]))
        assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
    finally:
        up.end()


def test_a_second_one_on_the_same_store_and_port_is_told_where_the_first_one_is(tmp_path: Path) -> None:
    up = Up(tmp_path)
    try:
        assert up.process is not None
        port = up.api.address.rpartition(":")[2]
        second = up.cli("up", "--port", port)
        assert second.returncode == 1
        assert f"optimus is up already at {up.api.address}" in second.stderr
        assert f"in use by process {up.process.pid}: stop it, or name another folder (--store)" in second.stderr
        assert "--port" not in second.stderr
        until(lambda: up.api.get("/healthz")["ok"], "the first one goes on")
    finally:
        up.end()
