"""Each built-in order tells one story: who goes first, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optimus.decide import policies
from optimus.decide.policies import WorkloadColumns, fill, orders

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def serve(policy: str, *names: str, **columns: Any) -> str:
    """Names in the order in which the policy serves them; a tie goes to whoever was named first."""
    keys, condition = policies.order_keys(policies.get(policy), fill(WorkloadColumns, len(names), **columns))
    assert condition is None
    return " ".join(names[row] for row in np.argsort(keys, kind="stable"))


def test_fifo_serves_by_arrival() -> None:
    assert serve("fifo", "late", "early", submitted_ms=[9, 2]) == "early late"


def test_priority_serves_the_important_first_and_equals_by_arrival() -> None:
    assert serve("priority", "a", "b", "boss", submitted_ms=[5, 1, 9], priority=[1, 1, 7]) == "boss b a"


def test_priority_is_fifo_once_priorities_are_sorted() -> None:
    columns = fill(WorkloadColumns, 3, submitted_ms=[5, 1, 9], priority=[4, 4, 4])
    by_priority, _ = policies.order_keys(policies.get("priority"), columns)
    by_arrival, _ = policies.order_keys(policies.get("fifo"), columns)
    assert by_priority.tolist() == by_arrival.tolist()


class TestShortestFirst:
    def test_counts_time_times_size(self) -> None:
        order = serve("shortest-first", "1h x 8", "4h x 1", expected_ms=[HOUR, 4 * HOUR], size_milli=[8000, 1000])
        assert order == "4h x 1 1h x 8"

    def test_counts_what_is_left_and_not_what_was(self) -> None:
        order = serve(
            "shortest-first", "2h fresh", "9h nearly done", expected_ms=[2 * HOUR, 9 * HOUR], elapsed_ms=[0, 8 * HOUR]
        )
        assert order == "9h nearly done 2h fresh"

    def test_believes_declaration_then_family_then_the_long_end_of_the_queue(self) -> None:
        order = serve(
            "shortest-first",
            *("stranger", "of the queue", "of a family", "declared"),
            expected_ms=[-1, -1, -1, 3 * HOUR],
            family_mean_ms=[-1, -1, 4 * HOUR, 9 * HOUR],
            queue_high_ms=[-1, 5 * HOUR, 9 * HOUR, 9 * HOUR],
        )
        assert order == "declared of a family of the queue stranger"

    def test_work_that_overran_is_not_taken_for_finished(self) -> None:
        order = serve("shortest-first", "overran", "10 min", expected_ms=[HOUR, 10 * MINUTE], elapsed_ms=[8 * HOUR, 0])
        assert order == "10 min overran"


class TestLeastAttainedService:
    def test_little_service_first_by_levels_of_3_and_10_gpu_hours(self) -> None:
        attained = [11 * HOUR, 4 * HOUR, 1 * HOUR]
        assert serve("least-attained-service", "much", "some", "little", attained_gpu_ms=attained) == "little some much"

    def test_arrival_inside_a_level_so_that_equals_do_not_take_turns(self) -> None:
        attained = [2 * HOUR, 1 * HOUR]
        assert (
            serve("least-attained-service", "early", "late", attained_gpu_ms=attained, submitted_ms=[1, 2])
            == "early late"
        )

    def test_a_threshold_belongs_to_the_upper_level(self) -> None:
        attained = [3 * HOUR, 3 * HOUR - 1]
        assert serve("least-attained-service", "at", "below", attained_gpu_ms=attained) == "below at"

    def test_tiresias_own_single_threshold_is_one_call(self) -> None:
        tiresias = orders.attained_levels(16 * HOUR)
        keys = tiresias(fill(WorkloadColumns, 3, attained_gpu_ms=[17 * HOUR, 15 * HOUR, 0], submitted_ms=[1, 2, 3]))
        assert keys.tolist() == [2, 0, 1]


class TestDeadline:
    def test_earliest_deadline_first_then_work_without_one(self) -> None:
        order = serve("deadline", "none", "tomorrow", "tonight", deadline_ms=[-1, 2 * DAY, DAY], expected_ms=[HOUR] * 3)
        assert order == "tonight tomorrow none"

    def test_a_hopeless_deadline_pushes_nobody_aside(self) -> None:
        order = serve(
            "deadline", "hopeless", "can be met", deadline_ms=[HOUR, 9 * HOUR], expected_ms=[2 * HOUR, 2 * HOUR]
        )
        assert order == "can be met hopeless"

    def test_a_hopeless_deadline_is_not_punished_among_work_without_one(self) -> None:
        order = serve(
            "deadline", "none", "hopeless", deadline_ms=[-1, HOUR], expected_ms=[-1, DAY], submitted_ms=[7, 3]
        )
        assert order == "hopeless none"

    def test_exactly_in_time_can_be_met(self) -> None:
        order = serve(
            "deadline", "tight", "easy", now_ms=HOUR, deadline_ms=[2 * HOUR, 9 * HOUR], expected_ms=[HOUR, HOUR]
        )
        assert order == "tight easy"

    def test_an_unknown_run_time_is_hopeless_only_when_the_deadline_has_passed(self) -> None:
        assert serve("deadline", "later", "soon", now_ms=5, deadline_ms=[9, 6]) == "soon later"
        assert serve("deadline", "later", "soon", now_ms=7, deadline_ms=[9, 6]) == "later soon"


class TestFinishTimeFairness:
    def test_the_same_wait_hurts_short_work_more(self) -> None:
        order = serve("finish-time-fairness", "long", "short", waiting_ms=[HOUR, HOUR], expected_ms=[DAY, HOUR])
        assert order == "short long"

    def test_the_longer_wait_first_among_equals(self) -> None:
        order = serve("finish-time-fairness", "new", "old", waiting_ms=[HOUR, 3 * HOUR], expected_ms=[DAY, DAY])
        assert order == "old new"

    def test_work_larger_than_the_share_would_be_slow_alone_too(self) -> None:
        order = serve(
            "finish-time-fairness",
            *("twice the share", "inside"),
            waiting_ms=[2 * HOUR, 2 * HOUR],
            expected_ms=[HOUR, HOUR],
            size_milli=[8000, 4000],
            entitled_milli=[4000, 4000],
        )
        assert order == "inside twice the share"

    def test_what_arrived_together_stays_in_order_of_arrival(self) -> None:
        assert (
            serve("finish-time-fairness", "first", "second", waiting_ms=[5, 9], expected_ms=[DAY, DAY])
            == "first second"
        )


def test_fair_share_only_leaves_everything_to_the_shares() -> None:
    policy = policies.get("fair-share-only")
    assert serve("fair-share-only", "long", "short", submitted_ms=[1, 2], expected_ms=[DAY, HOUR]) == "long short"
    costs, _ = policies.victim_costs(policy, fill(policies.VictimColumns, 2, lost_ms=[0, DAY]))
    assert costs[0] == costs[1]
    worth, _ = policies.growth_keys(policy, fill(policies.ElasticColumns, 2, replicas=[2, 1], attained_gpu_ms=[0, DAY]))
    assert worth[1] > worth[0] > 0


class TestDefault:
    def test_least_gpu_time_left_goes_first(self) -> None:
        order = serve("default", "1h x 8", "4h x 1", expected_ms=[HOUR, 4 * HOUR], size_milli=[8000, 1000])
        assert order == "4h x 1 1h x 8"

    def test_a_prediction_is_believed_before_the_family_and_the_family_before_a_guess(self) -> None:
        columns = fill(WorkloadColumns, 3, expected_ms=[HOUR, -1, -1], family_mean_ms=[DAY, 2 * HOUR, -1])
        assert orders.remaining_ms(columns).tolist() == [HOUR, 2 * HOUR, 10 * MINUTE]

    def test_work_that_outlived_its_declaration_is_judged_by_its_family(self) -> None:
        columns = fill(WorkloadColumns, 1, expected_ms=[HOUR], family_mean_ms=[5 * HOUR], elapsed_ms=[3 * HOUR])
        assert orders.remaining_ms(columns).tolist() == [2 * HOUR]

    def test_work_that_outlived_everything_has_a_quarter_of_its_age_left(self) -> None:
        columns = fill(WorkloadColumns, 2, expected_ms=[HOUR, 10], family_mean_ms=[-1, 20], elapsed_ms=[8 * HOUR, 30])
        assert orders.remaining_ms(columns).tolist() == [2 * HOUR, MINUTE]

    def test_work_that_outlived_its_whole_family_is_not_taken_for_unknown(self) -> None:
        columns = fill(WorkloadColumns, 2, family_mean_ms=[0, -1], elapsed_ms=[8 * HOUR, 8 * HOUR])
        assert orders.remaining_ms(columns).tolist() == [2 * HOUR, 8 * HOUR]

    def test_the_unknown_is_taken_for_short_until_it_proves_long(self) -> None:
        assert serve("default", "30 min", "unknown", expected_ms=[30 * MINUTE, -1]) == "unknown 30 min"
        order = serve("default", "30 min", "unknown", expected_ms=[30 * MINUTE, -1], elapsed_ms=[0, HOUR])
        assert order == "30 min unknown"

    @pytest.mark.parametrize(("fresh_minutes", "first"), [(70, "running"), (45, "fresh")])
    def test_running_work_yields_only_to_what_is_much_shorter(self, fresh_minutes: int, first: str) -> None:
        left = [fresh_minutes * MINUTE, 100 * MINUTE]
        assert serve("default", "fresh", "running", expected_ms=left, is_running=[False, True]).startswith(first)

    def test_what_was_stopped_goes_on_before_its_equals_begin(self) -> None:
        left = [60 * MINUTE, 85 * MINUTE]
        order = serve("default", "fresh", "stopped", expected_ms=left, elapsed_ms=[0, 20 * MINUTE])
        assert order == "stopped fresh"

    def test_long_work_does_not_wait_for_ever_behind_newcomers(self) -> None:
        def first(waited_ms: int) -> str:
            return serve("default", "short", "long", expected_ms=[HOUR, 5 * HOUR], waiting_ms=[0, waited_ms]).split()[0]

        assert first(1 * DAY) == "short"
        assert first(3 * DAY) == "long"

    def test_a_wait_of_twelve_hours_halves_the_value(self) -> None:
        keys = orders.default(fill(WorkloadColumns, 2, expected_ms=[HOUR, 2 * HOUR], waiting_ms=[0, 12 * HOUR]))
        assert keys[0] == keys[1]


def test_every_order_serves_an_empty_queue() -> None:
    for name in policies.names():
        keys, condition = policies.order_keys(policies.get(name), fill(WorkloadColumns, 0))
        assert (keys.tolist(), condition) == ([], None)


def test_the_documented_policies_are_there() -> None:
    assert policies.names() == (
        "deadline",
        "default",
        "fair-share-only",
        "fifo",
        "finish-time-fairness",
        "least-attained-service",
        "priority",
        "shortest-first",
    )
    assert all(policies.get(name).doc for name in policies.names())
