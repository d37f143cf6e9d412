"""What a size is worth, and the sizes that make the sum largest."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from optimus.decide import knapsack, policies
from optimus.decide.knapsack import Choice, choose
from optimus.decide.policies import DEFAULT, Policy, SizeColumns, fill
from optimus.decide.policies.ranking import MOST

HOUR = 3_600_000
MINUTE = 60_000


def worth(policy: Policy, length: int = 2, **columns: Any) -> list[int]:
    given = {"age_ms": [HOUR] * length, "restart_cost_ms": [MINUTE] * length} | columns
    keys, condition = policies.size_worths(policy, fill(SizeColumns, length, **given))
    assert condition is None
    return [int(key) for key in keys]


LEAST = policies.get("least-attained-service")


@pytest.mark.parametrize("policy", [DEFAULT, LEAST])
class TestWhatASizeIsWorth:
    def test_the_first_doubling_is_worth_more_than_the_second(self, policy: Policy) -> None:
        one, two, three = worth(policy, 3, speed_milli=[1000, 2000, 3000])
        assert two - one > three - two > 0

    def test_the_present_size_is_worth_more_than_the_same_after_a_restart(self, policy: Policy) -> None:
        stays, changes = worth(policy, replicas=[4, 4], now_replicas=[4, 2], speed_milli=[3000, 3000])
        assert stays > changes

    def test_who_was_restarted_often_is_worth_less_to_restart_again(self, policy: Policy) -> None:
        rarely, often = worth(policy, replicas=[4, 4], now_replicas=[2, 2], restarts=[1, 9])
        assert rarely > often

    def test_who_has_had_little_comes_first(self, policy: Policy) -> None:
        young, old = worth(policy, worked_ms=[MINUTE, 9 * HOUR])
        assert young > old


def test_who_has_little_left_comes_first() -> None:
    short, long = worth(DEFAULT, left_ms=[10 * MINUTE, 9 * HOUR])
    assert short > long


def test_a_broken_sizing_falls_back_and_says_so() -> None:
    broken = Policy(name="broken-sizing", sizing=lambda sizes: sizes.speed_milli[:1])
    keys, condition = policies.size_worths(broken, fill(SizeColumns, 3))
    assert len(keys) == 3 and condition is not None and "1 values for 3 rows" in condition.message


def test_worths_are_whole_and_can_be_added() -> None:
    wild = Policy(name="wild", sizing=lambda sizes: sizes.speed_milli.astype(np.float64) * 1e300)
    assert worth(wild) == [MOST, MOST]


class TestTheKnapsack:
    def draw(self, seed: int) -> tuple[list[Choice], int]:
        dice = Random(seed)
        choices = []
        for _ in range(dice.randint(1, 4)):
            sizes = tuple(dice.sample((1, 2, 4, 8, 12), dice.randint(1, 4)))
            choices.append(Choice(sizes, tuple(dice.randint(-5, 60) for _ in sizes)))
        return choices, dice.randint(1, 30)

    @pytest.mark.parametrize("seed", range(60))
    def test_nothing_is_worth_more(self, seed: int) -> None:
        choices, capacity = self.draw(seed)
        every = [
            sum(choice.worths[n] for choice, n in zip(choices, numbers, strict=True))
            for numbers in product(*(range(len(choice.sizes)) for choice in choices))
            if sum(choice.sizes[n] for choice, n in zip(choices, numbers, strict=True)) <= capacity
        ]
        chosen = choose(choices, capacity)
        if chosen is None:
            assert not every
        else:
            assert sum(choice.worths[n] for choice, n in zip(choices, chosen, strict=True)) == max(every)

    @pytest.mark.parametrize("seed", range(20))
    def test_at_one_price_everything_fits(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(knapsack, "EXACT_STEPS", 0)
        choices, capacity = self.draw(seed)
        chosen = choose(choices, capacity)
        if chosen is not None:
            assert sum(choice.sizes[n] for choice, n in zip(choices, chosen, strict=True)) <= capacity

    def test_who_keeps_its_size_wins_a_tie(self) -> None:
        assert choose([Choice((2, 1, 4), (7, 7, 7))], 8) == [0]

    def test_everybody_has_a_size_or_nobody(self) -> None:
        assert choose([Choice((4,), (1,)), Choice((4,), (1,))], 7) is None
