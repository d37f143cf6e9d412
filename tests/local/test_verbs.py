"""The verbs beyond the first hour: several names, watching, earlier attempts, queues and pools that come and go."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.machines import Up, until

QUEUES = """
kind: Queue
metadata: {name: vision}
spec: {gpu: {guarantee: 4}}
---
kind: Queue
metadata: {name: vision-a}
spec: {parent: vision}
---
kind: NodePool
metadata: {name: fast}
spec: {selector: {speed: high}}
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    assert machine.cli("submit", "-", stdin=QUEUES).returncode == 0
    for name in ("one", "two"):
        machine.cli("run", "-d", "--name", name, "--gpus", "0.5", "--queue", "vision-a", "--", "sleep", "600")
    machine.reaches("one", "Running")
    machine.reaches("two", "Running")
    yield machine
    machine.end()


def test_several_are_listed_and_one_that_is_missing_is_told(up: Up) -> None:
    ran = up.cli("get", "jobs", "two", "nobody", "one", "-o", "json")
    assert [row["name"] for row in json.loads(ran.stdout)] == ["two", "one"]
    assert ran.returncode == 1 and ran.stderr == "Error: there is no job default/nobody\n"
    assert [row["name"] for row in json.loads(up.cli("get", "nodes", "node-1", "-o", "json").stdout)] == ["node-1"]


def test_several_documents_can_be_submitted_again(up: Up) -> None:
    told = up.cli("get", "jobs", "one", "two", "-o", "yaml").stdout
    assert told.count("kind: UnifiedJob") == 2 and told.count("\n---\n") == 1


def test_jobs_are_narrowed(up: Up) -> None:
    def names(*words: str) -> list[str]:
        return [row["name"] for row in json.loads(up.cli("get", "jobs", "-o", "json", *words).stdout)]

    assert names("--phase", "running", "--queue", "vision-a") == ["one", "two"]
    assert names("--class", "interactive") == names("-n", "elsewhere") == []
    assert names("-n", "elsewhere", "-A") == ["one", "two"]


def test_queues_pools_and_nodes_are_described(up: Up) -> None:
    queue = up.cli("describe", "queue", "vision").stdout
    assert "children  vision-a" in queue and "one" in queue, "work of queues below it is in it"
    node = up.cli("describe", "node/node-0").stdout
    assert "labels" in node and ("one" in node or "two" in node)
    assert "No node is in it." in up.cli("describe", "pool", "fast").stdout
    told = json.loads(up.cli("describe", "queue", "vision", "-o", "json").stdout)
    assert told["queue"]["name"] == "vision" and len(told["jobs"]) == 2


