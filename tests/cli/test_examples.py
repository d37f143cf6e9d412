"""Every numbered example runs, and its README tells how."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, optimus

EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name[:2].isdigit())
SCENARIOS = [path for path in EXAMPLES if "-scenario-" in path.name]


def commands(example: Path) -> list[str]:
    """The lines of a README's code blocks that begin with `optimus`."""
    text = (example / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\w*\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("optimus ")]


def test_examples_are_numbered_without_gaps() -> None:
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


@pytest.mark.parametrize("example", SCENARIOS, ids=lambda path: path.name)
def test_what_the_readme_says_works(example: Path) -> None:
    said = commands(example)
    assert any(example.name in line for line in said), "the README shows how to run it"
    for line in said:
        ran = optimus(*shlex.split(line)[1:])
        assert ran.code == 0, f"{line}\n{ran.out}{ran.err}"


@pytest.mark.parametrize("example", SCENARIOS, ids=lambda path: path.name)
def test_a_scenario_expects_something_and_nothing_goes_wrong_on_the_way(example: Path) -> None:
    for told in optimus("scenario", "run", example, "-o", "json").json()["scenarios"]:
        assert told["ok"] and told["checked"] and told["description"]
        assert [cycle["conditions"] for cycle in told["cycles"] if cycle["conditions"]] == []
        assert [cycle["problems"] for cycle in told["cycles"] if cycle["problems"]] == []
