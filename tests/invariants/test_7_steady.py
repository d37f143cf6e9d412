"""With a fixed set of workloads the loop comes to rest."""

import pytest

from optimus.testing import check_world, random_world
from tests.invariants.lives import WORLDS


@pytest.mark.parametrize("seed", WORLDS)
def test_a_steady_state_is_reached(seed: int) -> None:
    assert [str(violation) for violation in check_world(random_world(seed), (7,))] == []
