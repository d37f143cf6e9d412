"""`optimus bench`: what is measured here, beside what was measured when this version was made."""

from __future__ import annotations

import pytest

from benchmarks.decide import shipped
from optimus.measuring.decide import MEASURED, ROWS
from tests.cli.terminal import optimus


def test_the_package_has_the_committed_figures() -> None:
    assert MEASURED.read_text(encoding="utf-8") == shipped(), "python -m benchmarks decide writes both"


@pytest.mark.slow
def test_a_row_is_measured() -> None:
    ran = optimus("bench", "decide", "consolidate", "-o", "json")
    assert ran.code == 0, ran.err
    (row,) = ran.json()["rows"]
    assert row["row"] == "consolidate" and row["title"] == ROWS["consolidate"][0]
    assert row["seconds"] > 0 and row["measuredSeconds"] > 0 and row["peakMib"] > 0
    assert ran.json()["machine"]["python"]
