"""Every plan has one reason for each workload that waits, shares that add up, and a form that survives the journal."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_every_plan_is_well_formed(seed: int) -> None:
    assert broken(seed, 0) == []
