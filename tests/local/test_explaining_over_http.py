"""Whoever asks over HTTP why a job waits hears what the command says, and costs nobody anything."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from optimus.client import ApiError
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.web.explanations import MOST, Explanations, Wish
from optimus.explaining.answering import NICENESS
from tests.local.machines import Up, until

EXPLAINER = "optimus.explaining.answering"
JOB: dict[str, Any] = {"uid": "u", "final": False}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"), "--nodes", "1", "--gpus", "4")
    machine.cli("run", "-d", "--name", "first", "--gpus", "3", "--", "sleep", "600")
    machine.reaches("first", "Running")
    machine.cli("run", "-d", "--name", "second", "--gpus", "1", "--replicas", "2", "--", "sleep", "600")
    until(lambda: machine.job("second")["reason"] is not None, "there is a reason")
    yield machine
    machine.end()


def explained(up: Up, name: str, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = up.api.get(f"/v1/jobs/default/{name}/explain", **query)
    return found


def explainers() -> list[int]:
    """Of all machines of this user: there is one of a story at a time."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if EXPLAINER.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_it_says_what_the_command_says(up: Up) -> None:
    page = json.loads(up.cli("explain", "second", "--no-forecast", "-o", "json").stdout)
    told = explained(up, "second", forecast=0)
    for moment in ("atMs", "time"):
        assert told.pop(moment) and page.pop(moment)
    for one in (told, page):  # what would be lost grows by the second
        for suggestion in one["suggestions"]:
            suggestion["outcome"].pop("losses")
    assert told == page and told["why"]["code"] and told["suggestions"]


def test_the_page_comes_with_it_where_it_is_asked_for(up: Up) -> None:
    said = up.cli("explain", "first").stdout
    told = explained(up, "first", page=1)
    assert told["page"].splitlines()[:3] == said.splitlines()[:3] and told["state"] == "running"
    assert "page" not in explained(up, "first")


def test_it_says_when_it_starts(up: Up) -> None:
    start = explained(up, "second", samples=3)["start"]
    assert (start["state"], start["samples"], start["claim"]) == ("forecast", 3, "guess")
    assert start["p50"]["atMs"] <= start["p90"]["atMs"]


def test_one_that_runs_and_one_that_is_over_need_no_futures(up: Up) -> None:
    up.cli("run", "--name", "short", "--gpus", "0", "--", "true")
    assert (explained(up, "first")["state"], explained(up, "short")["state"]) == ("running", "over")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"samples": "0"}, "samples is a number from 1 to 1,000, not 0"),
        ({"seconds": "61"}, "seconds is a number from 1 to 60, not 61"),
        ({"forecast": "maybe"}, "forecast is 1 or 0, not maybe"),
        ({"depth": "3"}, "unknown parameter depth; known are samples, seconds, forecast, page"),
    ],
)
def test_a_wrong_question_is_told_what_is_wrong(up: Up, query: dict[str, str], words: str) -> None:
    with pytest.raises(ApiError, match=words) as refused:
        explained(up, "second", **query)
    assert refused.value.status == 422


def test_a_job_that_is_not_there_is_missing(up: Up) -> None:
    with pytest.raises(ApiError, match="there is no job default/nobody") as refused:
        explained(up, "nobody")
    assert refused.value.status == 404


def test_it_stands_back_behind_all_others_and_leaves_nothing_behind(up: Up) -> None:
    with ThreadPoolExecutor(1) as asking:
        asked = asking.submit(explained, up, "second", samples=200, seconds=20)
        until(lambda: [os.getpriority(os.PRIO_PROCESS, one) for one in explainers()] == [NICENESS], "it is at work")
        assert asked.result()["start"]["samples"] > 0
    until(lambda: not explainers(), "it is gone")


class Slow:
    """Instead of an explainer: it answers when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.begun, self.go = folder / "begun", folder / "go"
        script = f"echo $$ >> {self.begun}; cat > /dev/null; while ! [ -e {self.go} ]; do sleep 0.05; done; echo 1"
        self.explanations = Explanations(("bash", "-c", script), self.nothing, self.nothing)

    async def nothing(self) -> bytes:
        return b""

    def processes(self) -> int:
        return len(self.begun.read_text().split()) if self.begun.exists() else 0


def test_one_is_worked_out_at_a_time_and_too_many_are_told_to_come_again(tmp_path: Path) -> None:
    async def story() -> None:
        slow = Slow(tmp_path)
        several = [asyncio.create_task(slow.explanations.of(JOB, Wish(samples=n))) for n in range(1, MOST + 1)]
        same = asyncio.create_task(slow.explanations.of(JOB, Wish(samples=1)))
        while not slow.processes():
            await asyncio.sleep(0.05)
        with pytest.raises(RefusedError, match=f"{MOST} explanations are being worked out: ask again soon"):
            await slow.explanations.of(JOB, Wish(samples=99))
        await asyncio.sleep(0.3)
        assert slow.processes() == 1
        slow.go.touch()
        assert await asyncio.gather(*several, same) == [b"1\n"] * (MOST + 1)
        assert slow.processes() == MOST, "who asks the same gets the same"

    asyncio.run(asyncio.wait_for(story(), 60))


def test_they_end_with_whoever_serves(tmp_path: Path) -> None:
    async def story() -> int:
        slow = Slow(tmp_path)
        asked = asyncio.create_task(slow.explanations.of(JOB, Wish()))
        while not slow.processes():
            await asyncio.sleep(0.05)
        await slow.explanations.close()
        with pytest.raises(asyncio.CancelledError):
            await asked
        return int(slow.begun.read_text())

    number = asyncio.run(asyncio.wait_for(story(), 60))
    assert not Path(f"/proc/{number}").exists()


def test_one_that_breaks_down_says_how(tmp_path: Path) -> None:
    async def story() -> None:
        slow = Slow(tmp_path)
        explanations = Explanations(("bash", "-c", "echo no state >&2; exit 1"), slow.nothing, slow.nothing)
        with pytest.raises(RefusedError, match="it cannot be explained: no state"):
            await explanations.of(JOB, Wish())
        with pytest.raises(RefusedError, match="nobody explains here"):
            await Explanations((), slow.nothing, slow.nothing).of(JOB, Wish())

    asyncio.run(asyncio.wait_for(story(), 60))
