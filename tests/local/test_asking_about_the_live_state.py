"""What-if, forecast and explain on a scheduler that runs: on a copy, with what its journal knows and its jobs say."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from optimus.drivers.local.journaling import FOLDER
from optimus.drivers.sim.forecasting.arrivals import newcomers
from optimus.drivers.sim.present import of_copy, of_moment
from optimus.drivers.sim.standing import read_state
from optimus.engine.copying import read_copy
from optimus.engine.engine import Engine
from optimus.engine.journal import Journal, JournalWriter
from optimus.engine.journal_past import past_of, read_past, write_past
from optimus.model.observations import WorkloadSeen
from optimus.model.workloads import Group, Request, Role, Workload
from tests.local.machines import Up, until

HOUR_MS = 3_600_000
STEPS = """
import optimus, sys, time
for step in optimus.steps(int(sys.argv[1])):
    time.sleep(0.1)
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "4")
    yield machine
    machine.end()


def test_what_if_shows_what_more_nodes_would_do_and_does_nothing(up: Up) -> None:
    for name in ("first", "second"):
        up.cli("run", "-d", "--name", name, "--gpus", "4", "--", "sleep", "600")
    up.reaches("first", "Running")
    told = up.cli("what-if", "--add-nodes", "1", "--queue", "default.guarantee=2", "--samples", "3")
    assert told.returncode == 0, told.stderr
    assert "1 more node with 4 virtual each, like node-0" in told.stdout
    assert "guarantee of queue default: 2 GPUs instead of 0 GPUs" in told.stdout
    assert "1 gains" in told.stdout and "second" in told.stdout
    assert up.phase("second") == "Pending" and len(up.api.get("/v1/nodes")) == 1

    def gains(*world: str) -> list[tuple[str, bool, bool]]:
        ran = up.cli("what-if", *world, "--add-nodes", "1", "--samples", "3", "-o", "json")
        assert ran.returncode == 0, ran.stderr
        effect = json.loads(ran.stdout)["effect"]
        return [(one["workload"], one["start"]["changedMs"] == 0, one["queue"] == "default") for one in effect["moved"]]

    journal = str(up.folder / FOLDER)
    assert gains() == gains(journal, "--ahead") == [("default/second", True, True)]


def test_what_is_asked_about_is_what_the_journal_leads_to(up: Up) -> None:
    up.cli("run", "-d", "--name", "first", "--array", "6", "--", "sleep", "600")
    until(lambda: up.job("first")["counts"].get("Running") == 4, "four of them run")
    copied = of_copy(read_copy(up.api.raw("/v1/state")), "live")
    recorded = of_moment(Journal(up.folder / FOLDER).seek(now_ms=copied.now_ms), "journal")
    assert read_state(copied.state) == read_state(recorded.state)
    assert (copied.policy, copied.seed, copied.budget) == (recorded.policy, recorded.seed, recorded.budget)


def test_work_that_says_how_far_it_is_makes_a_sharp_forecast(up: Up, tmp_path: Path) -> None:
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    up.cli("run", "-d", "--name", "train", "--gpus", "4", "--", sys.executable, str(script), "6000")
    up.cli("run", "-d", "--name", "next", "--gpus", "4", "--", "true")
    until(lambda: read_copy(up.api.raw("/v1/state")).remaining, "it has said so")
    told = json.loads(up.cli("forecast", "-o", "json").stdout)
    (row,) = told["workloads"]
    assert row["name"] == "default/next"
    assert 5 * 60_000 < row["p50"]["inMs"] <= row["p90"]["inMs"] < 60 * 60_000, "ten minutes, in its own words"
    page = up.cli("explain", "next")
    assert "run times of what runs: 1 progress" in page.stdout, page.stdout + page.stderr
    up.cli("cancel", "train")
    until(lambda: not read_copy(up.api.raw("/v1/state")).remaining, "who has left says nothing any more")


