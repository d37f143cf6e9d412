"""Folders that a job names are as seen from where it was submitted, whoever looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import optimus
from optimus.client import ApiError
from tests.local.machines import Up

SAYS = 'pwd; echo "$OPTIMUS_CHECKPOINT_DIR"; cd "$OPTIMUS_CHECKPOINT_DIR" && pwd'
JOB = f"""
kind: UnifiedJob
metadata: {{name: here}}
spec:
  replicas: 3
  workdir: src
  checkpoint: {{path: saved/here}}
  command: [sh, -c, '{SAYS}']
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    yield machine
    machine.end()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_relative_folder_in_a_document_is_below_the_one_it_was_submitted_from(up: Up, folder: Path) -> None:
    ran = up.cli("submit", "-", stdin=JOB)
    assert ran.returncode == 0, ran.stderr
    up.reaches("here", "Succeeded", "Failed")
    said = [line.partition("│ ")[2] for line in up.cli("logs", "here").stdout.splitlines()]
    saved = str(folder / "saved" / "here")
    assert sorted(said) == sorted([str(folder / "src"), saved, saved] * 3), "of all replicas, also of one supervisor"


def test_a_relative_folder_from_python_too(up: Up, folder: Path) -> None:
    job = optimus.submit("pwd", workdir="src", gpus=0, address=up.api.address)
    job.wait()
    assert up.cli("logs", job.name).stdout == f"{folder / 'src'}\n"


def test_a_client_that_does_not_say_where_it_is_is_told_to(up: Up) -> None:
    with pytest.raises(ApiError) as refused:
        up.api.post("/v1/submit", JOB.replace("here", "lost").encode())
    lines = str(refused.value).splitlines()
    assert lines == [
        f"submitted: default/lost: {field} is relative, and nothing says to what: write the whole path, "
        "or name the folder that it is submitted from (where)"
        for field in ("workdir src", "checkpoint.path saved/lost")
    ]
