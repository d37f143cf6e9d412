"""`optimus up` as people use it: real processes under a real scheduler, through the command line and the API."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from optimus.client import ApiError
from tests.local.machines import Up, until

TRAIN = """
import optimus, time, sys
state = {"total": 0}
for step in optimus.steps(40, state=state, every=1):
    state["total"] += step
    time.sleep(0.1)
print("total", state["total"], "attempt", optimus.attempt())
"""
QUEUES = """
kind: Queue
metadata: {name: vision}
spec: {gpu: {guarantee: 4}}
---
kind: Queue
metadata: {name: speech}
spec: {gpu: {guarantee: 4}}
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    yield machine
    machine.end()


def test_the_first_thing_anybody_tries(up: Up) -> None:
    ran = up.cli("run", "--", "python3", "-c", "print(1)")
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
    assert "Succeeded" in ran.stderr
    assert "print-1-" in up.cli("get", "jobs").stdout


def test_a_gang_tells_who_speaks_and_where_each_is(up: Up) -> None:
    said = "echo rank $OPTIMUS_RANK of $OPTIMUS_REPLICAS on $OPTIMUS_NODE with $CUDA_VISIBLE_DEVICES"
    ran = up.cli("run", "--name", "gang", "--replicas", "3", "--gpus", "2", "--", "bash", "-c", said)
    lines = sorted(ran.stdout.splitlines())
    assert len(lines) == 3 and lines[0].startswith("worker-0 │ rank 0 of 3 on node-"), ran.stdout
    places = {tuple(line.split(" on ")[1].split(" with ")) for line in lines}
    assert len(places) == 3, "nobody shares a device"


def test_a_failure_is_told_with_its_code_and_ends_with_1(up: Up) -> None:
    ran = up.cli("run", "--name", "broken", "--", "bash", "-c", "echo so; exit 3")
    assert ran.returncode == 1 and ran.stdout == "so\n"
    assert "Failed: replica worker-0 exited with code 3" in ran.stderr
    ran = up.cli("run", "--name", "nowhere", "--", "no-such-command")
    assert ran.returncode == 1 and "no-such-command" in ran.stderr


