"""Boards and alerts name only what a controller tells, and alerts fire when they are meant to."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.charting import PROMTOOL
from hack.charting.boards import BOARDS
from hack.controlplane.programs import missing_toolchain, program
from optimus.drivers.kube.metrics import METRICS
from optimus.telemetry.exposition import Kind, Metric

CHART = Path(__file__).parents[3] / "charts" / "optimus"
RULES = CHART / "alerts" / "optimus.yaml"
NAMES = re.compile(r"\b(?:optimus|process)_[a-z0-9_]+")
MATCHERS = re.compile(r"\b((?:optimus|process)_[a-z0-9_]+)\{([^}]*)\}")


@pytest.fixture(scope="session")
def promtool() -> str:
    if why := missing_toolchain(PROMTOOL):
        pytest.skip(why)
    return str(program("promtool", PROMTOOL))


def told(metric: Metric) -> set[str]:
    """Names of its samples."""
    if metric.kind is Kind.HISTOGRAM:
        return {f"{metric.name}_{part}" for part in ("bucket", "sum", "count")}
    return {metric.name}


SAMPLES = {name: metric for metric in METRICS for name in told(metric)}


def expressions() -> list[tuple[str, str]]:
    found = [
        (f"{board.name}: {panel.title}", expression)
        for board in BOARDS
        for panel in board.panels
        for expression, _ in panel.queries
    ]
    found += [(f"{board.name}: variable {name}", query) for board in BOARDS for name, query in board.variables]
    return found + [(rule["alert"], rule["expr"]) for rule in rules()]


def rules() -> list[dict[str, str]]:
    found: list[dict[str, str]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    return found


@pytest.mark.parametrize(("where", "expression"), expressions(), ids=lambda value: str(value)[:50])
def test_every_metric_that_is_named_is_told(where: str, expression: str) -> None:
    named = set(NAMES.findall(expression))
    assert named and named <= SAMPLES.keys(), where
    for name, matchers in MATCHERS.findall(expression):
        labels = set(re.findall(r"(\w+)\s*=", matchers)) - {"job", "pod"}  # these Prometheus adds
        assert labels <= set(SAMPLES[name].labels), where


def test_every_number_of_ours_is_on_a_board_or_in_an_alert() -> None:
    shown = {name for _, expression in expressions() for name in NAMES.findall(expression)}
    rare = {"process_start_time_seconds", "process_open_fds"}
    assert {metric.name for metric in METRICS if not told(metric) & shown} == rare


def test_boards_are_as_they_are_described() -> None:
    for board in BOARDS:
        written = json.loads((CHART / "boards" / f"{board.name}.json").read_text())
        assert [panel["title"] for panel in written["panels"]] == [panel.title for panel in board.panels]
        places = [panel["gridPos"] for panel in written["panels"]]
        assert all(place["x"] + place["w"] <= 24 for place in places)
        cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
        assert len(cells) == len(set(cells)), "no panel lies on another"


def test_expressions_can_be_read_by_prometheus(promtool: str, tmp_path: Path) -> None:
    made = [
        {"record": f"optimus:check{i}", "expr": expression.replace("$__rate_interval", "5m").replace("$queue", "a")}
        for i, (where, expression) in enumerate(expressions())
        if "variable" not in where
    ]
    path = tmp_path / "boards.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": made}]}))
    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_alerts_fire_when_they_should_and_only_then(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = _play(promtool, RULES.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_alert_that_is_wrong_is_found_out(promtool: str, tmp_path: Path) -> None:
    """One that never fires, one that always does, one that does not wait: the stories of the alerts notice each."""
    stories = yaml.safe_load((RULES.parent / "optimus_test.yaml").read_text())
    wrong = [(rule["alert"], fault) for rule in rules() for fault in ("never", "always", "at once")]
    for alert, fault in wrong:
        changed = yaml.safe_load(RULES.read_text())
        group = changed["groups"][0]
        (rule,) = group["rules"] = [rule for rule in group["rules"] if rule["alert"] == alert]
        if fault == "at once":
            rule["for"] = "0s"
        else:
            rule["expr"] = f"({rule['expr']}) and vector(0) > 1" if fault == "never" else "vector(1)"
        folder = tmp_path / f"{alert} {fault}"
        folder.mkdir()
        (folder / "optimus.yaml").write_text(yaml.safe_dump(changed))
        (folder / "optimus_test.yaml").write_text(yaml.safe_dump({**stories, "tests": list(_about(stories, alert))}))
    played = [promtool, "test", "rules", *(str(path) for path in sorted(tmp_path.glob("*/optimus_test.yaml")))]
    done = subprocess.run(played, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert told.count("FAILED") == len(wrong) and "SUCCESS" not in told, _passed(told)


def _about(stories: dict[str, Any], alert: str) -> Iterator[dict[str, Any]]:
    for story in stories["tests"]:
        if looks := [look for look in story["alert_rule_test"] if look["alertname"] == alert]:
            yield {**story, "alert_rule_test": looks}


def _passed(told: str) -> list[str]:
    parts = told.split("Unit Testing:")[1:]
    return [part.strip().splitlines()[0] for part in parts if "SUCCESS" in part] or [told[:2000]]


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")  # type: ignore[index]
        assert rule["annotations"]["description"]  # type: ignore[index]


def _play(promtool: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [promtool, "test", "rules", "optimus_test.yaml"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
