"""What a person reads in the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from optimus.drivers.sim.measuring import Provenance, compare, study
from optimus.drivers.sim.report import overview, print_study
from optimus.drivers.sim.report.cells import Table, Tone
from optimus.drivers.sim.report.numbers import duration, grouped, interval, percent, signed_percent, unit_for
from tests.sim.measuring.worlds import FOUR_GPUS, measured
from tests.sim.report.stories import IN_ORDER, JOBS, both, small_study

LATER: dict[str, list[tuple[float, float]]] = {"first": [(0, 100)], "second": [(0, 80)], "third": [(100, 150)]}
"""100, 80 and 120 minutes."""


def column(table: Table, title: str) -> list[str]:
    at = [c.title for c in table.columns].index(title)
    return [row[at].text for row in table.rows]


def printed(**options: bool) -> str:
    out = io.StringIO()
    print_study(Console(file=out, width=80), small_study(), **options)
    return out.getvalue()


def test_the_headline_has_a_row_per_scheduler_with_one_unit_per_column() -> None:
    """In order: 60, 90 and 40 minutes. Short first: 100, 30 and 10."""
    table = overview.completion(small_study())
    assert column(table, "scheduler") == ["in order", "short first"]
    assert [c.unit for c in table.columns if c.title == "JCT"] == ["min"]
    assert column(table, "JCT") == ["63.3", "46.7"]
    assert column(table, "change") == ["reference", "−26.3 %"]
    assert column(table, "waiting") == ["30.0", "13.3"]


def test_an_interval_that_holds_zero_is_not_coloured_as_a_gain() -> None:
    change = overview.completion(small_study()).rows[1][5]
    assert change.tone is Tone.FAINT


def test_who_did_not_finish_stands_out() -> None:
    told = study([[measured("stuck", JOBS, {"first": [(0, 60)]})]], FOUR_GPUS, Provenance(trace="x"))
    cell = overview.completion(told).rows[0][-1]
    assert (cell.text, cell.tone) == ("2 open", Tone.BAD)


def test_winners_and_losers_are_counted_by_size_and_queue() -> None:
    table = overview.balances(small_study().comparisons[0])
    assert column(table, "jobs") == ["all", "1 GPU", "2–8 GPUs", "speech", "vision"]
    assert column(table, "sooner") == ["2", "1", "1", "2", "0"]
    assert column(table, "later") == ["1", "0", "1", "0", "1"]
    assert column(table, "mean change") == ["−16.7 min", "−30 min", "−10 min", "−45 min", "+40 min"]


def test_a_claim_says_what_it_lacks() -> None:
    checks = {text.split(":")[0]: met for met, text in overview.standard(compare(*both()))}
    assert checks["at least ten traces"] is False
    assert checks["nobody starved (longest wait 40 min)"] is True


def test_several_traces_are_averaged_and_told_one_by_one() -> None:
    late = [measured("in order", JOBS, LATER), measured("short first", JOBS, LATER)]
    told = study([both(), late], FOUR_GPUS, Provenance(trace="two", traces=("calm", "busy")))
    assert column(overview.completion(told), "JCT") == [f"{(190 / 3 + 100) / 2:.1f}", f"{(140 / 3 + 100) / 2:.1f}"]
    each = overview.by_trace(told)
    assert column(each, "trace") == ["calm", "busy"]
    assert column(each, "change") == ["−26.3 %", "±0.0 %"]


def test_waiting_has_an_interval_also_where_most_wait_for_nothing() -> None:
    """Of three jobs one waits; every 27th draw takes only the two that do not."""
    ours: dict[str, list[tuple[float, float]]] = {"first": [(0, 60)], "second": [(60, 90)], "third": [(30, 40)]}
    theirs: dict[str, list[tuple[float, float]]] = {"first": [(0, 60)], "second": [(90, 120)], "third": [(30, 40)]}
    told = study([[measured("a", JOBS, ours), measured("b", JOBS, theirs)]], FOUR_GPUS, Provenance(trace="x"))
    change = told.comparisons[0].wait_ms
    assert change.relative == 0.5 and change.low is not None and change.high is not None
    assert (change.relative_low, change.relative_high) == (0.0, 1.5), "as part of the 20 minutes of all"
    assert overview.completion(told).rows[1][9].text == "+0.0 to +150.0 %"


def test_where_the_reference_waits_for_nothing_the_interval_is_a_time() -> None:
    at_once: dict[str, list[tuple[float, float]]] = {"first": [(0, 60)], "second": [(0, 30)], "third": [(30, 40)]}
    told = study([[measured("a", JOBS, at_once), measured("b", JOBS, IN_ORDER)]], FOUR_GPUS, Provenance(trace="x"))
    change, shown = overview.completion(told).rows[1][8:10]
    assert (change.text, shown.text) == ("+30 min", "0 s to +60 min")


def test_waiting_of_each_queue_has_a_unit_that_suits_it() -> None:
    long: dict[str, list[tuple[float, float]]] = {"first": [(0, 60)], "second": [(600, 630)], "third": [(30, 40)]}
    told = study([[measured("a", JOBS, long)]], FOUR_GPUS, Provenance(trace="x"))
    assert column(overview.by_queue(told), "waiting") == ["5 h", "0 s"]


def test_into_a_pipe_one_line_stays_one_line() -> None:
    text = printed()
    assert "\x1b" not in text
    (row,) = [line for line in text.splitlines() if line.startswith("short first") and "−26.3 %" in line]
    assert len(row.rstrip()) > 120


def test_wide_shows_every_table() -> None:
    assert "2–8 GPUs" in printed(wide=True)
    assert "speech" in printed(wide=True)
    assert "✗ at least ten traces: 1" in printed()


def test_deadlines_and_decisions_are_columns_only_where_there_are_some() -> None:
    assert column(overview.disturbance(small_study()), "deadlines met") == ["1 / 1", "1 / 1"]
    alone = study([[measured("in order", JOBS[:2], IN_ORDER)]], FOUR_GPUS, Provenance(trace="x"))
    assert "deadlines met" not in [c.title for c in overview.disturbance(alone).columns]


def test_numbers_have_three_digits_that_matter() -> None:
    assert [grouped(x) for x in (12345.6, 123.4, 12.34, 1.234, 0, -5.5)] == [
        "12,346",
        "123",
        "12.3",
        "1.23",
        "0",
        "−5.50",
    ]
    assert [duration(x) for x in (None, 250, 41 * 60_000, 8_640_000)] == ["–", "250 ms", "41 min", "2.40 h"]
    assert (percent(0.1234), signed_percent(0.0), signed_percent(-0.1)) == ("12.3 %", "±0.0 %", "−10.0 %")
    assert interval(-0.131, -0.117) == "−13.1 to −11.7 %"


def test_a_column_of_times_has_one_unit_and_as_many_digits() -> None:
    unit = unit_for([3_600_000 * x for x in (2, 3, 40)])
    assert (unit.name, unit.show(7_200_000), unit.show(144_000_000), unit.show(None)) == ("h", "2.00", "40.00", "–")
