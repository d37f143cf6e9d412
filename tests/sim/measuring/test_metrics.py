"""One afternoon on four GPUs, worked out by hand.

minute   0      10     20      30      60     70     80      101        121
a (4)    [────────── runs ──────────────]                                     vision, ideal 60, deadline 60
b (2)           wait ──────────────────►[ runs ] wait [ runs, 1 paused ]      speech, ideal 30
c (1)                  refused                                                speech
d (2)                          wait ────────────────────────► [ runs … not finished   vision, ideal 100, deadline 90
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from optimus.drivers.sim.measuring import Measured, MeasureError, measure
from optimus.drivers.sim.setup import Outage
from tests.sim.measuring.worlds import FOUR_GPUS, MINUTE, job, measured, record

JOBS = [
    job("a", 0, 4, 60, queue="vision", deadline=60),
    job("b", 10, 2, 30, queue="speech"),
    job("c", 20, 1, 10, queue="speech"),
    job("d", 30, 2, 100, queue="vision", deadline=90),
]


@pytest.fixture
def afternoon() -> Measured:
    told = record("by hand", JOBS, {"a": [(0, 60)], "b": [(60, 70), (80, 101)], "d": [(101, 121)]}, open_=("d",))
    _, b, c, d = told.jobs
    b.preemptions, b.restarts, b.resizes = 1, 1, 0
    b.paused_gpu_ms, b.leaving_gpu_ms = 2 * MINUTE, 2 * MINUTE
    c.rejected, c.rejected_ms = "too large", 20 * MINUTE
    d.done, d.lost, d.losses = 0.1, 0.1, 1
    return measure(told, JOBS, FOUR_GPUS, decision_ms=np.array([1.0, 2.0, 3.0]))


def test_every_job_is_counted_once(afternoon: Measured) -> None:
    told = afternoon.metrics
    assert (told.jobs, told.finished, told.rejected, told.unfinished) == (4, 2, 1, 1)
    assert told.never_started == 0


def test_completion_is_from_submission_to_end(afternoon: Measured) -> None:
    jct = afternoon.metrics.jct_ms
    assert jct.count == 2
    assert jct.average == jct.median == 75.5 * MINUTE
    assert jct.p90 == pytest.approx((60 + 0.9 * 31) * MINUTE)
    assert jct.p99 == pytest.approx((60 + 0.99 * 31) * MINUTE)
    assert jct.max == 91 * MINUTE


def test_size_classes_are_by_gpus_asked_for(afternoon: Measured) -> None:
    by_size = afternoon.metrics.jct_ms_by_size
    assert {name: spread.count for name, spread in by_size.items()} == {"1": 0, "2-8": 2}
    assert by_size["1"].average is None


def test_waiting_until_the_first_start_is_not_all_the_waiting(afternoon: Measured) -> None:
    assert afternoon.metrics.first_wait_ms.average == 25 * MINUTE
    assert afternoon.metrics.wait_ms.average == 30 * MINUTE  # b waited ten minutes more when it was stopped


def test_the_longest_wait_also_looks_at_who_did_not_finish(afternoon: Measured) -> None:
    assert afternoon.metrics.longest_wait_ms == 71 * MINUTE
    assert afternoon.metrics.longest_waiter == "d"


def test_slowdown_is_against_the_ideal(afternoon: Measured) -> None:
    assert afternoon.metrics.slowdown.average == pytest.approx((1 + 91 / 30) / 2)


def test_makespan_is_until_the_last_completion(afternoon: Measured) -> None:
    assert afternoon.metrics.makespan_ms == 101 * MINUTE


def test_allocated_useful_and_goodput_are_three_things(afternoon: Measured) -> None:
    use = afternoon.metrics.use
    there = 121 * 4
    assert use.gpu_hours == pytest.approx((240 + 62 + 40) / 60)
    assert use.paused_gpu_hours == pytest.approx(2 / 60, abs=1e-6)
    assert use.lost_gpu_hours == pytest.approx(20 / 60, abs=1e-6)  # half of what d did was lost
    assert use.useful_gpu_hours == pytest.approx((240 + 60 + 20) / 60)
    assert use.leaving_gpu_hours == pytest.approx(2 / 60, abs=1e-6)
    assert use.allocated == pytest.approx((342 + 2) / there, abs=1e-6)
    assert use.useful == pytest.approx(320 / there, abs=1e-6)
    assert use.goodput == pytest.approx((240 + 60 + 0.1 * 200) / there, abs=1e-6)


def test_idle_gpus_count_while_somebody_waits(afternoon: Measured) -> None:
    """Somebody waits from minute 10 to 101: a holds 4 for 50 of them, b holds 2 for 31."""
    assert afternoon.metrics.use.allocated_while_waiting == pytest.approx((200 + 62) / (91 * 4), abs=1e-6)


def test_spread_work_lowers_goodput_but_not_use() -> None:
    jobs = [job("slow", 0, 4, 30)]
    told = measured("spread", jobs, {"slow": [(0, 60)]}).metrics.use
    assert (told.allocated, told.useful, told.goodput) == (1.0, 1.0, 0.5)


def test_seats_kept_for_an_incomplete_gang_are_allocated_and_of_no_use() -> None:
    jobs = [job("a", 0, 2, 60), job("b", 0, 4, 60)]
    told = record("partial", jobs, {"a": [(0, 60)], "b": [(60, 120)]})
    told.jobs[1].held_gpu_ms = 2 * 60 * MINUTE
    use = measure(told, jobs, FOUR_GPUS).metrics.use
    assert (use.allocated, use.useful, use.kept_gpu_hours) == (1.0, 0.75, 2.0)


def test_gpus_of_a_lost_node_are_not_there() -> None:
    setup = structs.replace(
        FOUR_GPUS,
        outages=(
            Outage(node="gpu-0", at_ms=60 * MINUTE, for_ms=60 * MINUTE),
            Outage(node="gpu-0", at_ms=90 * MINUTE, for_ms=30 * MINUTE),
        ),
    )
    jobs = [job("a", 0, 4, 120)]
    told = measured("outage", jobs, {"a": [(0, 60), (120, 180)]}, setup).metrics.use
    assert told.allocated == 1.0


def test_rho_compares_with_an_equal_share(afternoon: Measured) -> None:
    """a: beside 140/60 jobs on average it asks for all four GPUs, so alone it takes 140 minutes.
    b: beside 212/91 jobs its share is 4 / 2.33 = 1.72 of the 2 GPUs it asks for, so alone it takes 34.9 minutes."""
    assert afternoon.rho[0] == pytest.approx(60 / 140)
    assert afternoon.rho[1] == pytest.approx(91 / (30 * 2 * (212 / 91) / 4))
    assert np.isnan(afternoon.rho[2:]).all()
    assert afternoon.metrics.rho.above == 0.5
    assert afternoon.metrics.rho.spread.max == pytest.approx(2.604088, abs=1e-6)


def test_a_share_larger_than_the_request_makes_nobody_faster() -> None:
    jobs = [job("a", 0, 1, 10), job("b", 0, 1, 10)]
    told = measured("both at once", jobs, {"a": [(0, 10)], "b": [(0, 10)]})
    assert told.rho.tolist() == [1.0, 1.0]
    assert told.metrics.rho.above == 0.0


def test_deadlines_of_all_that_were_submitted(afternoon: Measured) -> None:
    assert (afternoon.metrics.deadlines, afternoon.metrics.deadlines_met) == (2, 1)


def test_disturbances_are_added_up(afternoon: Measured) -> None:
    told = afternoon.metrics
    assert (told.preemptions, told.restarts, told.resizes, told.failures, told.losses) == (1, 1, 0, 0, 1)
    assert told.gpu_hours_per_job.average == pytest.approx((240 + 62) / 2 / 60)


def test_queues_are_compared_with_their_due(afternoon: Measured) -> None:
    """Both ask for at least two GPUs from minute 10 to 101; before and after, vision alone asks for 4 and for 2."""
    speech, vision = afternoon.metrics.queues
    assert (speech.queue, speech.jobs, speech.finished) == ("speech", 2, 1)
    assert vision.due_gpu_hours == pytest.approx((40 + 182 + 40) / 60)
    assert speech.due_gpu_hours == pytest.approx(182 / 60)
    assert vision.share == pytest.approx(280 / 484, abs=1e-6)
    assert speech.due_share == pytest.approx(182 / 484, abs=1e-6)
    assert speech.wait_ms.average == 60 * MINUTE
    x = np.array([62 / 182, 280 / 262])
    assert afternoon.metrics.jain == pytest.approx(x.sum() ** 2 / (2 * (x * x).sum()), abs=1e-5)


def test_decision_times_are_given_or_absent(afternoon: Measured) -> None:
    assert afternoon.metrics.decision_ms is not None
    assert afternoon.metrics.decision_ms.median == 2.0
    assert measured("no timer", JOBS[:1], {"a": [(0, 60)]}).metrics.decision_ms is None


def test_nothing_at_all_is_measured_too() -> None:
    told = measured("empty", [], {}).metrics
    assert (told.jobs, told.jct_ms.average, told.use.allocated, told.jain) == (0, None, None, None)


def test_a_job_that_never_started_is_not_hidden() -> None:
    jobs = [job("a", 0, 4, 60), job("b", 5, 8, 60)]
    told = measure(record("stuck", jobs, {"a": [(0, 60)]}, end=60), jobs, FOUR_GPUS).metrics
    assert (told.unfinished, told.never_started) == (1, 1)
    assert (told.longest_wait_ms, told.longest_waiter) == (55 * MINUTE, "b")


def test_a_record_of_other_jobs_is_refused() -> None:
    told = record("x", JOBS, {"a": [(0, 60)]})
    with pytest.raises(MeasureError, match="not of these jobs"):
        measure(told, JOBS[:2], FOUR_GPUS)
