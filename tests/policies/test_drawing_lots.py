"""The seed reaches a policy: it can draw lots, and the same seed draws the same ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optimus.api.loading import load_files
from optimus.drivers.sim.playing import Play

GUIDE = Path(__file__).parents[2] / "docs/guides/write-a-policy.md"
STORY = """
policy: lots.py:lottery
seed: {seed}
cluster: [{{name: n, gpus: 1}}]
workloads:
  - {{name: a, gpu: 1, submitted: -6m, expectedDuration: 1m}}
  - {{name: b, gpu: 1, submitted: -5m, expectedDuration: 1m}}
  - {{name: c, gpu: 1, submitted: -4m, expectedDuration: 1m}}
  - {{name: d, gpu: 1, submitted: -3m, expectedDuration: 1m}}
cycles: 8
between: {{advance: 1m, endsOnTime: true}}
"""


def lottery_of_the_guide() -> str:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if "def lottery" in block)


def starts(folder: Path, seed: int) -> str:
    """Who started, in order."""
    (folder / "lots.py").write_text(lottery_of_the_guide(), encoding="utf-8")
    story = folder / "story.yaml"
    story.write_text(STORY.format(seed=seed), encoding="utf-8")
    loaded = load_files(story)
    assert not loaded.errors
    told = [moment.told for moment in Play(loaded.scenario, folder=folder)]
    assert not [condition for cycle in told for condition in cycle.conditions]
    return "".join(action.workload[-1] for cycle in told for action in cycle.actions if action.kind == "Start")


def test_another_seed_draws_other_lots(tmp_path: Path) -> None:
    drawn = {starts(tmp_path, seed) for seed in range(8)}
    assert all(sorted(order) == ["a", "b", "c", "d"] for order in drawn)
    assert len(drawn) > 3


@pytest.mark.parametrize("seed", [0, 7, 2**40])
def test_the_same_seed_draws_the_same_lots(tmp_path: Path, seed: int) -> None:
    assert starts(tmp_path, seed) == starts(tmp_path, seed)
