"""The record that programs read: its fields are a promise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from optimus.drivers.sim.outcome import Outcomes
from tests.cli.terminal import ROOT, optimus

STORY = ROOT / "examples" / "01-scenario-lend-and-take-back" / "story.yaml"

FIELDS = {
    "": "version ok scenarios",
    "scenarios": "name description files policy ok crash cycles workloads queues checked failures errors setAside",
    "scenarios.cycles": "number clock time atMs note events actions waiting conditions problems complete unreached",
    "scenarios.cycles.events": "kind subject text",
    "scenarios.cycles.actions": "kind workload text cause beneficiary replicas givenUp",
    "scenarios.cycles.actions.replicas": "role ordinal node devices devicesKnown gpuMilliPerDevice phase",
    "scenarios.cycles.actions.givenUp": "role ordinal node devices devicesKnown gpuMilliPerDevice phase",
    "scenarios.cycles.actions.cause": "code text facts",
    "scenarios.cycles.waiting": "workload reason reservation",
    "scenarios.cycles.waiting.reason": "code text facts",
    "scenarios.workloads": "name queue workloadClass priority state pool replicas reason cause reservation "
    "started grown shrunk moved evicted happened",
    "scenarios.workloads.replicas": "role ordinal node devices devicesKnown gpuMilliPerDevice phase",
    "scenarios.workloads.happened": "cycle clock time kind replicas cause beneficiary",
    "scenarios.queues": "queue parent pool resource guarantee limit share allocated demand",
}


def at(record: Any, path: str) -> list[dict[str, Any]]:
    """All objects at a path, through lists."""
    found = [record]
    for key in path.split(".") if path else ():
        found = [value for item in found if (value := item[key])]
        found = [inner for value in found for inner in (value if isinstance(value, list) else [value])]
    return found


@pytest.fixture(scope="module")
def record() -> Any:
    return optimus("scenario", "run", STORY, "-o", "json").json()


@pytest.mark.parametrize("path", FIELDS)
def test_fields_stay(record: Any, path: str) -> None:
    objects = at(record, path)
    assert objects, f"nothing at {path}"
    for found in objects:
        assert set(found) == set(FIELDS[path].split())


def test_it_reads_back_into_the_same_record(record: Any) -> None:
    again = msgspec.json.encode(msgspec.convert(record, Outcomes))
    assert msgspec.json.decode(again) == record


def test_it_tells_the_story(record: Any) -> None:
    assert record["version"] == 1
    told = record["scenarios"][0]
    workloads = {workload["name"]: workload for workload in told["workloads"]}
    tts = workloads["default/tts"]
    assert tts["state"] == "running" and tts["started"] == [1, 4] and tts["evicted"] == [2]
    evicted = next(event for event in tts["happened"] if event["kind"] == "evicted")
    assert evicted["cause"]["code"] == "Reclaimed" and evicted["beneficiary"] == "default/detector"
    assert (evicted["cycle"], evicted["clock"], evicted["time"]) == (2, "13:00", "2026-01-05T13:00:00Z")
    left = next(action for action in told["cycles"][1]["actions"] if action["kind"] == "Evict")
    assert not left["replicas"] and [replica["devices"] for replica in left["givenUp"]] == [[i] for i in range(8)]
    assert {(replica["node"], replica["phase"]) for replica in left["givenUp"]} == {("node-1", "running")}
    assert [replica["devices"] for replica in tts["replicas"]] == [[i] for i in range(8)]
    assert {replica["node"] for replica in tts["replicas"]} == {"node-1"}
    assert workloads["default/detector"]["state"] == "finished"
    speech = next(queue for queue in told["queues"] if queue["queue"] == "speech")
    assert (speech["guarantee"], speech["allocated"], speech["limit"]) == (8000, 16000, None)


def test_failures_have_their_place(tmp_path: Path) -> None:
    path = tmp_path / "story.yaml"
    path.write_text("workloads: [{name: w, gpu: 1}]\nexpect: {workloads: {w: running}}\n", encoding="utf-8")
    ran = optimus("scenario", "run", path, "-o", "json")
    assert ran.code == 1
    failure = ran.json()["scenarios"][0]["failures"][0]
    assert (failure["path"], failure["line"], failure["column"], failure["cycle"]) == (str(path), 2, 25, 1)
    assert failure["message"].startswith("expected running, is pending: ")


def test_a_reservation_is_there_with_its_time_and_place() -> None:
    path = ROOT / "examples" / "02-scenario-why-does-it-wait" / "story.yaml"
    told = optimus("scenario", "run", path, "-o", "json").json()["scenarios"][0]
    reserved = next(w for w in told["workloads"] if w["name"] == "default/next-in-line")
    assert reserved["reason"]["code"] == "Reserved" and reserved["reason"]["facts"]["at"] == "12:20"
    assert set(reserved["reservation"]) == {"pool", "clock", "time", "atMs", "nodes"}
    assert reserved["reservation"]["clock"] == "12:20"


@pytest.mark.parametrize("path", FIELDS)
def test_the_reference_page_names_every_key(path: str) -> None:
    page = (ROOT / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8").partition("## What comes out")[2]
    assert [key for key in FIELDS[path].split() if f"`{key}`" not in page] == []


def written(folder: Path, text: str) -> Path:
    path = folder / "story.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def keys_in(record: Any) -> Iterator[str]:
    if isinstance(record, dict):
        for key, value in record.items():
            yield key
            yield from keys_in(value)
    elif isinstance(record, list):
        for value in record:
            yield from keys_in(value)


def test_keys_are_camel_case_and_amounts_are_numbers(tmp_path: Path) -> None:
    text = """
cluster: [{name: n, gpus: 2}]
queues: [{name: q, gpu: {limit: 0.5}, allowedClasses: [unattended]}]
workloads:
  - {name: a, queue: q, gpu: 0.25, count: 3}
  - {name: b, queue: q, class: interactive, gpu: 1}
  - {name: c, queue: q, gpu: -1}
cycles: [{}, {advance: 1d}]
"""
    for command in ("run", "check"):
        record = optimus("scenario", command, written(tmp_path, text), "-o", "json").json()
        assert [key for key in keys_in(record) if "_" in key] == []
    record = optimus("scenario", "run", tmp_path, "-o", "json").json()
    told = record["scenarios"][0]
    assert told["errors"][0]["setAside"] == "workload c"
    refused = {workload["name"]: workload["reason"] for workload in told["workloads"]}["default/a-2"]
    numbers = {"limit": 500, "used": 500, "asked": 250}
    assert refused["facts"] == {"queue": "q", "pool": "default", "resource": "gpu", **numbers}
    assert refused["text"] == "queue q is at its limit of 0.5 GPUs in pool default: 0.5 in use, 0.25 asked"
    assert [cycle["time"] for cycle in told["cycles"]] == ["2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z"]


def test_replicas_that_are_given_up_are_listed(tmp_path: Path) -> None:
    text = """
cluster: [{name: n, gpus: 4}]
workloads: [{name: e, replicas: {min: 1, max: 4}, gpu: 1, running: {on: n, replicas: 4}}]
cycles: [{submit: [{name: w, gpu: 2}]}]
"""
    told = optimus("scenario", "run", written(tmp_path, text), "-o", "json").json()["scenarios"][0]
    shrunk = next(action for action in told["cycles"][0]["actions"] if action["kind"] == "Shrink")
    assert [(replica["node"], replica["devices"]) for replica in shrunk["givenUp"]] == [("n", [2]), ("n", [3])]
    assert not shrunk["replicas"]
