"""Evictions are parts of complete statements with minimal victims that were the beneficiary's to take."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_nobody_is_evicted_for_nothing(seed: int) -> None:
    assert broken(seed, 6) == []
