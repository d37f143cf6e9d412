"""Every numbered example runs, and its README tells how."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, optimus

EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name[:2].isdigit())
SCENARIOS = [path for path in EXAMPLES if "-scenario-" in path.name]
SIMULATIONS = [path for path in EXAMPLES if "-simulate-" in path.name]
MACHINES = [path for path in EXAMPLES if "-machine-" in path.name]
"""Run by tests/local/test_examples.py."""
CLUSTERS = [path for path in EXAMPLES if "-kubernetes-" in path.name]
"""Run by tests/kube: the extender's by tests/kube/extender."""


def commands(example: Path) -> list[str]:
    """The lines of a README's code blocks that begin with `optimus`."""
    text = (example / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\w*\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("optimus ")]


def test_examples_are_numbered_without_gaps() -> None:
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))
    assert sorted([*SCENARIOS, *SIMULATIONS, *MACHINES, *CLUSTERS]) == EXAMPLES, "each is run by a test"


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


@pytest.mark.slow
@pytest.mark.parametrize("example", SIMULATIONS, ids=lambda path: path.name)
def test_a_simulation_ends_with_a_report(example: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # its files are written to where it is run
    said = commands(example)
    assert "--html report.html" in said[-1], "the last command writes the report that the README ends with"
    for line in said:
        ran = optimus(*shlex.split(line)[1:], cwd=tmp_path)
        assert ran.code == 0, f"{line}\n{ran.out}{ran.err}"
        assert "families.py:short_families_first" in ran.out
    assert "<title>3 traces" in (tmp_path / "report.html").read_text(encoding="utf-8")
