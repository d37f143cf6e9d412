"""A job that has sizes of its own keeps them when it is scaled; a wish between two of them means the smaller one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optimus.cli.top.keys import next_size
from tests.local.machines import Up, until

JOB = """
kind: UnifiedJob
metadata: {name: NAME}
spec:
  command: [sleep, "600"]
  replicas: REPLICAS
  checkpoint: {graceSeconds: 1}
"""
POWERS = "{min: 1, max: 4, sizes: powersOfTwo}"
LISTED = "{min: 1, max: 4, sizes: [1, 3, 4]}"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"), "--nodes", "4", "--gpus", "4")
    yield machine
    machine.end()


def comes(up: Up, name: str, replicas: str) -> None:
    assert up.cli("submit", "-", stdin=JOB.replace("NAME", name).replace("REPLICAS", replicas)).returncode == 0
    until(lambda: up.job(name)["runningReplicas"] == 4, "it has grown to four")


def scaled(up: Up, name: str, replicas: int) -> str:
    ran = up.cli("scale", name, "--replicas", str(replicas))
    return (ran.stdout or ran.stderr).strip()


def written(up: Up, name: str) -> dict[str, object]:
    spec: dict[str, object] = up.api.get(f"/v1/jobs/default/{name}/document")["spec"]["replicaSpec"]
    return {key: spec.get(key) for key in ("minReplicas", "maxReplicas", "sizes")}


def test_powers_of_two_are_a_rule(up: Up) -> None:
    comes(up, "powers", POWERS)
    told = scaled(up, "powers", 3)
    assert told == (
        "default/powers: at most 2 replicas from now on (4 before); 3 is none of its sizes, and 2 is the next below"
    )
    until(lambda: len(up.job("powers")["replicas"]) == 2, "two have left")
    assert written(up, "powers") == {"minReplicas": 1, "maxReplicas": 2, "sizes": [1, 2]}
    assert next_size(up.job("powers"), 1) == 4 and next_size(up.job("powers"), -1) == 1
    assert scaled(up, "powers", 8) == "default/powers: at most 8 replicas from now on (2 before)"
    assert written(up, "powers")["sizes"] == [1, 2, 4, 8] and next_size(up.job("powers"), 1) == 16
    up.cli("cancel", "powers")


def test_a_list_ends_with_its_last(up: Up) -> None:
    comes(up, "listed", LISTED)
    assert "at most 1 replica from now on" in scaled(up, "listed", 2)
    assert written(up, "listed") == {"minReplicas": 1, "maxReplicas": 1, "sizes": [1]}
    assert next_size(up.job("listed"), 1) == 3
    assert scaled(up, "listed", 5) == "Error: default/listed has sizes of its own: 1, 3, 4; 5 is beyond them"
    assert next_size(up.job("listed"), -1) == 1, "as of one that has no sizes: the scheduler says what is wrong"
    assert scaled(up, "listed", 4) == "default/listed: at most 4 replicas from now on (1 before)", "it forgets none"
    assert next_size(up.job("listed"), 1) == 5
