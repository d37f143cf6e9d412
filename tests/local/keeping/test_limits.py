"""CPU and memory of a replica by the cgroups of this machine: kept, said when they end it, and gone with it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from optimus.drivers.local.keeping import recording
from optimus.drivers.local.keeping.events import Exited, Limits, Lost, Started
from optimus.drivers.local.keeping.limiting import Limiting, limiting_here
from tests.local.keeping.keeping_house import alive, house, number_in, played, request, script, until

MIB = 1 << 20
GREEDY = "x = bytearray(300 << 20)"


@pytest.fixture
def limiting(tmp_path: Path) -> Iterator[Limiting]:
    here = limiting_here(tmp_path)
    if len(here.groups) < 2:
        pytest.skip(f"limits on this machine: {here.told()}")
    yield here
    here.close()
    assert [group for group in here.groups.values() if group.exists()] == []


def below(limiting: Limiting) -> list[str]:
    return [entry.name for group in limiting.groups.values() for entry in group.iterdir() if entry.is_dir()]


def test_who_takes_more_memory_than_it_asked_for_is_ended_and_it_is_said(tmp_path: Path, limiting: Limiting) -> None:
    asked = request("a", sys.executable, "-I", "-c", GREEDY, limits=Limits(memory_bytes=64 * MIB))

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            end = (await here.runs_to_its_end(asked)).exit
            assert end.signal == signal.SIGKILL
            assert end.shortage is not None
            assert end.shortage.limit_bytes == 64 * MIB
            assert 60 * MIB < end.shortage.used_bytes <= 64 * MIB
            assert below(limiting) == []

    played(story)


def test_a_shell_that_goes_on_without_its_command_ran_out_of_memory_too(tmp_path: Path, limiting: Limiting) -> None:
    asked = script("a", f"{sys.executable} -I -c '{GREEDY}'; exit 9", limits=Limits(memory_bytes=64 * MIB))

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            end = (await here.runs_to_its_end(asked)).exit
            assert end.shortage is not None
            assert end.shortage.limit_bytes == 64 * MIB

    played(story)


def test_who_keeps_to_its_memory_notices_nothing(tmp_path: Path, limiting: Limiting) -> None:
    asked = request("a", sys.executable, "-I", "-c", GREEDY, limits=Limits(memory_bytes=500 * MIB))

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            end = (await here.runs_to_its_end(asked)).exit
            assert (end.code, end.shortage) == (0, None)

    played(story)


def test_a_limit_in_which_nothing_can_start(tmp_path: Path, limiting: Limiting) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            ended = await here.runs_to_its_end(request("a", "true", limits=Limits(memory_bytes=4096)))
            assert (ended.exit.code, ended.exit.signal) == (None, signal.SIGKILL)
            assert ended.exit.shortage is not None
            await until(lambda: below(limiting) == [], "its groups are gone")

    played(story)


def test_what_is_asked_for_stands_in_its_groups_while_it_lives(tmp_path: Path, limiting: Limiting) -> None:
    asked = {
        "a": Limits(cpu_milli=2500),
        "b": Limits(cpu_milli=500, cpu_limit_milli=1500, memory_bytes=100 * MIB),
        "c": Limits(memory_bytes=200 * MIB),
    }
    if limiting.version == 1:
        files = ("cpu.shares", "cpu.cfs_quota_us", "memory.limit_in_bytes")
        expected = [["2560", "-1", ""], ["512", "150000", str(100 * MIB)], ["", "", str(200 * MIB)]]
    else:
        files = ("cpu.weight", "cpu.max", "memory.max")
        expected = [
            ["250", "max 100000", "max"],
            ["50", "150000 100000", str(100 * MIB)],
            ["100", "max 100000", str(200 * MIB)],
        ]

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            for name, limits in asked.items():
                here.keeper.spawn(request(name, "sleep", "1000", limits=limits))
                assert (await here.hears(Started, name)).limits_skipped == ""
            groups = [limiting.groups[file.split(".")[0]] for file in files]
            for name, values in zip(asked, expected, strict=True):
                found = [group / name / file for group, file in zip(groups, files, strict=True)]
                assert [path.read_text().strip() if path.exists() else "" for path in found] == values
            for name in asked:
                here.keeper.kill(name)
                await here.hears(Exited, name)
            assert below(limiting) == []

    played(story)


def test_who_asks_for_nothing_gets_no_group(tmp_path: Path, limiting: Limiting) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            assert (await here.runs_to_its_end(script("a", "cat /proc/self/cgroup"))).exit.code == 0
            assert here.log_of("a") == Path("/proc/self/cgroup").read_text()

    played(story)


def test_a_setting_that_cannot_be_made_is_said_and_the_replica_runs(tmp_path: Path, limiting: Limiting) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            await here.runs_to_its_end(request("a", "true", limits=Limits(memory_bytes=-7)))
            assert "Invalid argument" in (await here.hears(Started, "a")).limits_skipped
            assert (await here.hears(Exited, "a")).exit.code == 0

    played(story)


def fled(tmp_path: Path) -> str:
    """A daemon in a session of its own, whose parent is gone and whose environment does not say whose it is."""
    return f"setsid env -i sh -c 'sh -c \"echo \\$\\$ > {tmp_path}/fled; exec sleep 1000\" & exit'"


@pytest.mark.parametrize("scheduler_lives", [True, False])
def test_a_killed_supervisor_leaves_neither_daemons_nor_groups(
    tmp_path: Path, limiting: Limiting, *, scheduler_lives: bool
) -> None:
    text = f"{fled(tmp_path)}; echo $PPID > {tmp_path}/above; exec sleep 1000"

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            here.keeper.spawn(script("a", text, limits=Limits(cpu_milli=1000, memory_bytes=100 * MIB)))
            daemon, above = await number_in(tmp_path / "fled"), await number_in(tmp_path / "above")
            assert set(below(limiting)) == {"a"}
            if scheduler_lives:
                os.kill(above, signal.SIGKILL)
                await here.hears(Lost, "a")
            else:
                await here.keeper.close()
                os.kill(above, signal.SIGKILL)
                await until(lambda: not alive(above), "the supervisor is gone")
                assert alive(daemon)
        async with house(tmp_path / "runs", limiting=limiting_here(tmp_path)) as later:
            if not scheduler_lives:
                await later.keeper.adopt(["a"])
                await later.hears(Lost, "a")
            assert not alive(daemon)
            assert below(limiting) == []

    played(story)


def test_version_2_ends_daemons_at_once_and_says_what_it_cannot_keep(tmp_path: Path) -> None:
    """In the kernel's own tree of version 2, which may have no controllers beside those of version 1."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    top = next((Path(line.split()[4]) for line in lines if " - cgroup2 " in line), None)
    if top is None or not os.access(top, os.W_OK):
        pytest.skip("no tree of version 2 in which a group may be made")
    group = top / f"optimus-test-{os.getpid()}"
    group.mkdir()
    limiting = Limiting(2, {"cpu": group})
    text = f"{fled(tmp_path)}; echo $PPID > {tmp_path}/above; exec sleep 1000"

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            here.keeper.spawn(script("a", text, limits=Limits(cpu_milli=1000)))
            daemon, above = await number_in(tmp_path / "fled"), await number_in(tmp_path / "above")
            assert str(daemon) in (group / "a" / "cgroup.procs").read_text().split()
            assert (await here.hears(Started, "a")).limits_skipped == "cpu.weight: No such file or directory"
            os.kill(above, signal.SIGKILL)
            await here.hears(Lost, "a")
            assert not alive(daemon)
            assert below(limiting) == []

    played(story)
    assert not group.exists()


