"""Replicas of one job that start together share a supervisor, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from optimus.drivers.local.keeping.events import Exited, Lost, Started
from optimus.drivers.local.keeping.nursery import FLOOD
from tests.local.keeping.keeping_house import alive, house, number_in, played, record_of, request, script, until


def test_one_supervisor_for_a_job_and_one_for_each_that_has_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            for attempt, job in (("a0", "a"), ("a1", "a"), ("b0", "b"), ("c", ""), ("d", "")):
                here.keeper.spawn(script(attempt, "sleep 1000", job))
            above = {}
            for attempt in ("a0", "a1", "b0", "c", "d"):
                await here.hears(Started, attempt)
                above[attempt] = record_of(tmp_path / attempt)["supervisor_pid"]
            assert above["a0"] == above["a1"]
            assert len(set(above.values())) == 4

    played(story)


def test_in_a_flood_a_few_jobs_share_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            names = [f"r{number}" for number in range(32)]
            for name in names:
                here.keeper.spawn(script(name, "exit 3", job=name))
            assert {(await here.hears(Exited, name)).exit.code for name in names} == {3}
            above = [record_of(tmp_path / name)["supervisor_pid"] for name in names]
            assert len(set(above)) < 16
            assert max(above.count(pid) for pid in above) <= FLOOD

    played(story)


def test_each_is_told_when_it_ends_and_not_with_the_others(tmp_path: Path) -> None:
    wait = f"until test -e {tmp_path}/gate-$0; do sleep 0.02; done; exit $0"

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            for number in range(5):
                here.keeper.spawn(script(f"r{number}", wait.replace("$0", str(number)), "job"))
            for number in (3, 0, 4, 2, 1):
                (tmp_path / f"gate-{number}").touch()
                assert (await here.hears(Exited, f"r{number}")).exit.code == number
            assert sum(isinstance(event, Exited) for event in here.told) == 5

    played(story)


def test_what_one_leaves_behind_ends_with_it_and_what_another_started_does_not(tmp_path: Path) -> None:
    def leaves(name: str, then: str) -> str:
        fled = f"setsid sh -c 'sh -c \"echo \\$\\$ > {tmp_path}/{name}; exec sleep 1000\" & exit'"
        return f"{fled}; while ! test -s {tmp_path}/{name}; do sleep 0.01; done; {then}"

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            here.keeper.spawn(script("stays", leaves("kept", "sleep 1000"), "job"))
            here.keeper.spawn(script("goes", leaves("left", "exit 4"), "job"))
            kept, left = await number_in(tmp_path / "kept"), await number_in(tmp_path / "left")
            assert (await here.hears(Exited, "goes")).exit.code == 4
            assert not alive(left)
            await asyncio.sleep(0.1)
            assert alive(kept)
            here.keeper.kill("stays")
            assert (await here.hears(Exited, "stays")).exit.signal == signal.SIGKILL
            assert not alive(kept)

    played(story)


def test_a_killed_supervisor_takes_all_of_its_job_along_and_nobody_else(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            for attempt, job in (("a0", "a"), ("a1", "a"), ("b0", "b")):
                here.keeper.spawn(script(attempt, "sleep 1000", job))
            pids = {attempt: (await here.hears(Started, attempt)).pid for attempt in ("a0", "a1", "b0")}
            os.kill(record_of(tmp_path / "a0")["supervisor_pid"], signal.SIGKILL)
            for attempt in ("a0", "a1"):
                assert "no exit record" in (await here.hears(Lost, attempt)).why
                assert not alive(pids[attempt])
            assert alive(pids["b0"])
            assert [type(event) for event in here.of("b0")] == [Started]

    played(story)


def test_one_that_cannot_be_run_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            for attempt, text in (("a", "exit 1"), ("b", "exit 2"), ("c", "exit 3")):
                words = ("no-such-command",) if attempt == "b" else ("/bin/sh", "-c", text)
                here.keeper.spawn(request(attempt, *words, job="job"))
            assert (await here.hears(Exited, "b")).exit.error == "command not found: no-such-command"
            assert [(await here.hears(Exited, attempt)).exit.code for attempt in ("a", "c")] == [1, 3]

    played(story)


def test_adopted_ones_are_told_one_by_one_too(tmp_path: Path) -> None:
    wait = f"until test -e {tmp_path}/gate-$0; do sleep 0.02; done; exit $0"

    async def story() -> None:
        async with house(tmp_path / "runs") as first:
            for number in range(3):
                first.keeper.spawn(script(f"r{number}", wait.replace("$0", str(number)), "job"))
            for number in range(3):
                await first.hears(Started, f"r{number}")
            await first.keeper.close()
        async with house(tmp_path / "runs") as second:
            await second.keeper.adopt([f"r{number}" for number in range(3)])
            (tmp_path / "gate-1").touch()
            assert (await second.hears(Exited, "r1")).exit.code == 1
            assert [type(event) for event in second.of("r0")] == [Started]
            for number in (0, 2):
                (tmp_path / f"gate-{number}").touch()
                assert (await second.hears(Exited, f"r{number}")).exit.code == number
            await until(lambda: not second.keeper._kept, "nobody is waited for")

    played(story)
