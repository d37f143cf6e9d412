"""Every example of one machine, as its README tells it: the scheduler it starts, then its commands one by one."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.local.machines import Up, until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if "-machine-" in path.name)
SHOWS = {
    "06-machine-one-gpu": "my GPU is 0 of node-0",
    "07-machine-fraction": "1 of 1",
    "08-machine-gang": "worker-3 │ I am 3 of 4 on node-1, GPUs 2,3",
    "09-machine-elastic": "done: 19900",
    "10-machine-two-teams": "worker-3 │ step 3 of 3 on node-|Reclaimed",
    "11-machine-array": "20 of 20 parts",
    "12-machine-interactive": "notebook: cancelled",
    "13-machine-what-if": "1 gains",
    "14-machine-own-policy": "largest_first decides",
}
"""What its commands must have said, all of it."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_what_the_readme_says_works(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    blocks = re.findall(r"```\n(.*?)```", (example / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    first, *others = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert first[:2] == ["optimus", "up"]
    machine = Up(tmp_path / "store", *first[2:])
    try:
        said = ""
        for words in others:
            ran = machine.cli(*words[1:])
            assert ran.returncode == 0, f"{shlex.join(words)}\n{ran.stdout}{ran.stderr}"
            said += ran.stdout
            if words[1] == "submit" and words[-1].endswith("speech.yaml"):
                until(lambda: machine.job("speech-train")["runningReplicas"] == 8, "speech has borrowed everything")
        for line in SHOWS[example.name].split("|"):
            assert line in said, said
        until(lambda: all(job["final"] for job in machine.api.get("/v1/jobs")), "all of it ends")
        phases = {job["phase"] for job in machine.api.get("/v1/jobs")}
        assert phases <= {"Succeeded", "Cancelled"}, phases
    finally:
        machine.end()