def test_watching_tells_every_change_as_it_comes(up: Up) -> None:
    command = [sys.executable, "-m", "optimus", "get", "jobs", "-w", "-o", "json", "--queue", "default"]
    watching = subprocess.Popen(command, env=up.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert watching.stdout is not None
        up.cli("run", "-d", "--name", "seen", "--gpus", "0", "--", "true")
        phases = []
        for line in watching.stdout:
            phases.append(json.loads(line)["phase"])
            if phases[-1] == "Succeeded":
                break
        assert len(phases) == len({*phases}) >= 1, "each change once"
    finally:
        watching.kill()
        watching.communicate()


def test_output_of_earlier_attempts(up: Up) -> None:
    say = "echo try $OPTIMUS_ATTEMPT; test $OPTIMUS_ATTEMPT = 2"
    up.cli("run", "-d", "--name", "again", "--gpus", "0", "--retries", "2", "--", "bash", "-c", say)
    up.reaches("again", "Succeeded")
    assert up.cli("logs", "again").stdout == "try 1\ntry 2\n"
    assert up.cli("logs", "again", "--attempt", "2").stdout == "try 2\n"
    assert up.cli("logs", "again", "-p").stdout == up.cli("logs", "again", "--attempt", "1").stdout == "try 1\n"
    assert "known are 1, 2" in up.cli("logs", "again", "--attempt", "3").stderr
    assert "known are worker-0" in up.cli("logs", "again", "--replica", "worker-1").stderr


@pytest.mark.parametrize(
    ("job", "words", "told"),
    [
        ("one", ["--replica", "worker-1"], "default/one has no replica worker-1; it can have worker-0"),
        ("one", ["--replica", "boss-0"], "default/one has no replica boss-0; it can have worker-0"),
        ("one", ["--attempt", "9"], "default/one has no attempt 9; it has had 1"),
        ("parts", ["--replica", "12-worker-0"], "default/parts has no replica 12-worker-0; it can have 0-worker-0"),
        ("parts", ["--replica", "worker-0"], "default/parts has no replica worker-0; it can have 0-worker-0"),
    ],
)
def test_nobody_waits_for_a_replica_that_never_comes(up: Up, job: str, words: list[str], told: str) -> None:
    if job == "parts" and not any(row["name"] == job for row in up.api.get("/v1/jobs")):
        up.cli("run", "-d", "--name", job, "--array", "12", "--gpus", "4", "--", "sleep", "600")
    ran = up.cli("logs", "-f", *words, job)
    assert (ran.returncode, ran.stderr) == (1, f"Error: {told}\n")


def test_one_may_follow_a_replica_that_has_not_begun(up: Up) -> None:
    up.cli("run", "-d", "--name", "late", "--array", "3", "--gpus", "4", "--", "bash", "-c", "echo I am $OPTIMUS_PART")
    following = subprocess.Popen(
        [sys.executable, "-m", "optimus", "logs", "-f", "late", "--replica", "2-worker-0"],
        env=up.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    up.cli("cancel", "parts")
    up.reaches("late", "Succeeded")
    told, _ = following.communicate(timeout=60)
    assert (following.returncode, told) == (0, "2-worker-0 │ I am 2\n")


def test_output_of_many_parts_is_in_order(up: Up) -> None:
    up.cli("run", "--name", "many", "--array", "12", "--gpus", "0.1", "--", "bash", "-c", "echo $OPTIMUS_PART")
    told = up.cli("logs", "many").stdout.splitlines()
    assert [line.split(" │ ")[1] for line in told] == [str(part) for part in range(12)]


def test_a_job_runs_in_the_folder_and_the_pool_it_names(up: Up, tmp_path: Path) -> None:
    ran = up.cli("run", "--workdir", str(tmp_path), "--pool", "default", "--name", "here", "--", "pwd")
    assert (ran.returncode, ran.stdout) == (0, f"{tmp_path}\n"), ran.stderr
    assert up.api.get("/v1/jobs/default/here/document")["spec"]["pools"] == ["default"]
    up.cli("run", "-d", "--pool", "nowhere", "--name", "lost", "--", "true")
    until(lambda: up.job("lost")["reason"] is not None, "there is a reason")
    assert up.job("lost")["reason"]["text"] == "there is no node pool nowhere"
    up.cli("cancel", "lost")


def test_a_gang_that_is_over_has_no_gpus(up: Up) -> None:
    up.cli("run", "--name", "three", "--replicas", "3", "--gpus", "0.5", "--", "true")
    (row,) = [line.split() for line in up.cli("get", "jobs", "three").stdout.splitlines() if line.startswith("three")]
    assert row[:5] == ["three", "default", "Succeeded", "3", "–"]
    assert "  replicas   3\n" in up.cli("describe", "three").stdout


def test_who_does_not_look_is_told_at_once_that_it_never_starts(up: Up) -> None:
    ran = up.cli("run", "-d", "--name", "vast", "--memory", "1000Ti", "--", "true")
    assert (ran.returncode, ran.stdout) == (0, "job default/vast submitted\n")
    assert ran.stderr == f"Warning: as it is, it never starts: {up.job('vast')['reason']['text']}\n"
    assert "1000" in ran.stderr or "1,000" in ran.stderr, ran.stderr
    up.cli("cancel", "vast")


def test_who_looks_is_told_too_and_a_script_that_gives_up_leaves_no_job_behind(up: Up) -> None:
    command = [sys.executable, "-m", "optimus", "run", "--name", "wide", "--gpus", "99", "--", "true"]
    running = subprocess.Popen(command, env=up.environment, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    told = iter(running.stderr.readline, "")
    assert any(line.startswith("Warning: as it is, it never starts: ") for line in told)
    running.terminate()
    assert "job default/wide cancelled" in running.stderr.read()
    assert running.wait() == 130
    running.stderr.close()
    assert up.job("wide")["phase"] == "Cancelled"


def test_output_is_as_it_was_written(up: Up) -> None:
    ran = up.cli("run", "--name", "raw", "--gpus", "0", "--", "printf", "a\\tb\\n[bold]c\\n\\033[31md\\033[0m\\n")
    assert ran.stdout == "a\tb\n[bold]c\n\x1b[31md\x1b[0m\n"


def test_following_goes_on_when_the_scheduler_is_killed_and_comes_back(up: Up) -> None:
    command = [sys.executable, "-m", "optimus", "run", "--name", "steady", "--gpus", "0", "--", "bash", "-c"]
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 1; done"
    following = subprocess.Popen(
        [*command, script], env=up.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    first = following.stdout.readline()
    up.kill()
    up.start(where_it_was=True)
    rest, told = following.communicate(timeout=120)
    assert (first + rest).split() == list("12345678") and following.returncode == 0, told


def test_what_is_needed_is_not_deleted(up: Up) -> None:
    ran = up.cli("delete", "queue", "vision", "vision-a", "nobody")
    assert ran.returncode == 1
    assert "queue vision has queues below it: delete vision-a first" in ran.stderr
    assert "queue vision-a has jobs: cancel them or let them end: default/one, default/two" in ran.stderr
    assert "there is no queue nobody" in ran.stderr


def test_what_nobody_needs_is_deleted_for_good(up: Up) -> None:
    quota = "kind: Queue\nmetadata: {name: quick}\nspec: {pools: [{name: fast, gpu: {guarantee: 1}}]}\n"
    assert up.cli("submit", "-", stdin=quota).returncode == 0
    assert "pool fast has quotas" in up.cli("delete", "pool", "fast").stderr
    up.cli("cancel", "one", "two")
    up.reaches("one", "Cancelled")
    up.reaches("two", "Cancelled")
    ran = up.cli("delete", "queue", "quick", "vision-a", "vision")
    assert ran.stdout == "queue quick deleted\nqueue vision-a deleted\nqueue vision deleted\n", ran.stderr
    assert up.cli("delete", "pool/fast").stdout == "pool fast deleted\n"
    up.kill()
    up.start()
    assert [queue["name"] for queue in up.api.get("/v1/queues")] == ["default"]
    assert "fast" not in [pool["name"] for pool in up.api.get("/v1/pools")]
    assert "there is no queue vision" in up.cli("run", "--queue", "vision", "--", "true").stderr
    until(lambda: up.cli("run", "--gpus", "1", "--", "true").returncode == 0, "work still runs")


def test_several_files_are_all_looked_at(up: Up) -> None:
    ran = up.cli("submit", "no-such.yaml", "-", stdin="kind: Queue\nmetadata: {name: late}\n")
    assert ran.returncode == 2 and "no-such.yaml cannot be read" in ran.stderr
    assert ran.stdout == "queue late submitted\n", "the other file is done"