def test_a_supervisor_killed_after_the_exit_was_written_leaves_nothing_either(
    tmp_path: Path, limiting: Limiting
) -> None:
    text = f"{fled(tmp_path)}; echo $PPID > {tmp_path}/above; exec sleep 1000"

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            here.keeper.spawn(script("a", text, limits=Limits(memory_bytes=100 * MIB)))
            daemon, above = await number_in(tmp_path / "fled"), await number_in(tmp_path / "above")
            await here.hears(Started, "a")
            recording.record_exit(os.fsencode(tmp_path / "runs" / "a"), {"code": 3, "ended_ms": 5}, durable=False)
            os.kill(above, signal.SIGKILL)
            assert (await here.hears(Exited, "a")).exit.code == 3
            assert not alive(daemon)
            assert below(limiting) == []

    played(story)


def test_a_record_cannot_name_groups_of_others(tmp_path: Path, limiting: Limiting) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            for name in ("other", "a"):
                here.keeper.spawn(
                    script(name, f"echo $PPID > {tmp_path}/{name}; exec sleep 1000", limits=Limits(cpu_milli=100))
                )
                await here.hears(Started, name)
            above = await number_in(tmp_path / "a")
            started = tmp_path / "runs" / "a" / "started"
            started.write_text(
                started.read_text().replace(f"{limiting.groups['cpu']}/a", f"{limiting.groups['cpu']}/other")
            )
            os.kill(above, signal.SIGKILL)
            await here.hears(Lost, "a")
            assert [type(event) for event in here.of("other")] == [Started]

    played(story)


def test_groups_of_those_that_died_before_they_were_on_record_are_removed(tmp_path: Path, limiting: Limiting) -> None:
    for group in limiting.groups.values():
        (group / "ghost").mkdir(exist_ok=True)

    async def story() -> None:
        async with house(tmp_path / "runs", limiting=limiting) as here:
            await here.keeper.adopt([])
            assert below(limiting) == []

    played(story)


def test_groups_that_an_earlier_scheduler_made_elsewhere_are_removed(tmp_path: Path, limiting: Limiting) -> None:
    name = limiting.groups["memory"].name
    elsewhere = limiting.groups["memory"].parent / f"elsewhere-{os.getpid()}"
    (elsewhere / name / "ghost").mkdir(parents=True)
    try:
        with (tmp_path / "cgroups").open("a") as file:
            file.write(f"{elsewhere / name}\n{tmp_path}\n/no/such/{name}\n")
        again = limiting_here(tmp_path)
        assert again.former == (elsewhere / name,)
        again.clear(set())
        assert not (elsewhere / name).exists()
        assert limiting_here(tmp_path).former == ()
    finally:
        elsewhere.rmdir()
