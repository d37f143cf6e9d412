"""Who is better, by how much, how sure, and who pays for it."""

from __future__ import annotations

import numpy as np
import pytest

from optimus.drivers.sim.measuring import Comparison, MeasureError, compare
from optimus.drivers.sim.measuring.bootstrap import Over, Verdict, differences
from optimus.drivers.sim.measuring.metrics import Measured
from tests.sim.measuring.worlds import MINUTE, job, measured

JOBS = [job("a", 0, 1, 10, queue="x"), job("b", 0, 2, 10, queue="x"), job("c", 0, 2, 10, queue="y")]


def ends(name: str, *minutes: float) -> Measured:
    """Every job runs its last ten minutes and waits before."""
    return measured(name, JOBS, {each.name: [(end - 10, end)] for each, end in zip(JOBS, minutes, strict=True)})


@pytest.fixture
def story() -> Comparison:
    return compare(ends("old", 20, 20, 30), ends("new", 12, 20, 43), seed=3)


def test_the_mean_difference_is_over_pairs(story: Comparison) -> None:
    assert story.paired == 3
    assert story.jct_ms.mean == pytest.approx((-8 + 0 + 13) / 3 * MINUTE)
    assert story.jct_ms.relative == pytest.approx(5 / 70, abs=1e-6)
    assert story.wait_ms.mean == story.jct_ms.mean


def test_three_jobs_do_not_decide_anything(story: Comparison) -> None:
    assert story.jct_ms.over is Over.JOBS
    assert story.jct_ms.verdict is Verdict.OPEN
    assert not story.standard.met


def test_winners_and_losers_are_named(story: Comparison) -> None:
    everybody = story.all_jobs
    assert (everybody.won, everybody.lost, everybody.even) == (1, 1, 1)
    assert [(w.job, w.reference_ms, w.other_ms) for w in story.winners] == [("a", 20 * MINUTE, 12 * MINUTE)]
    assert [(loser.job, loser.queue) for loser in story.losers] == [("c", "y")]
    assert [(b.name, b.won, b.lost, b.even) for b in story.by_size] == [("1", 1, 0, 0), ("2-8", 0, 1, 1)]
    assert [(b.name, b.won, b.lost, b.even) for b in story.by_queue] == [("x", 1, 0, 1), ("y", 0, 1, 0)]


def test_the_tail_is_a_ratio(story: Comparison) -> None:
    old, new = np.percentile([20, 20, 30], 99), np.percentile([12, 20, 43], 99)
    assert story.p99_ratio == pytest.approx(new / old, abs=1e-6)
    assert not story.standard.tail_kept


def test_ten_traces_are_enough_to_draw_traces() -> None:
    old = [ends("old", 20 + i, 20, 30) for i in range(10)]
    new = [ends("new", 14 + i, 17, 27) for i in range(10)]
    story = compare(old, new)
    assert story.jct_ms.over is Over.TRACES
    assert story.jct_ms.mean == story.jct_ms.low == story.jct_ms.high == pytest.approx(-4 * MINUTE)
    assert story.jct_ms.verdict is Verdict.LESS
    assert story.standard.met


def test_nine_traces_are_not() -> None:
    story = compare([ends("old", 20, 20, 30)] * 9, [ends("new", 19, 18, 27)] * 9)
    assert story.jct_ms.over is Over.JOBS
    assert not story.standard.enough_traces


def test_the_same_seed_gives_the_same_interval() -> None:
    a, b = ends("old", 20, 20, 30), ends("new", 12, 20, 43)
    assert compare(a, b, seed=3) == compare(a, b, seed=3)
    old = np.random.default_rng(0).exponential(10, (50, 1))
    assert differences([old], [2 * old], seed=3) != differences([old], [2 * old], seed=4)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        old = rng.exponential(10, (80, 1))
        (told,) = differences([old], [old + rng.normal(1.0, 2.0, (80, 1))], seed=1, resamples=300)
        assert told.low is not None and told.high is not None
        held += told.low <= 1.0 <= told.high
    assert held >= 88


def test_jobs_one_side_did_not_finish_are_counted_and_starved() -> None:
    old = ends("old", 20, 20, 30)
    new = measured("new", JOBS, {"a": [(0, 10)], "b": [(10, 20)]})
    story = compare(old, new)
    assert (story.paired, story.only_reference, story.only_other, story.neither) == (2, 1, 0, 0)
    assert story.starvation.unfinished == 1
    assert not story.standard.nobody_starved


def test_a_wait_beyond_twice_the_longest_of_the_reference_is_starvation() -> None:
    old = ends("old", 20, 20, 50)
    assert compare(old, ends("new", 12, 12, 130)).starvation.waited == 1
    story = compare(old, ends("new", 12, 12, 80)).starvation
    assert (story.waited, story.worst, story.worst_ms) == (0, "c", 70 * MINUTE)
    assert story.nobody


def test_different_jobs_are_not_compared() -> None:
    other = [job("z", 0, 1, 10)]
    with pytest.raises(MeasureError, match="same jobs"):
        compare(ends("old", 20, 20, 30), measured("new", other, {"z": [(0, 10)]}))
    with pytest.raises(MeasureError, match="cannot be paired"):
        compare([ends("old", 20, 20, 30)], [])
