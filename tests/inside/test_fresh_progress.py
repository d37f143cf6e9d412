"""What a job says of its steps is as fresh as the numbers beside it, whoever makes it speak."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import optimus
from optimus.inside import loops, own_loops, status
from optimus.inside.status import STATUS


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    pretended = SimpleNamespace(monotonic=lambda: made.now, time_ns=time.time_ns)
    for module in (loops, own_loops, status):
        monkeypatch.setattr(module, "time", pretended)
    return made


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    file = tmp_path / "status.json"
    monkeypatch.setenv("OPTIMUS_STATUS_FILE", str(file))
    return lambda: json.loads(file.read_text(encoding="utf-8"))


def test_numbers_reported_after_the_slow_part_of_each_step_do_not_hold_its_progress_back(
    tmp_path: Path, clock: Clock, said: Callable[[], dict[str, Any]]
) -> None:
    for step in optimus.steps(10, folder=tmp_path):
        clock.passes(2.0)
        optimus.report(loss=step)
        assert (said()["metrics"], said()["step"], said()["fraction"]) == ({"loss": step}, step, step / 10)
        if step == 4:
            assert said()["steps_per_second"] == 0.5, "the one it is in is done in part, and not counted"
            assert said()["seconds_left"] == 10.0, "of the twelve from where this step began"
            assert said()["updated_ms"] - said()["reached_ms"] == pytest.approx(2_000, abs=2)
            assert said()["leaves_in_s"] > 0


def test_numbers_of_a_loop_inside_another_tell_how_far_both_are(
    clock: Clock, said: Callable[[], dict[str, Any]]
) -> None:
    for _ in optimus.steps(2, name="epochs"):
        for batch in optimus.steps(4, name="batches"):
            clock.passes(2.0)
            optimus.report(batch=batch)
    assert said()["step"] == 2
    for epoch in optimus.steps(2, name="more-epochs"):
        for batch in optimus.steps(4, name="batches"):
            clock.passes(2.0)
            optimus.report(batch=batch)
            assert said()["fraction"] == (epoch + batch / 4) / 2


def test_saying_that_one_has_saved_says_how_far_one_is(clock: Clock, said: Callable[[], dict[str, Any]]) -> None:
    for step in optimus.steps(3):
        clock.passes(0.4)
        optimus.checkpointed(step)
        assert said()["step"] == step


def test_a_loop_that_is_left_early_says_where(clock: Clock, said: Callable[[], dict[str, Any]]) -> None:
    for step in optimus.steps(9):
        clock.passes(0.1)
        if step == 6:
            break
    assert (said()["step"], said()["phase"]) == (6, "stopped")


def test_numbers_after_a_loop_are_of_no_loop(clock: Clock, said: Callable[[], dict[str, Any]]) -> None:
    list(optimus.steps(3))
    for step in range(5):
        clock.passes(2.0)
        optimus.report(step=step, total=5)
        assert said()["step"] == step
    assert STATUS.look is None


def test_a_fast_loop_that_reports_each_step_writes_once_a_second(
    clock: Clock, said: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    looks = 0
    monkeypatch.setattr(status, "replace", lambda _path, line: written.append(line))
    look = loops.Run.look

    def counted(run: loops.Run, now: float) -> None:
        nonlocal looks
        looks += 1
        look(run, now)

    monkeypatch.setattr(loops.Run, "look", counted)
    for step in optimus.steps(1_000):
        clock.passes(0.01)
        optimus.report(loss=step)
    assert len(written) <= 14 and looks <= 28, "twice a second: where it is due, and where a step ends after that"
