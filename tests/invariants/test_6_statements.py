"""Evictions are parts of complete statements with minimal victims that were the beneficiary's to take."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_nobody_is_evicted_for_nothing(seed: int) -> None:
    assert broken(seed, 6) == []


@pytest.mark.parametrize("seed", [40034, 60279], ids=["a start that is taken back", "growth that is taken back"])
def test_what_a_plan_takes_back_costs_nobody_its_place(seed: int) -> None:
    assert broken(seed, 6) == []
