"""`optimus explain` beside a real `optimus up`: what it says of jobs, and that its advice is good."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer

from optimus.drivers.local.web.mirror import Mirror
from optimus.drivers.local.web.server import application
from optimus.engine.copying import engine_of, read_copy
from tests.local.machines import Up, until

MANY = 3_000
BEARER = {"Authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    yield machine
    machine.end()


def test_a_job_that_waits_is_explained_and_the_advice_starts_it(up: Up) -> None:
    up.cli("run", "-d", "--name", "first", "--replicas", "6", "--", "sleep", "600")
    up.reaches("first", "Running")
    up.cli("run", "-d", "--name", "second", "--replicas", "4", "--", "sleep", "600")
    until(lambda: up.job("second")["reason"] is not None, "there is a reason")

    page = up.cli("explain", "job", "second", "--samples", "4", "--within", "10m")
    assert page.returncode == 0, page.stderr
    assert up.job("second")["reason"]["text"] in page.stdout
    assert "nobody: it is the first in queue default" in page.stdout
    words = " ".join(page.stdout.split())
    assert "hardly before in" in words and "nothing is known about how long work here takes" in words
    assert re.search(r"4 futures from \S+ on, nobody else comes; run times of what runs: 1 guess", words)
    assert "2 replicas instead of 4" in page.stdout and "starts at once" in page.stdout
    assert "by stopping first" in page.stdout

    told = json.loads(up.cli("explain", "second", "--samples", "4", "--within", "10m", "-o", "json").stdout)
    assert (told["job"], told["state"], told["ahead"]) == ("default/second", "waiting", [])
    assert told["why"]["code"] == "NoRoomForAll" and told["why"]["facts"]["possible"] == 2
    assert told["start"]["p50"]["atMs"] <= told["start"]["p90"]["atMs"] and told["start"]["claim"] == "guess"
    advice = next(one for one in told["suggestions"] if one["kind"] == "replicas")
    assert advice["field"] == "replicas: 2" and not advice["outcome"]["held"]

    document = yaml.safe_load(up.cli("get", "job", "second", "-o", "yaml").stdout)
    document["spec"].pop("replicaSpec", None)
    document["spec"] |= yaml.safe_load(advice["field"])
    document.pop("status", None)
    up.cli("cancel", "second")
    up.reaches("second", "Cancelled")
    again = up.cli("submit", "-", stdin=yaml.safe_dump(document))
    assert again.returncode == 0, again.stderr
    up.reaches("second", "Running")
    assert up.phase("first") == "Running", "and nobody had to leave"


def test_what_runs_is_suspended_or_over_is_said(up: Up) -> None:
    up.cli("run", "-d", "--name", "one", "--gpus", "0", "--", "sleep", "600")
    up.reaches("one", "Running")
    assert "on node-" in up.cli("explain", "one").stdout
    up.cli("suspend", "one")
    up.reaches("one", "Suspended")
    told = up.cli("explain", "one").stdout
    assert "Suspended: paused by its owner" in told and "never, as it is" in told
    assert "optimus resume job one" in told
    up.cli("cancel", "one")
    up.reaches("one", "Cancelled")
    told = yaml.safe_load(up.cli("explain", "default/one", "-o", "yaml").stdout)
    assert (told["state"], told["why"]["code"]) == ("over", "Cancelled")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nobody"], 1, "there is no job default/nobody"),
        (["job", "elsewhere/nobody"], 1, "there is no job elsewhere/nobody"),
        (["a/b/c"], 2, "is no name of a job"),
        (["nobody", "--samples", "0"], 2, "--samples"),
        (["nobody", "--within", "soon"], 2, "--within"),
        (["nobody", "--address", "http://127.0.0.1:1"], 1, "nobody answers"),
    ],
)
def test_nonsense_gets_a_word_and_a_code(up: Up, words: list[str], code: int, said: str) -> None:
    ran = up.cli("explain", *words)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr and "Traceback" not in ran.stderr


def test_the_state_is_not_for_strangers(up: Up) -> None:
    host, _, port = up.api.address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), 10) as line:
        line.sendall(b"GET /v1/state HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert b" 403 " in line.recv(4096)


def test_thousands_of_jobs_are_copied_whole_and_nobody_notices(up: Up) -> None:
    spec = {"command": ["sleep", "600"], "gpu": 4, "arraySize": MANY}  # none is over before anybody looks
    jobs = [{"kind": "UnifiedJob", "metadata": {"name": "many"}, "spec": spec}]
    up.cli("run", "-d", "--name", "beside", "--gpus", "0", "--", "sleep", "600")
    up.reaches("beside", "Running")
    assert up.cli("submit", "-", stdin=yaml.safe_dump_all(jobs)).returncode == 0
    copied = engine_of(read_copy(up.api.raw("/v1/state")))
    names = [name for name in copied.state.workloads.row_of if name.startswith("default/many/")]
    assert len(names) == MANY
    ran = up.cli("explain", "many", "--no-forecast", "-o", "json")
    told = json.loads(ran.stdout)
    assert told["counts"]["Pending"] > 0 and told["part"] and told["why"]["code"], ran.stderr
    assert up.phase("beside") == "Running"
    up.cli("cancel", "many")
    up.cli("cancel", "beside")


def test_beyond_this_machine_the_state_needs_the_token(tmp_path: Path) -> None:
    """The routes as they are served there, without an engine behind them."""

    async def statuses() -> list[int]:
        app = application(Mirror(tmp_path / "nobody.sock"), tmp_path, token="secret")
        async with TestClient(TestServer(app)) as client:
            found = [await client.get("/v1/state", headers=headers) for headers in ({}, BEARER)]
            return [response.status for response in found]

    assert asyncio.run(statuses()) == [401, 503]
