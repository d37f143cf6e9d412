"""What the soak counts can be looked up: every world that has failed, what was broken, and since when it holds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests import soak


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The book that is committed stays as it is."""
    monkeypatch.setattr(soak, "RESULT", tmp_path / "soak.json")
    monkeypatch.setattr(soak, "commit", lambda: "abc")
    return tmp_path / "soak.json"


def test_a_failure_stays_with_its_seed_and_since_when_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    book, run = soak.read_book(), {"commit": "abc", "from": 1, "to": 1, "passed": 0, "failed": 0}
    book["runs"].append(run)
    soak.note(book, run, 1, [], [])
    soak.note(book, run, 2, ["invariant 6: x for nothing"], [6])
    soak.note(book, run, 3, ["invariant 9: again", "invariant 6: y"], [6, 9])
    soak.save(book)
    monkeypatch.setattr(soak, "look", lambda seed: (seed, ["still"] if seed == 3 else [], []))
    assert soak.recheck() == 1
    assert [(one["seed"], one["what"][0], one["holds_at"]) for one in soak.read_book()["failures"]] == [
        (2, "invariant 6: x for nothing", "abc"),
        (3, "invariant 9: again", ""),
    ]
    monkeypatch.setattr(soak, "look", lambda seed: (seed, [], []))
    assert soak.recheck() == 0
    assert [one["seed"] for one in soak.read_book()["failures"]] == [2, 3], "nothing is forgotten"


def test_in_the_committed_book_everything_that_is_counted_is_listed() -> None:
    path = Path(soak.__file__).parents[1] / "benchmarks" / "results" / "soak.json"
    book = json.loads(path.read_text(encoding="utf-8"))
    listed = Counter(number for one in book["failures"] for number in one["invariants"])
    assert {int(number): one["failed"] for number, one in book["invariants"].items() if one["failed"]} == listed
    assert sum(run["failed"] for run in book["runs"]) == len(book["failures"])
    assert all(one["seed"] and one["what"] for one in book["failures"])
