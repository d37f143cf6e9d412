"""Millions of lines are taken together, and nobody can tell from what is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimus.cli import following
from optimus.client import Unreachable
from optimus.client.waiting import lines
from optimus.drivers.local.web import logs
from tests.local.machines import Up

PIECES = st.sampled_from([b"a", b"\n", b"\n\n", "ü€".encode(), b"\xff\n", b"\0" * 70, b"word ", b"\r\n", b"x" * 50])


def records(runs: Path, *, together: bool, tail: int | None = None) -> list[logs.Line]:
    async def story() -> list[logs.Line]:
        found = logs.lines(runs, "u", logs.Chosen(), follow=False, tail=tail, over=lambda: True, together=together)
        return [one async for several in found for one in several]

    return asyncio.run(story())


def wrote(runs: Path, content: bytes, start: str = "u-1-worker-0-1") -> None:
    (runs / start).mkdir(parents=True, exist_ok=True)
    (runs / start / "log").write_bytes(content)


def apart(found: list[logs.Line]) -> list[tuple[int, str]]:
    return [pair for one in found for pair in enumerate(one.text.split("\n"), one.number)]


@given(pieces=st.lists(PIECES, max_size=40), chunk=st.integers(1, 90), tail=st.sampled_from([None, 0, 1, 3]))
def test_together_or_one_by_one_they_are_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], chunk: int, tail: int | None
) -> None:
    runs = tmp_path_factory.mktemp("runs")
    wrote(runs, b"".join(pieces))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHUNK", chunk)
        single, together = records(runs, together=False, tail=tail), records(runs, together=True, tail=tail)
    assert apart(together) == [(one.number, one.text) for one in single]
    assert len(together) <= len(single)
    if together:
        assert (together[0].at, together[-1].end) == (single[0].at, single[-1].end)


class BreaksOff:
    """A stand-in for the connection: each stream has one record more than the last before it breaks off, and what is
    read at a time is never the same."""

    address = "here"

    def __init__(self, runs: Path) -> None:
        self.runs, self.times = runs, 0

    def look_again(self) -> None:
        pass

    def get(self, _: str) -> dict[str, bool]:
        return {"final": True}

    def lines(self, _: str, **__: object) -> Iterator[dict[str, Any]]:
        self.times += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logs, "CHUNK", 7 + 13 * self.times)
            found = records(self.runs, together=True)
        yield from [msgspec.to_builtins(one) for one in found[: self.times]]
        if self.times < len(found):
            raise Unreachable("it broke off")


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n\n"])
def test_who_is_cut_off_in_the_middle_of_lines_that_came_together_sees_each_once(
    tmp_path: Path, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optimus.client.waiting.time.sleep", lambda _seconds: None)
    content = "\n".join(f"{number} ü" + "\n" * (number % 7 == 0) for number in range(200)).encode() + end
    wrote(tmp_path, content)
    broken: Any = BreaksOff(tmp_path)
    found = lines(broken, "default/one", follow=True, tail=None, replica="")
    texts = [text for line in found for text in line["text"].split("\n")]
    assert "\n".join(texts) == content.decode().removesuffix("\n") and broken.times > 3


class LosesTheTail:
    """A stand-in for the connection: the first stream is asked for a tail and breaks off, the next one tells it all."""

    def __init__(self, runs: Path) -> None:
        self.runs, self.tails = runs, list[int | None]()

    def look_again(self) -> None:
        pass

    def get(self, _: str) -> dict[str, bool]:
        return {"final": True}

    def lines(self, _: str, *, tail: int | None, **__: object) -> Iterator[dict[str, Any]]:
        self.tails.append(tail)
        yield from [msgspec.to_builtins(one) for one in records(self.runs, together=True, tail=tail)]
        if len(self.tails) == 1:
            raise Unreachable("it broke off")


def test_who_is_cut_off_after_a_tail_does_not_hear_of_earlier_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optimus.client.waiting.time.sleep", lambda _seconds: None)
    for attempt in (1, 2):
        wrote(tmp_path, b"%d\n" % attempt, f"u-{attempt}-worker-0-{attempt}")
    lost: Any = LosesTheTail(tmp_path)
    found = lines(lost, "default/one", follow=True, tail=1, replica="")
    assert ([line["text"] for line in found], lost.tails) == (["2"], [1, None])


def test_many_lines_are_few_records(tmp_path: Path) -> None:
    wrote(tmp_path, b"".join(b"%d\n" % number for number in range(300_000)))
    found = records(tmp_path, together=True)
    assert len(found) < 20 and len(apart(found)) == 300_000


def test_names_and_colours_of_replicas_stand_before_each_of_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    names = following.Names()
    first, second = names.before("worker-0"), names.before("worker-10")
    assert "\x1b[36mworker-0\x1b[0m" in first and "\x1b[35mworker-10\x1b[0m" in second
    assert "\x1b[36mworker-0 \x1b[0m" in names.before("worker-0"), "as wide as the widest so far"
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR")
    assert following.Names().before("worker-0") == "worker-0 │ "


def test_lines_of_two_replicas_that_come_together_all_have_their_names(tmp_path: Path) -> None:
    up = Up(tmp_path / "store", "--nodes", "1", "--gpus", "2")
    try:
        shown = up.cli("run", "--name", "two", "--replicas", "2", "--", "seq", "5000")
        again = up.cli("logs", "two")
        last = up.cli("logs", "two", "--tail", "2", "--replica", "worker-1").stdout
    finally:
        up.end()
    for text in (shown.stdout, again.stdout):
        written = text.splitlines()
        for replica in ("worker-0", "worker-1"):
            mine = [line for line in written if line.startswith(f"{replica} │ ")]
            assert mine == [f"{replica} │ {number}" for number in range(1, 5001)]
    assert last == "worker-1 │ 4999\nworker-1 │ 5000\n"
