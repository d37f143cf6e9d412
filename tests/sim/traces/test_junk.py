"""Whatever is in a file: a trace whose rows are all accounted for, or a TraceError."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimus.drivers.sim.traces.formats import FORMATS, load
from optimus.drivers.sim.traces.trace import TraceError
from tests.sim.traces.lists import GAVEL, ITP, PHILLY, RATES, THROUGHPUTS

LISTS = {"philly": PHILLY, "itp2021": ITP, "gavel": GAVEL}
BITS = st.sampled_from(
    [
        b"",
        b",",
        b'"',
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"-1",
        b"1e999",
        b"nan",
        b"0",
        b" ",
        b"\xc3\x28",
        b"9" * 40,
        "ä".encode(),
    ]
)
CHANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 12), BITS), max_size=6)


def changed(text: str, changes: list[tuple[int, int, bytes]]) -> bytes:
    data = text.encode()
    for at, length, bit in changes:
        here = at % (len(data) + 1)
        data = data[:here] + bit + data[here + length :]
    return data


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(changes=CHANGES, cut=st.integers(0, 60))
def test_lists(tmp_path: Path, name: str, packed: bool, changes: list[tuple[int, int, bytes]], cut: int) -> None:
    (tmp_path / "throughputs_simulation.csv").write_text(RATES)
    data = changed(LISTS[name], changes)
    if packed:
        data = gzip.compress(data)
    path = tmp_path / "jobs.csv"
    path.write_bytes(data[: len(data) - cut] if cut else data)
    for form in (None, name):
        try:
            trace = load(path, format=form)
        except TraceError:
            continue
        assert trace.rows == len(trace.jobs) + trace.left_out
        assert all(job.work.ideal_ms() > 0 and job.submit_ms >= 0 and job.total_gpus > 0 for job in trace.jobs)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(changes=CHANGES)
def test_tables_beside_them(tmp_path: Path, changes: list[tuple[int, int, bytes]]) -> None:
    (tmp_path / "jobs.csv").write_text(ITP)
    (tmp_path / "throughputs.csv").write_bytes(changed(THROUGHPUTS, changes))
    try:
        trace = load(tmp_path / "jobs.csv", throughputs=tmp_path / "throughputs.csv")
    except TraceError:
        return
    assert trace.rows == len(trace.jobs) + trace.left_out == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    mapping=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["t", "d"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["columns", "constants", "cluster", "submit", "duration", "gpus", "column", "unit"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_mappings(tmp_path: Path, mapping: object) -> None:
    import yaml

    (tmp_path / "jobs.csv").write_text("t,d\n0,10\n")
    (tmp_path / "mapping.yaml").write_text(yaml.safe_dump(mapping))
    try:
        trace = load(tmp_path / "jobs.csv", mapping=tmp_path / "mapping.yaml")
    except TraceError:
        return
    assert trace.rows == len(trace.jobs) + trace.left_out


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_trips_over_noise(tmp_path: Path, name: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(bytes(range(256)) * 50)
    with pytest.raises(TraceError):
        load(path, format=name)
