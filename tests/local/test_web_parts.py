"""The parts of the web process by themselves: the mirror's line, and logs of any length."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from optimus.drivers.local import line
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.running import Running
from optimus.drivers.local.web import logs
from optimus.drivers.local.web.mirror import Mirror


async def engine(socket: Path, *frames: line.Frame) -> asyncio.Server:
    """One that tells everything and then, in the same breath, the rest."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = await line.received(reader)
        assert isinstance(call, line.Call)
        everything = {"jobs": {"a/b": {"phase": "Running"}}, "version": 1}
        writer.write(b"".join(map(line.packed, (line.Answer(call.number, everything), *frames))))
        await reader.read()
        writer.close()

    return await asyncio.start_unix_server(serve, str(socket))


def test_news_in_the_same_breath_as_everything_are_not_lost(tmp_path: Path) -> None:
    async def story() -> object:
        news = line.News(2, {"a/b": {"phase": "Succeeded"}})
        server = await engine(tmp_path / "s", news)
        copy = Mirror(tmp_path / "s")
        running = asyncio.create_task(copy.run())
        await asyncio.wait_for(copy.connected.wait(), 20)
        for _ in range(50):
            await asyncio.sleep(0.01)
            if copy.shown["version"] == 2:
                break
        phase = copy.shown["jobs"]["a/b"]["phase"]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        server.close()
        await asyncio.sleep(0.05)  # both ends are closed
        return phase

    assert asyncio.run(story()) == "Succeeded"


def test_a_question_that_fails_inside_costs_nobody_the_line(caplog: pytest.LogCaptureFixture) -> None:
    class Desk:
        def answer(self, verb: str, arguments: dict[str, object]) -> object:
            if verb == "no":
                raise RefusedError("missing", "not there")
            raise ZeroDivisionError("a number")

    running = Running.__new__(Running)
    running.desk = Desk()  # type: ignore[assignment]
    assert running._answer(line.Call(1, "no")) == line.Answer(1, None, "not there", "missing")
    answer = running._answer(line.Call(2, "document"))
    assert (answer.code, answer.number) == ("internal", 2) and "ZeroDivisionError" in answer.error
    assert "document failed" in caplog.text


def read(
    runs: Path, *, follow: bool = False, tail: int | None = None, over: Callable[[], bool] = lambda: True
) -> list[str]:
    async def story() -> list[str]:
        found = logs.lines(runs, "u", logs.Chosen(), follow=follow, tail=tail, over=over)
        return [f"{one.number} {one.text}" async for several in found for one in several]

    return asyncio.run(asyncio.wait_for(story(), 30))


def wrote(runs: Path, content: bytes, start: str = "u-1-worker-0-1") -> Path:
    (runs / start).mkdir(exist_ok=True)
    (runs / start / "log").write_bytes(content)
    return runs / start / "log"


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("tail", [0, 1, 3, 1000])
def test_the_tail_is_that_of_the_whole_log(tmp_path: Path, tail: int, follow: bool) -> None:
    lines = [f"{number} {'x' * 3000}" for number in range(1, 400)]
    wrote(tmp_path, ("\n".join(lines) + "\n").encode())
    expected = [f"{number} {number} {'x' * 3000}" for number in range(1, 400)]
    assert read(tmp_path, tail=tail, follow=follow) == expected[len(expected) - min(tail, 399) :]


def test_the_tail_is_that_of_each_replica_over_all_its_starts(tmp_path: Path) -> None:
    for attempt, lines in enumerate(("a\nb\nc\n", "d\n", "e\n"), 1):
        wrote(tmp_path, lines.encode(), f"u-{attempt}-worker-0-{attempt}0")
        wrote(tmp_path, lines.upper().encode(), f"u-{attempt}-worker-1-{attempt}1")
    assert read(tmp_path, tail=3) == ["3 c", "1 d", "1 e", "3 C", "1 D", "1 E"]
    assert read(tmp_path, tail=1, follow=True) == ["1 e", "1 E"]
    assert len(read(tmp_path)) == 10


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_longer_than_any_piece_is_one_line(tmp_path: Path, end: str) -> None:
    wrote(tmp_path, f"first\n{'y' * 1_000_000}\nlast{end}".encode())
    assert [len(one) for one in read(tmp_path)] == [7, 1_000_002, 6]
    wrote(tmp_path, b"z" * 700_000)
    assert [len(one) for one in read(tmp_path)] == [700_002]


def test_empty_lines_and_empty_logs(tmp_path: Path) -> None:
    assert read(tmp_path) == []
    wrote(tmp_path, b"")
    assert read(tmp_path) == []
    wrote(tmp_path, b"\n\na\n\n")
    assert read(tmp_path) == ["1 ", "2 ", "3 a", "4 "]


def test_what_comes_while_it_is_followed_is_told_once(tmp_path: Path) -> None:
    file = wrote(tmp_path, b"a\nhalf")
    looks = iter([False, False, False, True, True, True, True])

    def over() -> bool:
        now = next(looks)
        if not now:
            with file.open("ab") as more:
                more.write(b" and half\nnext")
        return now

    assert read(tmp_path, follow=True, over=over) == [
        "1 a", "2 half and half", "3 next and half", "4 next and half", "5 next"
    ]  # fmt: skip


def test_starts_that_are_cleared_away_meanwhile_are_no_fault(tmp_path: Path) -> None:
    wrote(tmp_path, b"old\n")
    os.symlink("nowhere", tmp_path / "u-2-worker-0-2")
    assert read(tmp_path) == ["1 old"]
