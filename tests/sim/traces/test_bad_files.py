"""Bad files: every row is a job or is told with its line; what cannot be used at all says what was expected."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from optimus.drivers.sim.traces.formats import load
from optimus.drivers.sim.traces.trace import TraceError, Verdict
from tests.sim.traces.lists import ITP, PHILLY, said, with_rows, written

GOOD = "7,2017-09-04 10:30:00,60,1,blue"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1,2017-09-04 10:30:00,-60,1,blue", "ends before it begins"),
        ("1,2017-09-04 10:30:00,0,1,blue", "never ran"),
        ("1,2017-09-04 10:30:00,60,0,blue", "num_gpus is 0"),
        ("1,2017-09-04 10:30:00,60,-2,blue", "fewer than no GPUs"),
        ("1,2017-09-04 10:30:00,60,1504521000,blue", "no number of GPUs, look for a shifted column"),
        ("1,2017-09-04 10:30:00,60,1.5,blue", "write a whole number"),
        ("1,2017-09-04 10:30:00,an hour,1,blue", "duration_s is 'an hour'; write a number"),
        ("1,2017-09-04 10:30:00,,1,blue", "duration_s is ''"),
        ("1,2017-09-04 10:30:00,nan,1,blue", "can be counted"),
        ("1,2017-09-04 10:30:00,1e300,1,blue", "can be counted"),
        ("1,2017-09-04 10:30:00,1504521000,1,blue", "nothing runs for more than ten years, look for a shifted column"),
        ("1,yesterday,60,1,blue", "submit_time is 'yesterday'; write a date since 1970 as 2017-09-04 10:30:41"),
        ("1,2017-13-04 10:30:00,60,1,blue", "write a date"),
        ("1,0001-01-01 00:00:00,60,1,blue", "write a date since 1970"),
        (",2017-09-04 10:30:00,60,1,blue", "every job needs a name"),
        ("1,2017-09-04 10:30:00,60,1", "4 cells, and the header has 5"),
        ("1,2017-09-04 10:30:00,60,1,blue,extra", "6 cells, and the header has 5"),
        ('1,"2017-09-04 10:30:00,60,1,blue', "a quote opened here swallows the next 1 lines"),
    ],
)
def test_a_bad_row_is_told_and_the_rest_goes_on(tmp_path: Path, row: str, why: str) -> None:
    trace = load(written(tmp_path, "jobs.csv", with_rows(PHILLY, GOOD, row, "8" + GOOD[1:])))
    assert why in said(trace, Verdict.LEFT_OUT)[3]
    assert trace.jobs[0].name == "7"
    assert trace.rows == len(trace.jobs) + trace.left_out


def test_many_bad_rows_are_counted_one_by_one(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", with_rows(PHILLY, *[f"{i},when,60,1,a" for i in range(500)], GOOD)))
    assert (trace.rows, len(trace.jobs), trace.left_out) == (501, 1, 500)
    assert str(trace.problems[0]).startswith("jobs.csv:2: left out: submit_time is 'when'")


def test_an_id_given_twice_names_the_line_of_the_first(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", with_rows(PHILLY, GOOD, GOOD)))
    assert said(trace, Verdict.LEFT_OUT) == {3: "7 is already on line 2; give each job its own id"}


def test_rows_out_of_order_are_moved_and_told(tmp_path: Path) -> None:
    rows = ("a,300,60,1,m,,,", "b,100,60,1,m,,,", "c,200,60,1,m,,,")
    trace = load(written(tmp_path, "jobs.csv", with_rows(ITP, *rows)))
    assert [(job.name, job.submit_ms) for job in trace.jobs] == [("b", 0), ("c", 100_000), ("a", 200_000)]
    assert list(said(trace, Verdict.CHANGED)) == [3]  # c is not before the job above it
    assert (trace.left_out, trace.changed) == (0, 1)


def test_negative_times_are_told(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", with_rows(ITP, "a,-5,60,1,m,,,")))
    assert "submit_s is '-5'" in said(trace, Verdict.LEFT_OUT)[2]


def test_times_beyond_all_calendars_are_told(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", with_rows(ITP, "a,9e14,60,1,m,,,", "b,5,60,1,m,,,")))
    assert "beyond all calendars" in said(trace, Verdict.LEFT_OUT)[2]
    assert [job.name for job in trace.jobs] == ["b"]


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", PHILLY.replace("\n", "\r\n\r\n")))
    assert (trace.rows, len(trace.jobs), trace.problems) == (3, 3, ())


def test_an_empty_file_is_an_error_and_a_file_without_rows_is_not(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nothing\.csv: the file is empty; expected a header"):
        load(written(tmp_path, "nothing.csv", ""))
    trace = load(written(tmp_path, "jobs.csv", with_rows(PHILLY)))
    assert (trace.rows, trace.jobs, said(trace, Verdict.NOTE)) == (0, (), {0: "no job in it"})


def test_a_missing_file_or_column_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such file"):
        load(tmp_path / "jobs.csv")
    path = written(tmp_path, "jobs.csv", PHILLY.replace("num_gpus", "gpus"))
    with pytest.raises(TraceError, match=r"no column num_gpus; expected job_id, .*; found 'job_id', .*'gpus'"):
        load(path, format="philly")


def many() -> str:
    return with_rows(PHILLY, *[f"{i},2017-09-04 10:30:00,{i * 7919 % 9973 + 1},1,blue" for i in range(20_000)])


def test_a_cut_gzip_file_keeps_the_rows_before_the_cut_and_says_so(tmp_path: Path) -> None:
    whole = gzip.compress(many().encode())
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    trace = load(path)
    assert 5_000 < len(trace.jobs) < 20_000
    assert "cut off" in said(trace, Verdict.NOTE)[0]
    assert trace.rows == len(trace.jobs) + trace.left_out
    assert trace.left_out <= 1  # the row through which the cut goes


def test_a_damaged_gzip_file_keeps_the_rows_before_the_damage(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(many().encode()))
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(bytes(data))
    trace = load(path)
    assert 0 < len(trace.jobs) < 20_000
    assert "damaged" in said(trace, Verdict.NOTE)[0]


def test_a_gzip_file_cut_in_its_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(PHILLY.encode())[:12])
    with pytest.raises(TraceError, match="cut off"):
        load(path)


def test_a_gzip_file_needs_no_ending_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(gzip.compress(PHILLY.encode()))
    assert len(load(path).jobs) == 3


def test_bytes_that_are_no_text_are_told_by_line(tmp_path: Path) -> None:
    text = with_rows(PHILLY, GOOD, "8,2017-09-04 10:30:00,60,1,größe").encode("latin-1")
    trace = load(written(tmp_path, "jobs.csv", text))
    assert [job.name for job in trace.jobs] == ["7"]
    assert said(trace, Verdict.LEFT_OUT) == {3: "not text in utf-8; convert the file or name its encoding"}


def test_utf_8_with_a_mark_is_read_and_utf_16_is_refused(tmp_path: Path) -> None:
    assert len(load(written(tmp_path, "marked.csv", PHILLY.encode("utf-8-sig"))).jobs) == 3
    with pytest.raises(TraceError, match="UTF-16; convert it"):
        load(written(tmp_path, "wide.csv", PHILLY.encode("utf-16")))


def test_a_cell_of_a_million_letters_costs_one_row(tmp_path: Path) -> None:
    trace = load(written(tmp_path, "jobs.csv", with_rows(PHILLY, "x" * 1_000_000 + GOOD, GOOD)))
    assert [job.name for job in trace.jobs] == ["7"]
    assert "no row of a CSV file" in said(trace, Verdict.LEFT_OUT)[2]


def test_a_folder_or_noise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="neither a journal nor the openb lists"):
        load(tmp_path)
    with pytest.raises(TraceError, match="is a folder"):
        load(tmp_path, format="philly")
    with pytest.raises(TraceError, match="no known format"):
        load(written(tmp_path, "noise.csv", bytes(range(256)) * 20))
