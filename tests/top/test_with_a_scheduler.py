"""The view over a real `optimus up`: what it tells, what keys do to real jobs, and what happens when it dies."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from optimus.cli.top.app import Top
from optimus.cli.top.watching import Stream
from optimus.client import Connection
from optimus.client.targets import target_of
from tests.local.machines import Up, until
from tests.top.pictures import screen, sees
from tests.top.test_the_view import Tale

SIZE = (110, 34)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    monkeypatch.setenv("OPTIMUS_STORE", str(tmp_path / "store"))  # of this process, and of commands the view starts
    monkeypatch.delenv("OPTIMUS_ADDRESS", raising=False)
    up = Up(tmp_path / "store")
    try:
        yield up
    finally:
        up.end()


def play(tale: Tale) -> None:
    stream = Stream(Connection())
    app = Top(stream, target_of(Connection()))

    async def run() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await tale(app, pilot)

    asyncio.run(run())
    stream._thread.join(20)
    assert not stream._thread.is_alive()


def submit(machine: Up, name: str, *words: str, gpus: int = 1) -> None:
    ran = machine.cli("run", "-d", "--name", name, "--gpus", str(gpus), *words)
    assert ran.returncode == 0, ran.stderr


async def reaches(machine: Up, name: str, *phases: str) -> None:
    await asyncio.to_thread(machine.reaches, name, *phases)


def test_a_job_from_submission_to_its_end(machine: Up) -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "No jobs", "0 of 8", "live")
        await asyncio.to_thread(submit, machine, "train", "--", "sleep", "600")
        await sees(app, pilot, "› train", "Running", "GPUs 1 of 8 in use", "◆···")
        await pilot.press("s")
        await sees(app, pilot, "default/train: suspended")
        await sees(app, pilot, "Suspended", "0 of 8")
        await pilot.press("r")
        await sees(app, pilot, "Running", "1 of 8")
        await pilot.press("c", "y")
        await sees(app, pilot, "Cancelled")
        assert machine.phase("train") == "Cancelled"
        await pilot.press("c", "y")
        await sees(app, pilot, "refused")

    play(tale)


def test_explain_says_what_the_command_says(machine: Up) -> None:
    submit(machine, "too-large", "--replicas", "20", "--", "true")
    said = machine.cli("explain", "too-large").stdout

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› too-large")
        await pilot.press("e")
        await sees(app, pilot, "explain default/too-large", "What would start it now")
        shown = " ".join(screen(app).replace("│", " ").split())
        for line in said.splitlines():
            if line.strip() and "waits" not in line:  # for how long, which goes on
                assert " ".join(line.split())[:60] in shown
        await pilot.press("escape")
        await sees(app, pilot, "Jobs 1")

    play(tale)


def test_an_explanation_can_be_left_before_it_is_there_and_of_a_job_that_is_gone(machine: Up) -> None:
    submit(machine, "train", "--", "sleep", "600")

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› train")
        await pilot.press("e", "escape")
        await sees(app, pilot, "Jobs 1")
        app.world.jobs["default/gone"] = {**app.world.jobs["default/train"], "name": "gone"}
        app._job = "default/gone"
        await pilot.press("e")
        await sees(app, pilot, "there is no job default/gone")
        await pilot.press("escape")
        await sees(app, pilot, "Jobs")

    play(tale)


def test_logs_come_as_they_are_written_also_by_somebody_strange(machine: Up) -> None:
    strange = "import time; print('\\x1b[2J\\x1b[31mrot\\x1b[0m \\x07 日本 [bold]', flush=True); time.sleep(600)"
    submit(machine, "train", "--", sys.executable, "-c", strange)

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› train", "Running")
        await pilot.press("l")
        shown = await sees(app, pilot, "logs of default/train", "rot", "日本 [bold]")
        assert "\x1b" not in shown
        await asyncio.to_thread(machine.api.delete, "/v1/jobs/default/train")
        await sees(app, pilot, "that was all")
        await pilot.press("q")
        await sees(app, pilot, "Cancelled")

    play(tale)


def test_it_says_when_the_scheduler_dies_and_finds_the_next_one(machine: Up) -> None:
    submit(machine, "train", "--", "sleep", "600")

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› train", "Running", "live")
        await asyncio.to_thread(machine.kill)
        await sees(app, pilot, "no answer since", "› train")
        await pilot.press("s")  # nobody hears it
        await pilot.press("enter")
        await sees(app, pilot, "describe default/train")
        await pilot.press("escape")
        await asyncio.to_thread(machine.start)  # elsewhere
        await sees(app, pilot, "live", "› train")
        await reaches(machine, "train", "Running")
        await sees(app, pilot, "Running")

    play(tale)


def test_it_waits_for_a_scheduler_that_is_not_up_yet(machine: Up) -> None:
    machine.stop()

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "no answer since", "optimus up")
        await asyncio.to_thread(machine.start)
        await sees(app, pilot, "live", "No jobs")

    play(tale)
    until(lambda: machine.api.get("/healthz")["ok"], "it is well")
