"""With finite work every admitted workload starts in bounded time."""

import pytest

from optimus.testing import check_world, random_world
from tests.invariants.lives import WORLDS


@pytest.mark.parametrize("seed", WORLDS)
def test_everybody_starts(seed: int) -> None:
    assert [str(violation) for violation in check_world(random_world(seed), (8,))] == []
