"""How far a job is and when it ends: from what it says, and from nothing else."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from optimus.client.progress import Progress, progress_of
from optimus.inside.status import Status
from tests.top.pictures import NOW_MS, job, reports


def test_a_job_that_reports_has_an_end() -> None:
    told = progress_of(job("train", progress=reports(30, 120)), NOW_MS)
    assert told == Progress(fraction=0.25, step=30, total=120, left_ms=45_000)


def test_the_end_comes_closer_between_two_reports() -> None:
    told = progress_of(job("train", progress=reports(30, 120)), NOW_MS + 15_000)
    assert told.left_ms == 30_000


def test_an_end_that_has_passed_is_not_in_the_past() -> None:
    assert progress_of(job("train", progress=reports(119, 120)), NOW_MS + 20_000).left_ms == 0


def test_one_that_has_said_nothing_for_long_is_quiet_and_has_no_end() -> None:
    told = progress_of(job("train", progress=reports(30, 120)), NOW_MS + 90_000)
    assert (told.left_ms, told.quiet_ms) == (None, 90_000)


def test_one_whose_steps_are_long_is_not_quiet_during_a_step() -> None:
    slow = reports(3, 12, steps_per_second=1 / 600, seconds_left=5400)
    told = progress_of(job("train", progress=slow), NOW_MS + 900_000)
    assert (told.left_ms, told.quiet_ms) == (4_500_000, 0)


@pytest.mark.parametrize("phase", ["Pending", "Preempted", "Suspended", "Checkpointing", "Failed"])
def test_one_that_does_not_run_has_no_end_but_what_it_has_done(phase: str) -> None:
    told = progress_of(job("train", phase=phase, progress=reports(30, 120)), NOW_MS)
    assert (told.fraction, told.left_ms) == (0.25, None)


def test_one_that_has_succeeded_is_done_whatever_it_said_last() -> None:
    told = progress_of(job("train", phase="Succeeded", progress=reports(117, 120)), NOW_MS)
    assert (told.fraction, told.left_ms) == (1.0, None)
    assert told.step is None, "100% and 117 of 120 are not said beside each other"
    told = progress_of(job("train", phase="Succeeded", progress=reports(120, 120)), NOW_MS)
    assert (told.fraction, told.step, told.total) == (1.0, 120, 120)


def test_what_an_earlier_attempt_said_is_no_end() -> None:
    assert progress_of(job("train", attempt=2, progress=reports(30, 120)), NOW_MS).left_ms is None


def test_one_that_says_nothing_has_neither() -> None:
    assert progress_of(job("train"), NOW_MS) == Progress()


def test_of_an_array_the_parts_that_succeeded_count() -> None:
    array = job("sweep", counts={"Succeeded": 3, "Running": 1})
    assert progress_of(array, NOW_MS) == Progress(fraction=0.75, step=3, total=4)


def test_those_who_write_the_file_themselves_need_not_say_what_is_left() -> None:
    said = reports(30, 120)
    del said["seconds_left"]
    assert progress_of(job("train", progress=said), NOW_MS).left_ms == 45_000


def test_a_rate_that_counts_steps_of_loops_inside_is_not_used() -> None:
    said = reports(1, 10, fraction=0.15)
    del said["seconds_left"]
    assert progress_of(job("train", progress=said), NOW_MS).left_ms is None


NONSENSE: list[Any] = [
    "half", 7, [], {"fraction": "0.5"}, {"fraction": -1, "step": -3, "total": 0}, {"fraction": 1e400},
    {"fraction": True, "step": True}, {"step": 10**400, "total": 1}, {"step": 5, "total": 0, "seconds_left": 1e300},
    {"fraction": 0.5, "seconds_left": None, "updated_ms": "now"}, {"phase": {}, "fraction": float("nan")},
    {"step": 1, "total": 3, "fraction": 1 / 3, "steps_per_second": 1e-320, "updated_ms": NOW_MS},
]  # fmt: skip


@pytest.mark.parametrize("said", NONSENSE, ids=str)
def test_a_job_may_say_what_it_likes(said: Any) -> None:
    told = progress_of(job("train", progress=said), NOW_MS)
    assert told.fraction is None or 0 <= told.fraction <= 1
    assert told.left_ms is None


def test_a_loop_foresees_its_end_from_what_it_does_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on at 0.6 of the way, and its steps count ten times as much inside as outside."""
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    status = Status()
    status.begin("epochs", 10)
    for second in range(6):
        status.progress(6, 0.6 + 0.02 * second, 10 * second, clock + second)
    said = json.loads(status.line())
    assert said["seconds_left"] == pytest.approx((1 - 0.7) / 0.02, rel=0.01)


def test_a_loop_that_has_done_nothing_yet_foresees_nothing() -> None:
    status = Status()
    status.begin("epochs", 10)
    status.progress(6, 0.6, 0, time.monotonic())
    assert json.loads(status.line())["seconds_left"] is None
