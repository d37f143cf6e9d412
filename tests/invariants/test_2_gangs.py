"""A gang starts whole or not at all, where it may, in a shape it may have; below its minimum it does not go on."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_gangs_stay_whole(seed: int) -> None:
    assert broken(seed, 2) == []
