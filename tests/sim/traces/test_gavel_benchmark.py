"""The benchmark of the Gavel set-ups: it says what is missing, draws the same list every time, and judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import gavel
from benchmarks.gavel_lists import CONTINUOUS_JOBS, drawn, loaded
from tests.sim.traces.lists import written

RATES = """\
gpu_type,consolidated,job_type,scale_factor,steps_per_s
v100,1,LM (batch size 5),1,10.0
k80,1,LM (batch size 5),1,2.0
v100,1,LM (batch size 5),8,40.0
k80,1,LM (batch size 5),8,8.0
v100,1,A3C,1,1.0
k80,1,A3C,1,0.5
"""
DEBUG = """\
job_id,job_type,scale_factor,total_steps,priority_weight,slo,arrival_s
0,LM (batch size 5),1,36000,1.0,-1.0,0.0
1,A3C,1,3600,1.0,-1.0,0.0
"""


def test_missing_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gavel.main(["--traces", str(tmp_path)]) == 2
    assert "throughputs_simulation.csv[.gz] is missing" in capsys.readouterr().err


def test_the_continuous_list_is_always_the_same(tmp_path: Path) -> None:
    table = written(tmp_path, "throughputs_simulation.csv", RATES)
    once, again = (drawn(table, tmp_path / name).read_text() for name in ("a.csv", "b.csv"))
    assert once == again
    rows = [line.split(",") for line in once.splitlines()[1:]]
    assert len(rows) == CONTINUOUS_JOBS
    assert {row[2] for row in rows if row[1] == "A3C"} == {"1"}  # it was measured on one GPU only


def test_a_case_has_the_costs_of_its_artifact_unless_told_otherwise(tmp_path: Path) -> None:
    written(tmp_path, "gavel/throughputs_simulation.csv", RATES)
    written(tmp_path, "gavel/jobs_debug.csv", DEBUG)
    setup, jobs = loaded(tmp_path, "debug", tmp_path)
    assert (setup.interval_ms, len(setup.nodes), {job.restart_ms for job in jobs}) == (360_000, 2, {0})
    assert {job.restart_ms for job in loaded(tmp_path, "debug", tmp_path, 30_000)[1]} == {30_000}
    assert gavel.measure(tmp_path, None, ("debug", "las"))["average_s"] == 3600


def test_targets_are_judged() -> None:
    def row(average_s: float, p99_s: float = 10.0) -> gavel.Row:
        return {"average_s": average_s, "p99_s": p99_s}

    close = {("a", "las"): row(102), ("a", "sum"): row(98), ("b", "las"): row(100), ("b", "sum"): row(100)}
    reference = {name: {"las": 100.0, "sum": 100.0} for name in "ab"}
    assert [told["met"] for told in gavel.reproduced(close, reference)] == [True, True]
    assert [told["met"] for told in gavel.reproduced({**close, ("b", "sum"): row(96)}, reference)] == [True, False]
    beside = {("a", "las"): row(100), ("a", "las-filled"): row(90), ("a", "ours"): row(95)}
    (told,) = gavel.beside_las(beside)
    assert (told["met"], told["average_s_against_las"]) == (True, 0.95)
    assert not gavel.beside_las({**beside, ("a", "ours"): row(96)})[0]["met"]
