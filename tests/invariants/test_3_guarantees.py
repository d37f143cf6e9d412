"""Non-preemptible work stays inside the guarantee at every level; limits hold at every level."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_nothing_is_admitted_outside(seed: int) -> None:
    assert broken(seed, 3) == []
