"""Calls that nobody would make: no traceback, an exit code that means something, and Ctrl-C is heard."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, environment
from tests.cli.wrong_calls import PREPARED
from tests.local.machines import Up

WORLD = "cluster: [{name: a, count: 1, gpus: 2}]\nworkloads: [{name: w, gpu: 1, queue: q}]\nqueues: [{name: q}]\n"


def failures(folder: Path, seed: int, count: int, **extra: str) -> list[str]:
    """Those of a sample; each as a line of JSON with its words and what was said."""
    (folder / "world.yaml").write_text(WORLD, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.fuzzing", str(seed), str(count)],
        cwd=folder,
        env={**environment(**extra), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )
    assert done.returncode == 0 and f"{count} calls" in done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_where_nobody_listens(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = str(tmp_path / "file")  # so that no call of `up` comes far
    assert failures(tmp_path, 1, 120, OPTIMUS_TARGET="http://127.0.0.1:1", OPTIMUS_STORE=store) == []


@pytest.mark.slow
def test_of_a_real_scheduler(tmp_path: Path) -> None:
    up = Up(tmp_path / "store")
    try:
        assert up.cli("submit", "-", stdin=PREPARED).returncode == 0
        (tmp_path / "file").touch()
        extra = {"OPTIMUS_TARGET": up.api.address, "OPTIMUS_STORE": str(tmp_path / "file")}
        assert failures(tmp_path, 2, 80, **extra) == []
        assert up.api.get("/healthz")["ok"]
    finally:
        up.end()


def test_the_check_can_fail(tmp_path: Path) -> None:
    """With a command in which something is broken."""
    broken = tmp_path / "sitecustomize.py"
    broken.write_text("import optimus.cli.listings as l\nl.policies.__code__ = (lambda output=None: 1 / 0).__code__\n")
    done = subprocess.run(
        [sys.executable, "-m", "optimus", "policies"],
        env={**environment(), "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1 and "fault of optimus, not yours: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


INTERRUPTING = """
import os, signal, sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, CtrlC())
"""


@pytest.mark.parametrize("module", ["optimus.cli.calling", "typer", "optimus.cli.submitting", "pydantic_core"])
def test_an_interrupt_while_modules_are_read(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING.format(module=module))
    done = subprocess.run(
        [sys.executable, "-m", "optimus", "run", "--gpus", "1", "--", "true"],
        env={**environment(OPTIMUS_TARGET="http://127.0.0.1:1"), "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
