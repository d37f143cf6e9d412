"""Elastic training by a real `torchrun`: it starts with what is free, grows, gives back, loses replicas, and its chain
of steps goes on without a jump."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.frameworks import TORCHRUN, why_no_torch
from tests.calling import SOURCES
from tests.local.elastic_training import link
from tests.local.machines import Up, until

STEPS, EVERY = 900, 20
CLUSTER = """
nodes: [{name: n, count: 1, gpus: 4}]
queues:
  - {name: lent, gpu: {weight: 1}}
  - {name: own, gpu: {guarantee: 2}}
"""
JOB = f"""
kind: UnifiedJob
metadata: {{name: elastic}}
spec:
  jobType: PyTorchElastic
  queue: lent
  command: [{TORCHRUN}, {Path(__file__).with_name("elastic_training.py")}, "{STEPS}", "0.05"]
  env: {{PYTHONPATH: {SOURCES}, OMP_NUM_THREADS: "1"}}
  replicaSpec: {{minReplicas: 1, maxReplicas: 4, gpu: {{count: 1}}}}
  checkpoint: {{graceSeconds: 30, intervalSeconds: 2}}
  restart: {{backoffSeconds: 1}}
  restartCostSeconds: 1
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    if trouble := why_no_torch():
        pytest.skip(trouble)
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    machine = Up(tmp_path / "store", "--cluster", str(tmp_path / "cluster.yaml"), "--set", "sizingInterval=2s")
    yield machine
    machine.end()


def steps(up: Up) -> list[tuple[int, int, int]]:
    """Number, ranks and chain, in the order in which they were made."""
    found = re.findall(r"step=(\d+) ranks=(\d+) chain=(\d+)", up.cli("logs", "elastic").stdout)
    return [(int(step), int(ranks), int(chain)) for step, ranks, chain in found]


def trains_with(up: Up, ranks: int) -> None:
    """Not only promised: so many make steps together, and some of these are saved."""
    before = len(steps(up))
    until(lambda: [one[1] for one in steps(up)[before:]].count(ranks) > EVERY, f"{ranks} train together")


def agent_of(ordinal: int) -> int:
    """The process of a replica: torchrun itself, not what it has started."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        try:
            told = (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        mine = b"OPTIMUS_JOB=default/elastic" in told and f"OPTIMUS_RANK={ordinal}".encode() in told
        if mine and str(TORCHRUN).encode() in words:
            found.append(int(process.name))
    return min(found)


def test_it_grows_gives_back_and_loses_replicas_and_its_chain_goes_on(up: Up) -> None:
    up.cli("run", "-d", "--name", "other", "--queue", "own", "--gpus", "2", "--", "sleep", "600")
    up.reaches("other", "Running")
    assert up.cli("submit", "-", stdin=JOB).returncode == 0
    trains_with(up, 2)

    up.cli("cancel", "other")
    trains_with(up, 4)
    up.cli("run", "-d", "--name", "own", "--queue", "own", "--gpus", "2", "--", "sleep", "600")
    trains_with(up, 2)
    up.reaches("own", "Running")
    asked = repeated(steps(up))
    assert asked == 0, "who is asked saves first, also for those who stay"

    up.cli("cancel", "own")
    trains_with(up, 4)
    os.kill(agent_of(1), signal.SIGKILL)
    trains_with(up, 4)
    assert up.job("elastic")["attempt"] == 1, "the others went on, and it was replaced"
    lost = repeated(steps(up))
    os.kill(agent_of(0), signal.SIGKILL)
    until(lambda: up.job("elastic")["attempt"] == 2, "without the first one all start again")
    until(lambda: up.job("elastic")["final"], "it is done")

    made = steps(up)
    again = {"asked": asked, "one killed": lost - asked, "the first killed": repeated(made) - lost}
    print("steps made again:", again, file=sys.stderr)
    assert up.phase("elastic") == "Succeeded"
    assert repeated(made) <= 2 * (EVERY + 1), "no more than since the last checkpoint"
    chain = 0
    for step in range(STEPS):
        chain = link(chain, step)
        assert {one[2] for one in made if one[0] == step} == {chain}, f"step {step} was made on the state before it"


def repeated(made: list[tuple[int, int, int]]) -> int:
    return len(made) - len({step for step, _, _ in made})
