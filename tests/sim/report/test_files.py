"""What a program reads: the same input gives the same bytes, and every field is documented."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from optimus.drivers.sim.measuring import Provenance, study
from optimus.drivers.sim.report import as_json, jobs_csv, metrics_csv
from optimus.drivers.sim.report.files import JOB_FIELDS, flat
from tests.sim.measuring.worlds import FOUR_GPUS, measured
from tests.sim.report.stories import JOBS, small_study

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def test_json_tells_everything_in_plain_words() -> None:
    told = json.loads(as_json(small_study()))
    assert told["reference"] == "in order"
    assert [m["scheduler"] for m in told["metrics"]] == ["in order", "short first"]
    assert told["metrics"][1]["jctMs"]["average"] == round(140 / 3 * 60_000, 6)
    assert told["comparisons"][0]["allJobs"] == {
        "name": "all",
        "won": 2,
        "lost": 1,
        "even": 0,
        "meanMs": -1_000_000.0,
        "relative": round(-50 / 190, 6),
    }
    assert told["provenance"]["problems"] == ["jobs.csv:3: left out: no duration"]
    assert told["cluster"]["shapes"] == ["1 × 4 gpu"]


def test_the_same_study_gives_the_same_bytes() -> None:
    for write in (as_json, metrics_csv, jobs_csv):
        assert write(small_study()) == write(small_study())


def test_metrics_are_one_number_per_row() -> None:
    rows = list(csv.DictReader(io.StringIO(metrics_csv(small_study()))))
    found = {(row["scheduler"], row["metric"]): row["value"] for row in rows}
    assert found["in order", "finished"] == "3"
    assert found["in order", "queues.speech.gpuHours"] == str(round((60 + 10) / 60, 6))
    assert found["in order", "decisionMs"] == ""


def test_jobs_are_one_row_each_also_those_that_did_not_finish() -> None:
    told = study([[measured("stuck", JOBS, {"first": [(0, 60)]})]], FOUR_GPUS, Provenance(trace="x"))
    rows = list(csv.DictReader(io.StringIO(jobs_csv(told))))
    assert tuple(rows[0]) == JOB_FIELDS
    assert [(row["job"], row["state"], row["jctMs"]) for row in rows] == [
        ("first", "finished", "3600000"),
        ("second", "waiting", ""),
        ("third", "waiting", ""),
    ]
    assert rows[1]["waitMs"] == "3600000"


def names(value: Any) -> set[str]:
    """Every key of the JSON; names of sizes and queues are values, not fields."""
    if isinstance(value, dict):
        keys = {key for key in value if not re.match(r"[\d>]", key)}
        return keys.union(*(names(inner) for inner in value.values()))
    return set().union(*(names(inner) for inner in value)) if isinstance(value, list) else set()


def test_every_field_is_in_the_reference() -> None:
    documented = set(re.findall(r"`([A-Za-z0-9]+)`", REFERENCE.read_text(encoding="utf-8")))
    written = names(json.loads(as_json(small_study()))) | set(JOB_FIELDS)
    assert written - documented == set()


def test_paths_of_nested_values() -> None:
    assert list(flat({"a": {"b": 1}, "q": [{"queue": "x", "n": None}]})) == [
        ("a.b", 1),
        ("q.x.queue", "x"),
        ("q.x.n", ""),
    ]
