"""Who gets the next replica, how fast it makes work, and what a victim costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from optimus.decide import policies
from optimus.decide.policies import (
    DEFAULT,
    ElasticColumns,
    Policy,
    VictimColumns,
    costs,
    fill,
    growth,
    ranking,
    speed_milli,
)
from optimus.decide.policies.curves import log

HOUR = 3_600_000


def worth(policy: Policy, length: int = 2, **columns: Any) -> list[int]:
    keys, condition = policies.growth_keys(policy, fill(ElasticColumns, length, **columns))
    assert condition is None
    return [int(key) for key in keys]


class TestDefaultGrowth:
    def test_the_first_doubling_is_worth_more_than_the_second(self) -> None:
        small, large = worth(DEFAULT, speed_milli=[1000, 2000], next_speed_milli=[2000, 3000])
        assert small > large > 0

    def test_the_same_gain_for_fewer_gpus_is_worth_more(self) -> None:
        cheap, dear = worth(DEFAULT, step_milli=[1000, 8000])
        assert cheap > dear

    def test_work_that_had_little_comes_first(self) -> None:
        young, old = worth(DEFAULT, attained_gpu_ms=[HOUR, 50 * HOUR])
        assert young > old

    def test_a_step_that_brings_nothing_or_harm_is_not_taken(self) -> None:
        nothing, harm = worth(DEFAULT, speed_milli=[2000, 2000], next_speed_milli=[2000, 1500])
        assert nothing == 0 > harm

    def test_it_is_rule_e2(self) -> None:
        value = growth.default(
            fill(ElasticColumns, 1, attained_gpu_ms=[HOUR], speed_milli=[1960], next_speed_milli=[3773])
        )
        assert value[0] == pytest.approx((600 + 3600) ** -0.25 * math.log((3.773 + 0.001) / (1.960 + 0.001)), rel=1e-12)

    def test_a_step_can_be_compared_with_one_of_an_earlier_call(self) -> None:
        (alone,) = worth(DEFAULT, 1, attained_gpu_ms=[HOUR])
        assert worth(DEFAULT, 3, attained_gpu_ms=[0, HOUR, 9 * HOUR])[1] == alone


def test_growth_by_remaining_prefers_what_is_nearly_done() -> None:
    policy = policies.get("shortest-first")
    short, long, unknown = worth(policy, 3, remaining_ms=[HOUR, 9 * HOUR, -1], attained_gpu_ms=[0, 0, 3 * HOUR])
    assert short > unknown > long > 0


def test_the_logarithm_is_exact_enough_and_the_same_at_every_row() -> None:
    numbers = np.concatenate([np.geomspace(1, 1e15, 4001), np.arange(1.0, 4000.0)])
    assert np.allclose(log(numbers), np.log(numbers), rtol=1e-15, atol=2e-15)
    for shift in (1, 2, 3, 5, 7):
        assert (log(numbers)[shift:] == log(numbers[shift:].copy())).all()


class TestSpeed:
    def test_the_default_curve_is_concave_and_growing(self) -> None:
        curve = [speed_milli(replicas) for replicas in range(200)]
        gains = np.diff(curve)
        assert curve[:3] == [0, 1000, 1960]
        assert curve[8] == 7017
        assert (gains > 0).all()
        assert (np.diff(gains) <= 1).all()  # up to rounding

    def test_measured_speeds_are_believed(self) -> None:
        assert [speed_milli(n, (100, 150, 140)) for n in (1, 2, 3)] == [1000, 1500, 1400]

    def test_beyond_the_measured_the_curve_goes_on_from_there(self) -> None:
        assert speed_milli(4, (100, 180)) == 1800 * speed_milli(4) // speed_milli(2)

    def test_a_curve_that_fell_is_not_hoped_to_rise(self) -> None:
        assert speed_milli(9, (100, 150, 140)) == 1400

    def test_nonsense_is_no_speed(self) -> None:
        assert [speed_milli(-1), speed_milli(0, (100,)), speed_milli(1, (-5,))] == [0, 0, 0]


class TestVictimCost:
    def test_restart_plus_lost_work_times_gpus(self) -> None:
        columns = fill(VictimColumns, 2, restart_cost_ms=[60_000, 0], lost_ms=[0, 10_000], size_milli=[8000, 8000])
        assert costs.default(columns).tolist() == [60_000_000, 80_000_000]

    def test_one_victim_beats_two_halves(self) -> None:
        columns = fill(VictimColumns, 2, restart_cost_ms=[60_000] * 2, lost_ms=[5_000] * 2, size_milli=[8000, 4000])
        whole, half = costs.default(columns)
        assert whole < 2 * half

    def test_a_fresh_checkpoint_makes_cheap(self) -> None:
        fresh, stale = costs.default(fill(VictimColumns, 2, lost_ms=[1_000, HOUR]))
        assert fresh < stale

    def test_a_thousand_of_the_dearest_can_be_added(self) -> None:
        largest = np.full(1000, np.iinfo(np.int64).max)
        dear = costs.default(fill(VictimColumns, 1000, restart_cost_ms=largest, lost_ms=largest, size_milli=largest))
        assert int(dear.sum()) == 1000 * ranking.MOST

    def test_all_victims_alike_still_counts_them(self) -> None:
        assert costs.flat(fill(VictimColumns, 3)).tolist() == [1, 1, 1]
