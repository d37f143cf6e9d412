"""Numbers as Prometheus reads them."""

from __future__ import annotations

import pytest

from optimus.telemetry import Family, Histogram, Kind, Metric, text_of

WAITING = Metric("optimus_waiting", Kind.GAUGE, "Those that wait.", ("queue", "reason"))
TOOK = Metric("optimus_took_seconds", Kind.HISTOGRAM, "How long it took.")


def test_a_gauge_with_labels_in_a_fixed_order() -> None:
    told = text_of([Family(WAITING, {("vision", "NoRoom"): 3, ("speech", "NoRoom"): 0.5})])
    assert told.splitlines() == [
        "# HELP optimus_waiting Those that wait.",
        "# TYPE optimus_waiting gauge",
        'optimus_waiting{queue="speech",reason="NoRoom"} 0.5',
        'optimus_waiting{queue="vision",reason="NoRoom"} 3',
    ]


def test_a_histogram_counts_everything_up_to_each_bound() -> None:
    took = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        took.observe(seconds)
    assert text_of([Family(TOOK, {(): took})]).splitlines()[2:] == [
        'optimus_took_seconds_bucket{le="0.1"} 2',
        'optimus_took_seconds_bucket{le="1"} 3',
        'optimus_took_seconds_bucket{le="+Inf"} 4',
        "optimus_took_seconds_sum 7.65",
        "optimus_took_seconds_count 4",
    ]


def test_what_others_have_counted_is_added() -> None:
    both = Histogram((1.0,))
    both.observe(0.5)
    both.add([1, 2], 10.0)
    told = text_of([Family(Metric("t_seconds", Kind.HISTOGRAM, "x", ("verb",)), {("get",): both})])
    assert told.splitlines()[2:] == [
        't_seconds_bucket{verb="get",le="1"} 2',
        't_seconds_bucket{verb="get",le="+Inf"} 4',
        't_seconds_sum{verb="get"} 10.5',
        't_seconds_count{verb="get"} 4',
    ]


def test_quotes_backslashes_and_line_breaks_are_escaped() -> None:
    told = text_of([Family(WAITING, {('a"b', "c\\d\ne"): 1})])
    assert told.splitlines()[2] == 'optimus_waiting{queue="a\\"b",reason="c\\\\d\\ne"} 1'


def test_a_sample_with_the_wrong_labels_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="has labels"):
        text_of([Family(WAITING, {("vision",): 1})])
