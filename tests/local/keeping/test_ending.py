"""How replicas end: when they are told, when they are killed, and everything they had started with them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

from optimus.drivers.local.keeping.events import Exited, Started
from optimus.drivers.local.keeping.identity import start_ticks
from optimus.drivers.local.keeping.reaching import Process, opened, send
from tests.local.keeping.keeping_house import alive, house, number_in, played, request, script, until


def test_a_signal_reaches_the_whole_group_or_only_the_first(tmp_path: Path) -> None:
    told = f"trap 'echo told >> {tmp_path}/$1; exit 3' TERM; echo $$ > {tmp_path}/$1.pid; while :; do sleep 0.05; done"
    patient = told.replace("exit 3", "sleep 1; exit 3")  # whoever goes first takes the others along, told or not
    both = f"sh -c '{told.replace(chr(39), chr(34))}' x child & set -- first; {patient}"

    async def story() -> None:
        # Where only the first is told, its child is killed when the first is gone, and never told.
        async with house(tmp_path / "runs") as here:
            for attempt, whole in (("group", True), ("one", False)):
                here.keeper.spawn(script(attempt, both))
                await number_in(tmp_path / "child.pid")
                await number_in(tmp_path / "first.pid")
                await here.hears(Started, attempt)
                assert here.keeper.signal(attempt, signal.SIGTERM, whole_group=whole)
                assert (await here.hears(Exited, attempt)).exit.code == 3
                assert (tmp_path / "first").exists()
                assert (tmp_path / "child").exists() == whole
                for left in tmp_path.glob("*.pid"):
                    left.unlink()
                for left in (tmp_path / "first", tmp_path / "child"):
                    left.unlink(missing_ok=True)

    played(story)


def test_one_that_ignores_sigterm_dies_by_kill(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            here.keeper.spawn(script("a", f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done"))
            pid = await number_in(tmp_path / "pid")
            await here.hears(Started, "a")
            assert here.keeper.signal("a", signal.SIGTERM)
            await asyncio.sleep(0.1)
            assert alive(pid)
            assert here.keeper.kill("a")
            assert (await here.hears(Exited, "a")).exit.signal == signal.SIGKILL
            assert not here.keeper.kill("a")
            assert not here.keeper.signal("a", signal.SIGTERM)

    played(story)


def test_one_that_is_killed_before_it_has_started_ends_when_it_has(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            here.keeper.spawn(request("a", "sleep", "1000"))
            assert here.keeper.kill("a")
            assert (await here.hears(Exited, "a")).exit.signal == signal.SIGKILL

    played(story)


def test_one_that_is_told_before_it_has_started_is_told_when_it_has(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            here.keeper.spawn(request("a", "sleep", "1000"))
            assert here.keeper.signal("a", signal.SIGTERM)
            assert (await here.hears(Exited, "a")).exit.signal == signal.SIGTERM
            here.keeper.spawn(request("b", "sleep", "1000"))
            assert here.keeper.kill("b")
            assert here.keeper.signal("b", signal.SIGTERM)
            assert (await here.hears(Exited, "b")).exit.signal == signal.SIGKILL, "who is killed is not asked any more"

    played(story)


def test_what_runs_in_the_background_ends_with_its_replica(tmp_path: Path) -> None:
    """One in the same group, one that fled to a session of its own, and one whose parent has gone already."""
    text = (
        f"sleep 1000 & echo $! > {tmp_path}/group\n"
        f"setsid sh -c 'echo $$ > {tmp_path}/fled; exec sleep 1000' &\n"
        f"setsid sh -c 'sh -c \"echo \\$\\$ > {tmp_path}/orphan; exec sleep 1000\" & exit' \n"
        f"while ! test -s {tmp_path}/fled -a -s {tmp_path}/orphan; do sleep 0.01; done; exit 4"
    )

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            assert (await here.runs_to_its_end(script("a", text))).exit.code == 4
            pids = [int((tmp_path / name).read_text()) for name in ("group", "fled", "orphan")]
            assert [pid for pid in pids if alive(pid)] == []

    played(story)


def test_the_supervisor_takes_no_ctrl_c(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            here.keeper.spawn(script("a", f"echo $PPID > {tmp_path}/pid; sleep 0.3; exit 5"))
            supervisor = await number_in(tmp_path / "pid")
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(supervisor, number)
            assert (await here.hears(Exited, "a")).exit.code == 5

    played(story)


def test_the_supervisor_is_nobodys_child_but_inits(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            here.keeper.spawn(script("a", f"echo $PPID > {tmp_path}/pid; sleep 1000"))
            supervisor = await number_in(tmp_path / "pid")
            await here.hears(Started, "a")

            def parent() -> int:
                return int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])

            ours = {os.getpid(), *(int(word) for word in children_of(os.getpid()))}
            await until(lambda: parent() not in ours, "it has left our tree")
            assert os.getsid(supervisor) == supervisor

    played(story)


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_stranger_with_the_same_number_is_not_signalled() -> None:
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        ticks = start_ticks(stranger.pid)
        assert ticks is not None
        earlier = Process(stranger.pid, ticks - 1)
        assert opened(earlier) is None
        assert not send(earlier, signal.SIGKILL, whole_group=True)
        assert not send(earlier, signal.SIGKILL, whole_group=False)
        assert stranger.poll() is None
        assert send(Process(stranger.pid, ticks), signal.SIGTERM, whole_group=True)
        assert stranger.wait() == -signal.SIGTERM
    finally:
        stranger.kill()
        stranger.wait()
    assert opened(Process(0, 0)) is None
