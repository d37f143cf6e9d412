"""Files stay small enough to be read in one go.

The budget: none above 700 lines, and in src a median of at most 170 and a 90th percentile of at most 400.
A file that grows past it holds two subjects; give each its own name.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tests.architecture.sources import python_files, shown

LONGEST = 700
SRC_MEDIAN = 170
SRC_P90 = 400


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def src_sizes() -> list[int]:
    return sorted(lines(path) for path in python_files("src"))


def test_no_file_is_longer_than_the_cap() -> None:
    too_long = {
        shown(path): lines(path) for path in python_files("src", "tests", "benchmarks") if lines(path) > LONGEST
    }
    assert not too_long, f"split by subject: {too_long}"


def test_median_of_src(src_sizes: list[int]) -> None:
    assert median(src_sizes) <= SRC_MEDIAN


def test_ninetieth_percentile_of_src(src_sizes: list[int]) -> None:
    assert src_sizes[int(0.9 * (len(src_sizes) - 1))] <= SRC_P90
