"""Quantities are exact, whatever way they are written, and bad ones say what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimus.model import units

GOOD: list[tuple[Callable[[units.Written], int], units.Written, int]] = [
    (units.parse_gpu, 2, 2000),
    (units.parse_gpu, "0.5", 500),
    (units.parse_gpu, 0.1, 100),
    (units.parse_gpu, Decimal("0.25"), 250),
    (units.parse_gpu, "250m", 250),
    (units.parse_gpu, " 1e2 ", 100_000),
    (units.parse_gpu, ".5", 500),
    (units.parse_cpu, "500m", 500),
    (units.parse_cpu, 4, 4000),
    (units.parse_memory, "16Gi", 16_384),
    (units.parse_memory, "512Mi", 512),
    (units.parse_memory, "2G", 1908),
    (units.parse_memory, "1.5Gi", 1536),
    (units.parse_memory, 1_048_576, 1),
    (units.parse_memory, 1, 1),
    (units.parse_memory, "1e6", 1),
    (units.parse_memory, 0, 0),
    (units.parse_duration, "30s", 30_000),
    (units.parse_duration, "5m", 300_000),
    (units.parse_duration, "2h30m", 9_000_000),
    (units.parse_duration, "1d", 86_400_000),
    (units.parse_duration, "1.5h", 5_400_000),
    (units.parse_duration, "250ms", 250),
    (units.parse_duration, 90, 90_000),
    (units.parse_duration, "0.5", 500),
    (units.parse_offset, "-10m", -600_000),
    (units.parse_offset, "+1h", 3_600_000),
    (units.parse_offset, -5, -5_000),
    (units.parse_percent, "150%", 150),
    (units.parse_percent, "1.5x", 150),
    (units.parse_percent, 1.5, 150),
    (units.parse_share, "40%", 400),
    (units.parse_share, 0.4, 400),
    (units.parse_count, "7", 7),
    (units.parse_count, 4.0, 4),
    (units.parse_integer, -3, -3),
]

BAD: list[tuple[Callable[[units.Written], int], object, str]] = [
    (units.parse_gpu, -1, "must not be negative"),
    (units.parse_gpu, float("nan"), "finite"),
    (units.parse_gpu, float("inf"), "finite"),
    (units.parse_gpu, Decimal("NaN"), "finite"),
    (units.parse_gpu, "nan", "finite"),
    (units.parse_gpu, True, "true or false"),
    (units.parse_gpu, None, "nothing"),
    (units.parse_gpu, [], "a list"),
    (units.parse_gpu, {}, "a mapping"),
    (units.parse_gpu, "half", "must be a number"),
    (units.parse_gpu, "", "must be a number"),
    (units.parse_gpu, "0.0005", "finer than thousandths of a GPU"),
    (units.parse_gpu, "1Gi", "unknown unit 'Gi'"),
    (units.parse_gpu, 2**53, "too large"),
    (units.parse_gpu, 10**6000, "too large"),
    (units.parse_gpu, "9" * 6000, "too large"),
    (units.parse_gpu, "1e999999999", "too large"),
    (units.parse_gpu, Decimal("1e-999999"), "too small"),
    (units.parse_gpu, "1_000", "unknown unit"),
    (units.parse_gpu, "٣", "must be a number"),
    (units.parse_memory, "16GB", "did you mean 16G?"),
    (units.parse_memory, "16gi", "did you mean 16Gi?"),
    (units.parse_memory, "16m", "did you mean 16Mi?"),
    (units.parse_memory, "16 bananas", "units are Ki"),
    (units.parse_memory, "1e30Ei", "too large"),
    (units.parse_duration, "5 minutes", "2h30m"),
    (units.parse_duration, "30m2h", "large to small"),
    (units.parse_duration, "5m5m", "each once"),
    (units.parse_duration, "-5m", "negative"),
    (units.parse_duration, "--5m", "cannot be read"),
    (units.parse_duration, "0.0001s", "finer than milliseconds"),
    (units.parse_duration, "99999999999w", "too large"),
    (units.parse_percent, "1.555", "finer than hundredths"),
    (units.parse_share, "101%", "more than the whole"),
    (units.parse_count, 1.5, "whole number"),
    (units.parse_count, -1, "negative"),
]


@pytest.mark.parametrize(("parse", "written", "amount"), GOOD)
def test_what_people_write(parse: Callable[[units.Written], int], written: units.Written, amount: int) -> None:
    assert parse(written) == amount


@pytest.mark.parametrize(("parse", "written", "fragment"), BAD, ids=[f"{i}: {case[2]}" for i, case in enumerate(BAD)])
def test_what_cannot_be_meant(parse: Callable[[object], int], written: object, fragment: str) -> None:
    with pytest.raises(units.UnitError) as caught:
        parse(written)
    assert fragment in str(caught.value)


def test_a_tenth_and_two_tenths_are_three_tenths() -> None:
    assert units.parse_gpu(0.1) + units.parse_gpu(0.2) == units.parse_gpu(0.3)
    assert units.parse_gpu("0.1") + units.parse_gpu(Decimal("0.2")) == units.parse_gpu("300m")


def test_capacities_are_rounded_down_and_requests_up() -> None:
    assert units.parse_memory("1G", round_up=False) == 953
    assert units.parse_memory("1G") == 954


@given(st.integers(0, 10**9))
def test_gpus_and_cpus_come_back(milli: int) -> None:
    assert units.parse_gpu(units.format_gpu(milli)) == milli
    assert units.parse_cpu(units.format_resource("cpu", milli)) == milli


@given(st.integers(0, 2**40))
def test_memory_comes_back(mib: int) -> None:
    assert units.parse_memory(units.format_memory(mib)) == mib
    assert units.parse_memory(units.format_resource("memory", mib)) == mib


@given(st.integers(-(2**45), 2**45))
def test_durations_come_back(milliseconds: int) -> None:
    assert units.parse_offset(units.format_duration_ms(milliseconds)) == milliseconds


@given(st.one_of(st.text(), st.floats(), st.integers(), st.decimals(), st.none(), st.booleans(), st.binary()))
def test_nothing_but_a_unit_error_is_raised(value: object) -> None:
    for parse in (
        units.parse_gpu,
        units.parse_memory,
        units.parse_duration,
        units.parse_offset,
        units.parse_percent,
        units.parse_share,
        units.parse_count,
    ):
        with suppress(units.UnitError):
            assert abs(parse(value)) <= units.LARGEST  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.format_gpu(2500), "2.5"),
        (units.format_gpu(2000), "2"),
        (units.format_gpu(1), "0.001"),
        (units.format_gpu(-500), "-0.5"),
        (units.format_memory(16_384), "16Gi"),
        (units.format_memory(1000), "1000Mi"),
        (units.format_resource("fpga", 3), "3"),
        (units.format_ratio(150), "1.5x"),
        (units.format_duration_ms(9_000_000), "2h30m"),
        (units.format_duration_ms(0), "0s"),
        (units.format_duration_ms(-90_000), "-1m30s"),
        (units.format_clock_ms(1_767_622_800_000), "14:20"),
        (units.format_clock_ms(1_767_622_805_000), "14:20:05"),
    ],
)
def test_what_people_read(shown: str, text: str) -> None:
    assert shown == text
