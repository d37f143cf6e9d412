"""What a job asks for holds its processes: from the document to the cgroup, and back to the reason why it failed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from optimus.api.submitting import load_submission_text
from optimus.drivers.local.holding import limits_of
from optimus.drivers.local.keeping.events import Limits
from optimus.drivers.local.keeping.limiting import limiting_here
from tests.local.machines import Up, until
from tests.local.test_a_turn_of_the_body import Machine, job

GREEDY = """
kind: UnifiedJob
metadata: {name: greedy}
spec:
  command: [python3, -c, "x = bytearray(300 << 20)"]
  memory: 64Mi
  restart: {backoffLimit: 1, backoffSeconds: 0}
"""
CAPPED = """
kind: UnifiedJob
metadata: {name: capped}
spec:
  cpu: 0.5
  template: {spec: {containers: [{command: [sleep, "1000"], resources: {limits: {cpu: 1500m, memory: 128Mi}}}]}}
"""
SAID = "replica worker-0 ran out of memory: used 64 MiB of 64 MiB"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("store")
    here = limiting_here(folder)
    here.close()
    if len(here.groups) < 2:
        pytest.skip(f"limits on this machine: {here.told()}")
    machine = Up(folder)
    yield machine
    machine.end()


def groups(up: Up) -> list[Path]:
    """Of replicas, in all trees."""
    roots = [Path(line) for line in (up.folder / "cgroups").read_text().splitlines()]
    return [entry for root in roots if root.exists() for entry in root.iterdir() if entry.is_dir()]


def test_a_job_that_takes_more_memory_than_it_asked_for_fails_with_that_reason(up: Up) -> None:
    assert up.cli("submit", "-", stdin=GREEDY).returncode == 0
    up.reaches("greedy", "Failed")
    job = up.job("greedy")
    assert job["reason"]["text"] == f"{SAID} (2 failures)"
    assert (job["attempt"], job["failures"]) == (2, 2), "it was tried again as its restart says"
    failures = [event["text"] for event in up.api.get("/v1/jobs/default/greedy/events") if event["code"] == "Failed"]
    assert failures == [SAID, f"{SAID} (2 failures)"]
    assert SAID in up.cli("describe", "job", "greedy").stdout
    assert SAID in up.cli("get", "jobs").stdout
    until(lambda: not groups(up), "nothing of it is left")


def test_limits_of_the_document_are_those_of_the_process(up: Up) -> None:
    assert up.cli("submit", "-", stdin=CAPPED).returncode == 0
    up.reaches("capped", "Running")
    kept = {
        "cpu.shares": "512",
        "cpu.cfs_quota_us": "150000",
        "memory.limit_in_bytes": str(128 << 20),
        "cpu.weight": "50",
        "cpu.max": "150000 100000",
        "memory.max": str(128 << 20),
    }
    files = [group / name for group in groups(up) for name in kept if (group / name).exists()]
    assert len(files) == 3
    assert {file.name: file.read_text().strip() for file in files}.items() <= kept.items()
    up.cli("cancel", "capped")
    up.reaches("capped", "Cancelled")
    until(lambda: not groups(up), "nothing of it is left")


def test_a_job_that_asks_for_nothing_is_in_no_group(up: Up) -> None:
    for gpus in ("1", "0"):
        ran = up.cli("run", "--name", f"asks-{gpus}", "--gpus", gpus, "--", "cat", "/proc/self/cgroup")
        assert ran.returncode == 0
        assert "optimus-" not in ran.stdout
    document = up.api.get("/v1/jobs/default/asks-0/document")
    assert "cpu" not in document["spec"].get("replicaSpec", document["spec"]), "what nobody wrote is in no document"


def test_work_that_asks_for_nothing_waits_its_turn_all_the_same(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    cores = machine.nodes[0].cpu_milli // 1000
    machine.submit(job("many", gpus=0, array=cores + 3))
    assert len(machine.hands.spawned) == cores
    assert {spawn.limits for spawn in machine.hands.spawned} == {None}


def test_what_is_kept_is_told_with_the_nodes(up: Up) -> None:
    assert "CPU and memory by cgroups v" in up.cli("get", "nodes", "-o", "wide").stdout
    assert "by cgroups" not in up.cli("get", "nodes").stdout


def test_schedulers_and_supervisors_that_are_killed_leave_nothing_behind(up: Up) -> None:
    """Two jobs: one goes on under the next scheduler, the other loses its supervisor while there is none."""
    for name in ("stays", "loses"):
        up.cli("run", "-d", "--name", name, "--memory", "64Mi", "--", "sh", "-c", "echo $PPID; exec sleep 1000")
        up.reaches(name, "Running")
    until(lambda: up.cli("logs", "loses").stdout.strip().isdigit(), "it has said who is above it")
    above = int(up.cli("logs", "loses").stdout)
    first = {group.name for group in groups(up)}
    up.kill()
    os.kill(above, signal.SIGKILL)
    assert {group.name for group in groups(up)} == first
    up.start()
    until(lambda: up.job("loses")["attempt"] == 2 and up.phase("loses") == "Running", "it runs again")
    assert up.job("stays")["attempt"] == 1
    assert len({group.name for group in groups(up)} & first) == 1, "the group of the one that was lost is gone"
    for name in ("stays", "loses"):
        up.cli("cancel", name)
        up.reaches(name, "Cancelled")
    until(lambda: not groups(up), "nothing is left of either")
    assert "limits: CPU and memory by cgroups v" in up.stop()
    roots = (up.folder / "cgroups").read_text().splitlines()
    assert roots and [root for root in roots if Path(root).exists()] == []


@pytest.mark.parametrize(
    ("spec", "limits"),
    [
        ("command: x", None),
        ("command: x, gpu: 1, accelerators: {fpga: 1}", None),
        ("command: x, cpu: 2", Limits(cpu_milli=2000)),
        ("command: x, memory: 1Gi", Limits(memory_bytes=1 << 30)),
        (
            "template: {spec: {containers: [{command: [x], resources: {limits: {cpu: 2, memory: 1Gi}}}]}}",
            Limits(cpu_milli=2000, cpu_limit_milli=2000, memory_bytes=1 << 30),
        ),
        (
            "cpu: 1, memory: 5Mi, template: {spec: {containers: [{command: [x], resources: {limits: {memory: 9Mi}}}]}}",
            Limits(cpu_milli=1000, memory_bytes=9 << 20),
        ),
        (
            "template: {spec: {containers: [{command: [x], resources: {requests: {cpu: 1, memory: 1Gi}}}]}}",
            Limits(cpu_milli=1000, memory_bytes=1 << 30),
        ),
    ],
)
def test_what_a_document_holds_a_replica_to(spec: str, limits: Limits | None) -> None:
    (job,) = load_submission_text(f"{{kind: UnifiedJob, metadata: {{name: a}}, spec: {{{spec}}}}}").jobs
    assert limits_of(job, "worker") == limits
