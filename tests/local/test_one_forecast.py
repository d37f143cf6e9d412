"""When does it start? Explain, forecast and what-if say the same of the same moment, or why they do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local.frozen import frozen
from tests.local.machines import Up, until


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    machine = Up(tmp_path / "store", "--nodes", "1", "--gpus", "2")
    yield machine
    machine.end()


def run(up: Up, name: str, **spec: object) -> None:
    asked = {"command": ["sleep", "6000"], **spec}
    document = {"kind": "UnifiedJob", "metadata": {"name": name}, "spec": asked}
    made = up.cli("submit", "-", stdin=json.dumps(document))
    assert made.returncode == 0, made.stderr


class Told:
    """What the three say of one frozen moment."""

    def __init__(self, up: Up, address: str, *options: str) -> None:
        self._up, self._options = up, (f"--address={address}", *options)

    def __call__(self, *words: str) -> dict[str, Any]:
        ran = self._up.cli(*words, *self._options, "-o", "json")
        assert ran.returncode == 0, ran.stderr
        return dict(json.loads(ran.stdout))

    def explained(self) -> dict[str, Any]:
        told = self("explain", "next", "--within", "10m")
        return {**told["start"], "atMs": told["atMs"]}

    def forecast(self, *words: str) -> dict[str, Any]:
        told = self("forecast", *words)
        (row,) = [one for one in told["workloads"] if one["name"] == "default/next"]
        return {**row, "claim": told["claim"], "atMs": told["atMs"], "restsOn": told["restsOn"]}

    def whatif(self) -> dict[str, Any]:
        told = self("what-if", "--add-nodes", "1")
        (row,) = [one for one in told["effect"]["moved"] if one["workload"] == "default/next"]
        return {**row, "claim": told["claim"], "atMs": told["atMs"], "notes": told["notes"], "played": told["played"]}


def test_all_three_say_the_same_where_nothing_is_known(up: Up) -> None:
    run(up, "never", gpu=8)  # time alone does not help it, and it changes nothing
    for name in ("a", "b"):
        run(up, name, gpu=1)
        up.reaches(name, "Running")
    run(up, "next", gpu=2)
    with frozen(up.api) as address:
        told = Told(up, address)
        explained, forecast, whatif = told.explained(), told.forecast(), told.whatif()
    assert explained["atMs"] == forecast["atMs"] == whatif["atMs"]
    assert explained["claim"] == forecast["claim"] == whatif["claim"] == "guess"
    assert explained["restsOn"] == forecast["restsOn"] == {"guess": 2}
    for quantile in ("earliest", "p50", "p90"):
        assert explained[quantile] == forecast[quantile], quantile
    assert whatif["start"]["todayMs"] == forecast["p50"]["inMs"]
    assert whatif["start"]["todayFutures"] == forecast["started"]
    assert "nobody else comes" in whatif["played"]
    assert whatif["notes"] == ["All times are guesses: nothing is known about how long work here takes."]


def test_where_newcomers_are_known_what_if_says_that_it_leaves_them_out(up: Up) -> None:
    for name in ("a", "b"):
        run(up, name, gpu=1, expectedDurationSeconds=3600)
        up.reaches(name, "Running")
    run(up, "next", gpu=2, expectedDurationSeconds=3600)
    for number in range(10):
        run(up, f"came-{number}", gpu=1, expectedDurationSeconds=3600)
    until(lambda: up.job("came-9")["reason"], "it waits")
    with frozen(up.api) as address:
        told = Told(up, address, "--samples", "3")
        explained, forecast, alone, whatif = (
            told.explained(),
            told.forecast(),
            told.forecast("--no-arrivals"),
            told.whatif(),
        )
        page = up.cli("what-if", "--add-nodes", "1", "--samples", "3", f"--address={address}").stdout
    assert explained["claim"] == forecast["claim"] == "range" and alone["claim"] == whatif["claim"] == "atLeast"
    for quantile in ("earliest", "p50", "p90"):
        assert explained[quantile] == forecast[quantile], quantile
    assert whatif["start"]["todayMs"] == alone["p50"]["inMs"]
    assert "Starts are those of `optimus forecast --no-arrivals`" in " ".join(page.split()), page
