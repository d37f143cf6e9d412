"""Pictures of results are drawn from the result files: neither is older than the other."""

from __future__ import annotations

import json

import pytest

from benchmarks.measuring import RESULTS
from benchmarks.pictures import DRAWN, PICTURES, draw


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_shows_what_its_result_file_says(name: str) -> None:
    drawn = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == draw(name), "draw it again: python -m benchmarks.pictures"


def test_another_result_is_another_picture() -> None:
    result, drawing = DRAWN["pollux"]
    content = json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))
    before = drawing(content)
    ours = next(case for case in content["cases"] if case["who"] == "history")
    ours["average_s"] *= 2
    assert drawing(content) != before
