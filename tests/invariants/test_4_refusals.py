"""What fits capacity and quota is not refused; identical workloads get the same answers in any order."""

import pytest

from optimus.testing import check_world, random_world
from tests.invariants.lives import LIVES, WORLDS, broken


@pytest.mark.parametrize("seed", LIVES)
def test_what_fits_does_not_wait(seed: int) -> None:
    assert broken(seed, 4) == []


@pytest.mark.parametrize("seed", WORLDS)
def test_alone_in_line_it_starts_and_copies_are_treated_alike(seed: int) -> None:
    assert [str(violation) for violation in check_world(random_world(seed), (4,))] == []