def test_who_is_inside_its_guarantee_gets_its_gpus_back_and_nobody_loses_its_work(up: Up, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    assert up.cli("submit", "-", stdin=QUEUES).returncode == 0
    train = ["--name", "low", "--queue", "speech", "--replicas", "8", "--checkpoint", "20", "--retries", "2"]
    assert up.cli("run", "-d", *train, "--", sys.executable, str(script)).returncode == 0
    until(lambda: up.job("low")["runningReplicas"] == 8, "low runs on all 8 GPUs")
    until(lambda: any((up.folder / "checkpoints").rglob("*")), "it has saved something")
    assert up.cli("run", "-d", "--name", "high", "--queue", "vision", "--gpus", "4", "--", "sleep", "1").returncode == 0
    up.reaches("high", "Running", "Succeeded")
    up.reaches("low", "Succeeded", "Failed")
    assert up.phase("low") == "Succeeded" and up.job("low")["preemptions"] >= 1
    told = up.cli("logs", "low").stdout
    assert told.count("total 780") == 8, told
    assert "attempt 1" not in told, "all of them went on where they were"
    assert "Reclaimed" in up.cli("describe", "job", "low").stdout


def test_suspended_it_leaves_and_resumed_it_comes_again(up: Up) -> None:
    up.cli("run", "-d", "--name", "pause", "--checkpoint", "5", "--", "sleep", "600")
    up.reaches("pause", "Running")
    assert "suspended" in up.cli("suspend", "job", "pause").stdout
    up.reaches("pause", "Suspended")
    assert "resumed" in up.cli("resume", "pause").stdout
    up.reaches("pause", "Running")
    assert "cancelled" in up.cli("cancel", "default/pause").stdout
    up.reaches("pause", "Cancelled")
    again = up.cli("cancel", "pause")
    assert again.returncode == 1 and "default/pause is over: Cancelled" in again.stderr


def test_elastic_work_grows_into_idle_gpus_and_is_scaled(up: Up) -> None:
    up.cli("run", "-d", "--name", "elastic", "--replicas", "1-4", "--checkpoint", "1", "--", "sleep", "600")
    until(lambda: up.job("elastic")["runningReplicas"] == 4, "it has grown to four")
    assert "at most 2" in up.cli("scale", "elastic", "--replicas", "2").stdout
    until(lambda: len(up.job("elastic")["replicas"]) == 2, "two have left")
    up.cli("cancel", "elastic")
    up.reaches("elastic", "Cancelled")


def test_a_job_that_waits_says_why_and_every_face_says_the_same(up: Up) -> None:
    up.cli("run", "-d", "--name", "huge", "--gpus", "4", "--replicas", "9", "--", "true")
    until(lambda: up.job("huge")["reason"] is not None, "there is a reason")
    reason = up.job("huge")["reason"]
    assert reason["code"] == "NeverFits"
    assert reason["text"] in up.cli("get", "jobs", "--phase", "Pending").stdout
    assert reason["text"] in up.cli("describe", "huge").stdout
    assert json.loads(up.cli("get", "jobs", "huge", "-o", "json").stdout)[0]["reason"] == reason
    up.cli("cancel", "huge")


def test_watchers_get_everything_and_then_every_change(up: Up) -> None:
    events = up.api.events()
    kind, shown = next(events)
    assert kind == "everything" and "default" in [queue["name"] for queue in shown["queues"]]
    up.cli("run", "-d", "--name", "seen", "--", "true")
    phases = []
    for _, news in events:
        phases += [view["phase"] for job, view in (news.get("jobs") or {}).items() if job == "default/seen"]
        if phases and phases[-1] == "Succeeded":
            break
    assert phases[0] in ("Pending", "Starting")


def test_the_document_comes_back_and_can_be_submitted_again(up: Up) -> None:
    up.cli("run", "--name", "copy", "--gpus", "2", "--", "true")
    document = up.cli("get", "job", "copy", "-o", "yaml").stdout
    assert "kind: UnifiedJob" in document
    again = up.cli("submit", "-", stdin=document)
    assert again.returncode == 0, again.stderr
    up.reaches("copy", "Succeeded")


def test_a_stranger_is_not_served(up: Up) -> None:
    address = up.api.address.removeprefix("http://")
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as line:
        line.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert b" 403 " in line.recv(4096)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["run", "--gpus", "many", "--", "true"], 2, "many is no number"),
        (["run", "--replicas", "4-", "--", "true"], 2, "write 4, or 2-8"),
        (["run", "--queue", "nowhere", "--", "true"], 1, "there is no queue nowhere; known are default"),
        (["run", "--gpus", "-1", "--", "true"], 2, "must not be negative"),
        (["run", "--name", "No Name", "--", "true"], 2, "No Name"),
        (["run", "--replicas", "5-2", "--", "true"], 2, "5"),
        (["run", "--class", "urgent", "--", "true"], 2, "urgent"),
        (["run"], 2, "COMMAND"),
        (["logs", "nobody"], 1, "there is no job default/nobody"),
        (["cancel", "nobody"], 1, "there is no job default/nobody"),
        (["describe", "job", "a/b/c"], 2, "is no name of a job"),
        (["get", "things"], 2, "things cannot be listed"),
        (["get", "queues", "nobody"], 1, "there is no queue nobody"),
        (["scale", "nobody", "--replicas", "0"], 2, "--replicas"),
        (["submit", "no-such-file.yaml"], 2, "cannot be read"),
        (["get", "jobs", "--address", "http://127.0.0.1:1"], 1, "nobody answers at http://127.0.0.1:1"),
        (["get", "jobs", "--address", "ftp://x"], 2, "is no address"),
    ],
)
def test_nonsense_gets_a_word_and_a_code(up: Up, words: list[str], code: int, told: str) -> None:
    ran = up.cli(*words)
    assert ran.returncode == code, ran.stderr
    assert told in ran.stderr and "Traceback" not in ran.stderr


def test_a_file_with_errors_is_refused_as_a_whole_with_all_of_them(up: Up) -> None:
    wrong = "kind: UnifiedJob\nmetadata: {name: half}\nspec: {command: [true], gpu: -1, colour: red}\n"
    ran = up.cli("submit", "-", stdin=wrong)
    assert ran.returncode == 1 and "colour" in ran.stderr and "gpu" in ran.stderr
    with pytest.raises(ApiError, match="there is no job default/half"):
        up.job("half")


def test_a_taken_port_and_a_store_in_use_are_said(up: Up, tmp_path: Path) -> None:
    taken = up.api.address.rpartition(":")[2]
    ran = up.cli("up", "--port", taken, "--store", str(tmp_path))
    assert ran.returncode == 1 and f"port {taken} of 127.0.0.1 cannot be had" in ran.stderr
    ran = up.cli("up", "--port", "0")
    assert ran.returncode == 1 and "is in use by process" in ran.stderr
