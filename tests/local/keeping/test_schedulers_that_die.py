"""A scheduler is killed without warning. The next one finds every replica: none is lost, none runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from optimus.drivers.local.keeping import recording
from optimus.drivers.local.keeping.events import Exited, Lost, Refused, Started
from optimus.drivers.local.keeping.finding import Never, find
from optimus.drivers.local.keeping.identity import boot_id
from tests.local.keeping.keeping_house import alive, house, number_in, played, record_of, request, script, until

SCHEDULER = Path(__file__).with_name("short_lived_scheduler.py")
ONCE = "echo run >> {0}/ran-$N; until test -e {0}/gate; do sleep 0.02; done; exit $N"
HALF_EARLIER = (
    "echo run >> {0}/ran-$N; until test -e {0}/gate -o $N -lt 10 -a -e {0}/first; do sleep 0.02; done; exit $N"
)


@contextmanager
def scheduler(runs: Path, count: int, text: str, job: str = "") -> Iterator[IO[str]]:
    """Its words; it is killed at the end of the block."""
    words = [sys.executable, str(SCHEDULER), str(runs), str(count), text, job]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()


@pytest.mark.parametrize("job", ["", "one"])
def test_twenty_replicas_outlive_their_scheduler(tmp_path: Path, job: str) -> None:
    """Half of them end while there is no scheduler at all."""
    names = [f"r{number}" for number in range(20)]
    with scheduler(tmp_path / "runs", 20, HALF_EARLIER.format(tmp_path), job) as words:
        assert {words.readline().split()[0] for _ in names} == {"Started"}
    pids = {name: record_of(tmp_path / "runs" / name)["pid"] for name in names}
    assert all(alive(pid) for pid in pids.values())
    (tmp_path / "first").touch()

    async def story() -> None:
        await until(lambda: len(list(tmp_path.glob("runs/*/exit"))) == 10, "half have ended, seen by nobody")
        async with house(tmp_path / "runs") as here:
            await here.keeper.adopt(names)
            assert {event.attempt: event.pid for event in here.told if isinstance(event, Started)} == pids
            here.keeper.spawn(request("r3", "true"))
            assert (await here.hears(Refused, "r3")).claimed_before
            (tmp_path / "gate").touch()
            for number, name in enumerate(names):
                assert (await here.hears(Exited, name)).exit.code == number
            assert not [event for event in here.told if isinstance(event, Lost)]

    played(story)
    assert [(tmp_path / f"ran-{number}").read_text() for number in range(20)] == ["run\n"] * 20


@pytest.mark.parametrize("job", ["", "one"])
@pytest.mark.parametrize("heard", [0, 1, 7])
def test_killed_in_the_middle_of_starting_each_ran_once_or_never_will(tmp_path: Path, heard: int, job: str) -> None:
    names = [f"r{number}" for number in range(40)]
    (tmp_path / "gate").touch()
    with scheduler(tmp_path / "runs", 40, ONCE.format(tmp_path), job) as words:
        while heard:
            heard -= words.readline().startswith("Started")

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            await here.keeper.adopt(names)
            for number, name in enumerate(names):
                event = await here.hears_the_end_of(name)
                ran = (tmp_path / f"ran-{number}").read_text() if (tmp_path / f"ran-{number}").exists() else ""
                assert (ran, type(event)) in [("run\n", Exited), ("", Refused)]
                if isinstance(event, Exited):
                    assert event.exit.code == number
        async with house(tmp_path / "runs") as again:  # and the next scheduler is told the same
            await again.keeper.adopt(names)
            for name in names:
                assert [type(event) for event in again.of(name)] == [type(event) for event in here.of(name)]

    played(story)


def test_closing_leaves_replicas_running(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs") as first:
            first.keeper.spawn(script("a", f"until test -e {tmp_path}/gate; do sleep 0.02; done; exit 6"))
            first.keeper.spawn(script("b", "exit 8"))
            await first.keeper.close()  # at once: what was asked for is still started
        async with house(tmp_path / "runs") as second:
            await second.keeper.adopt(["a", "b"])
            assert (await second.hears(Started, "a")).pid
            assert (await second.hears(Exited, "b")).exit.code == 8
            (tmp_path / "gate").touch()
            assert (await second.hears(Exited, "a")).exit.code == 6

    played(story)


def test_an_attempt_nobody_started_never_will_be(tmp_path: Path) -> None:
    """The scheduler that restarts says that it never ran; the supervisor that comes late finds the name taken."""

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            await here.keeper.adopt(["late"])
            assert not (await here.hears(Refused, "late")).claimed_before
            here.keeper.spawn(script("late", f"touch {tmp_path}/ran"))
            await until(lambda: len(here.of("late")) == 2, "the late one is refused")
            assert here.of("late")[1] == Refused("late", "this attempt was claimed before", claimed_before=True)
        assert not (tmp_path / "ran").exists()

    played(story)


def test_a_supervisor_between_its_claim_and_its_start_is_stopped(tmp_path: Path) -> None:
    """It has the folder, a restarted scheduler takes the name `started`: only one of them can have it."""
    folder = tmp_path / "a"
    folder.mkdir()
    assert isinstance(find(folder, boot_id()), Never)
    with pytest.raises(FileExistsError):
        recording.record_start(os.fsencode(folder), {"pid": 1})
    assert isinstance(find(folder, boot_id()), Never)
    assert [path.name for path in folder.iterdir()] == ["started"]


def test_after_another_boot_all_are_lost(tmp_path: Path) -> None:
    """Whoever has the number now is a stranger and left alone. So it is with a record that never reached the disk."""
    me = {"pid": os.getpid(), "ticks": 1, "wall_ms": 5, "supervisor_pid": os.getpid(), "supervisor_ticks": 1}
    for name, text in (("a", json.dumps(me | {"boot": "earlier"})), ("b", ""), ("c", "[1]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "started").write_text(text)

    async def story() -> None:
        async with house(tmp_path) as here:
            await here.keeper.adopt(["a", "b", "c"])
            for name in "abc":
                assert (await here.hears(Lost, name)).why == "the machine was started anew"

    played(story)


def test_a_killed_supervisor_takes_its_replica_along(tmp_path: Path) -> None:
    """And what that left in the background. The loss is told when all of it is over."""
    text = f"setsid sh -c 'echo $$ > {tmp_path}/fled; exec sleep 1000' & echo $PPID > {tmp_path}/above; sleep 1000"

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            here.keeper.spawn(script("a", text))
            started = await here.hears(Started, "a")
            fled, above = await number_in(tmp_path / "fled"), await number_in(tmp_path / "above")
            os.kill(above, signal.SIGKILL)
            assert "no exit record" in (await here.hears(Lost, "a")).why
            assert [pid for pid in (started.pid, fled) if alive(pid)] == []

    played(story)


def test_a_supervisor_killed_while_there_is_no_scheduler(tmp_path: Path) -> None:
    with scheduler(
        tmp_path / "runs", 1, f"echo $PPID > {tmp_path}/above; echo $$ > {tmp_path}/pid; sleep 1000"
    ) as words:
        words.readline()

    async def story() -> None:
        above, pid = await number_in(tmp_path / "above"), await number_in(tmp_path / "pid")
        os.kill(above, signal.SIGKILL)
        await until(lambda: not alive(above), "the supervisor is gone")
        assert alive(pid)
        async with house(tmp_path / "runs") as here:
            await here.keeper.adopt(["r0"])
            await here.hears(Lost, "r0")
            assert not alive(pid)

    played(story)


def test_a_killed_nursery_is_replaced(tmp_path: Path) -> None:
    """Before anything is asked for, in the middle of it, and while replicas run, which do not notice."""

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            here.keeper.spawn(script("old", f"until test -e {tmp_path}/gate; do sleep 0.02; done; exit 9"))
            await here.hears(Started, "old")
            for turn in range(4):
                assert here.keeper._line is not None or turn
                names = [f"{turn}-{number}" for number in range(20)]
                for name in names:
                    here.keeper.spawn(script(name, f"echo run >> {tmp_path}/ran-{name}; exit 2"))
                if turn:
                    await asyncio.sleep(0.01 * turn)  # so that orders have arrived, or some of their starts are done
                if here.keeper._line is not None:
                    here.keeper._line.process.kill()
                for name in names:
                    assert (await here.hears(Exited, name)).exit.code == 2
                    assert (tmp_path / f"ran-{name}").read_text() == "run\n"
            (tmp_path / "gate").touch()
            assert (await here.hears(Exited, "old")).exit.code == 9

    played(story)