def test_bad_questions_are_refused_in_words(up: Up, tmp_path: Path) -> None:
    def refused(code: int, *words: str) -> str:
        ran = up.cli(*words)
        assert ran.returncode == code and "Traceback" not in ran.stderr, ran.stdout + ran.stderr
        return " ".join(ran.stderr.split())

    nobody = ("--address", "http://127.0.0.1:9")
    for verb in (("what-if", "--add-nodes", "2"), ("forecast",)):
        assert "nobody answers at http://127.0.0.1:9" in refused(1, *verb, *nobody)
    assert "no workload in it, so nothing could change" in refused(1, "what-if", "--add-nodes", "2")
    assert "nothing is changed" in refused(2, "what-if")
    assert "there is no queue defalt; did you mean default?" in refused(2, "what-if", "--queue", "defalt.limit=2")
    assert "GPU must be a number: lots" in refused(2, "what-if", "--queue", "default.limit=lots")
    for nonsense in ("0", "-1", "x8", "2x", "two"):
        assert "write how many, or nodes x GPUs" in refused(2, "what-if", f"--add-nodes={nonsense}")
    assert "there is no policy 'nonsense'" in refused(2, "what-if", "--policy", "nonsense")
    assert "there is no node nowhere" in refused(2, "what-if", "--remove-node", "nowhere")
    assert "needs a journal" in refused(2, "what-if", "--add-nodes", "2", "--at", "14:20")
    assert "needs a journal" in refused(2, "forecast", "--check", "3")
    assert "Nothing waits" in up.cli("forecast").stdout


# -- newcomers --------------------------------------------------------------------------------------------------


def workload(name: str, at_ms: int, family: str = "") -> Workload:
    gang = Group(roles=(Role(name="worker", min=1, max=1, request=Request(gpu_count=1)),))
    return Workload(id=f"default/{name}", queue="default", gang=gang, submitted_ms=at_ms, family=family)


def recorded(folder: Path, hours: int, now_ms: int) -> None:
    """A journal in which one comes in every hour; two more will come when it is asked."""
    engine = Engine()
    with JournalWriter(folder, dump=engine.dump) as writer:
        engine.keep_journal(writer, now_ms - hours * HOUR_MS)
        for hour in range(hours, 0, -1):
            at_ms = now_ms - hour * HOUR_MS + 1
            engine.step([WorkloadSeen(workload(f"came-{hour}", at_ms))], at_ms)


@pytest.mark.parametrize(("hours", "said"), [(7, "1.3 newcomers an hour"), (5, "nobody else comes")])
def test_newcomers_are_drawn_where_six_hours_are_known(hours: int, said: str, tmp_path: Path) -> None:
    recorded(tmp_path / "store" / FOLDER, hours, time.time_ns() // 1_000_000)
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "4")
    try:
        for name in ("first", "second"):
            machine.cli("run", "-d", "--name", name, "--gpus", "4", "--", "sleep", "600")
        machine.reaches("first", "Running")
        page = machine.cli("explain", "second", "--samples", "2", "--within", "10m")
        assert said in " ".join(page.stdout.split()), page.stdout + page.stderr
    finally:
        machine.end()


def test_whoever_asks_from_afar_draws_the_same_newcomers(tmp_path: Path) -> None:
    now_ms = 2_000 * HOUR_MS
    recorded(tmp_path, 9, now_ms)
    here = past_of(tmp_path, now_ms, since_ms=now_ms - 24 * HOUR_MS)
    assert here == past_of(tmp_path, now_ms) and len(here.arrived) == 9
    afar = read_past(write_past(here))
    drawn = [newcomers(past, now_ms, now_ms + 24 * HOUR_MS, 0, 0) for past in (here, afar)]
    assert drawn[0] == drawn[1] != []
    assert (afar.window_ms, afar.errors) == (here.window_ms, here.errors)


def test_an_array_is_told_in_one_line(tmp_path: Path) -> None:
    now_ms = 2_000 * HOUR_MS
    past = structs.replace(
        past_of(tmp_path, now_ms), arrived=tuple(workload(f"many/{n}", now_ms, "many") for n in range(10_000))
    )
    assert len(write_past(past)) < 200_000
    assert read_past(write_past(past)).arrived[9_999].family == "many"
    with pytest.raises(ValueError, match="use the version that runs the scheduler"):
        read_past(msgspec.msgpack.encode({"kinds": 1}))
