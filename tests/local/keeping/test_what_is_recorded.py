"""What a replica leaves in its folder: its output, how it ended, and why it could not begin."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from optimus.drivers.local.keeping.events import Request, Started
from optimus.drivers.local.keeping.recording import as_json
from tests.local.keeping.keeping_house import house, played, record_of, request, script


def test_output_and_exit_code(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            ended = await here.runs_to_its_end(script("a", "echo out; echo err >&2; exit 7"))
            assert (ended.exit.code, ended.exit.signal, ended.exit.error) == (7, None, None)
            assert ended.exit.max_rss_bytes > 0
            assert here.log_of("a") == "out\nerr\n"
            assert [type(event).__name__ for event in here.told] == ["Started", "Exited"]
            files = {path.name for path in (tmp_path / "runs" / "a").iterdir()}
            assert files == {"log", "started", "exit"}
            record = record_of(tmp_path / "runs" / "a")
            assert isinstance(here.told[0], Started)
            assert (record["pid"], record["wall_ms"]) == (here.told[0].pid, here.told[0].wall_ms)

    played(story)


def test_a_death_by_signal(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            ended = await here.runs_to_its_end(script("a", "kill -SEGV $$"))
            assert (ended.exit.code, ended.exit.signal) == (None, signal.SIGSEGV)

    played(story)


def test_why_user_code_could_not_be_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            for attempt, asked, code, error in [
                ("a", request("a", "no-such-command"), 127, "command not found: no-such-command"),
                ("b", request("b", str(plain)), 126, f"{plain} cannot be run: Permission denied"),
                ("c", request("c", "true", workdir="/no/such"), 126, "workdir /no/such: No such file or directory"),
            ]:
                ended = await here.runs_to_its_end(asked)
                assert (ended.exit.code, ended.exit.error) == (code, error), attempt

    played(story)


def test_a_replica_gets_its_environment_its_folder_and_nothing_of_ours(tmp_path: Path) -> None:
    """The whole environment as asked; signals, mask, open files and session as if nobody had been before it."""
    text = (
        "import os, signal, sys\n"
        "print(os.getcwd(), os.environ['NAME'], 'HOME' in os.environ, os.getsid(0) == os.getpid())\n"
        "print([n for n in (1, 2, 15) if signal.getsignal(n) == signal.SIG_IGN], signal.pthread_sigmask(0, ()))\n"
        "print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')), sys.stdin.read() == '')\n"
    )

    async def story() -> None:
        async with house(tmp_path / "runs") as here:
            asked = request("a", sys.executable, "-I", "-c", text, workdir=str(tmp_path), NAME="tab\tüé\nline")
            assert (await here.runs_to_its_end(asked)).exit.code == 0, here.log_of("a")
            assert here.log_of("a") == f"{tmp_path} tab\tüé\nline False True\n[] set()\n['0', '1', '2'] 4 True\n"

    played(story)


def test_an_environment_larger_than_a_packet(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as here:
            big = {f"V{number}": "x" * 100_000 for number in range(8)}
            ended = await here.runs_to_its_end(Request("a", ("/bin/sh", "-c", "test ${#V7} = 100000"), big, "/"))
            assert ended.exit.code == 0

    played(story)


@pytest.mark.parametrize("attempt", ["", "..", "a/b", ".hidden", "a\0", "x" * 201])
def test_names_that_could_leave_the_folder_of_runs_are_refused(attempt: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an attempt"):
        Request(attempt, ("true",), {}, "/")


@pytest.mark.parametrize("text", ["plain", 'quote " and \\', "line\nbreak\ttab", "grüße 🙂", "\udcff raw byte", ""])
def test_any_error_text_is_read_back_from_a_record(text: str) -> None:
    fields: dict[str, int | str | None] = {"error": text, "code": None, "pid": 12, "never": True}
    assert json.loads(as_json(fields)) == fields


def test_the_nursery_imports_little(tmp_path: Path) -> None:
    """It is copied for every replica; what this package or a parent of it imports would be, too."""
    text = (
        f"import sys; sys.path.append({str(Path(__file__).parents[3] / 'src')!r})\n"
        "import optimus.drivers.local.keeping.nursery\nprint(*sys.modules)"
    )
    listed = subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "dataclasses", "inspect", "json", "logging", "msgspec", "numpy", "pathlib", "re", "typing"}
    assert heavy & set(listed.stdout.split()) == set()
