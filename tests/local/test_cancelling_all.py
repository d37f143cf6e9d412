"""All that is not over is cancelled with one word, after somebody was asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.machines import Up


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    machine.cli("run", "--name", "over", "--gpus", "0", "--", "true")
    for name, space in (("one", "default"), ("two", "default"), ("three", "team")):
        machine.cli("run", "-d", "--name", name, "-n", space, "--gpus", "0.5", "--", "sleep", "600")
    machine.reaches("two", "Running")
    yield machine
    machine.end()


def phases(up: Up) -> dict[str, str]:
    return {job["name"]: job["phase"] for job in up.api.get("/v1/jobs")}


def asked(up: Up, *words: str, answer: str) -> tuple[int, str]:
    """On a terminal, where somebody answers."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "optimus", "cancel", "--all", *words]
    try:
        with subprocess.Popen(
            command, env=up.environment, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            os.write(ours, f"{answer}\n".encode())
            out, err = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    return process.returncode, out + err


def test_it_asks_and_who_says_no_keeps_all(up: Up) -> None:
    code, told = asked(up, answer="n")
    assert code == 1 and "Cancel 3 jobs: default/one, default/two, team/three? [y/N]" in told
    assert "Cancelled" not in phases(up).values()


def test_one_namespace_or_all_of_them(up: Up) -> None:
    ran = up.cli("cancel", "--all", "--yes", "-n", "team")
    assert ran.returncode == 0 and ran.stdout.startswith("team/three: cancelled")
    code, told = asked(up, answer="y")
    assert code == 0 and "default/one: cancelled" in told and "default/two: cancelled" in told
    for name in ("one", "two"):
        up.reaches(name, "Cancelled")
    assert phases(up)["over"] == "Succeeded"


def test_where_there_is_nothing_it_says_so(tmp_path: Path) -> None:
    up = Up(tmp_path)
    try:
        ran = up.cli("cancel", "--all", "-y")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "There is no job that is not over.\n")
    finally:
        up.end()


def test_who_leaves_work_behind_is_told_how_to_end_it(tmp_path: Path) -> None:
    up = Up(tmp_path)
    try:
        up.cli("run", "-d", "--name", "long", "--", "sleep", "600")
        up.reaches("long", "Running")
        assert "1 replica goes on running" in (told := up.stop()) and "To end it: `optimus cancel --all`" in told
        up.start()
        assert up.cli("cancel", "--all", "--yes").returncode == 0
        up.reaches("long", "Cancelled")
    finally:
        up.end()
