"""Plans are deterministic and idempotent, and do not depend on the order in which facts arrived."""

import pytest

from optimus.testing import check_world, random_world
from tests.invariants.lives import LIVES, WORLDS, life


@pytest.mark.parametrize("seed", LIVES)
def test_deciding_again_changes_nothing(seed: int) -> None:
    assert [str(complaint) for _, complaints in life(seed) for complaint in complaints] == []


@pytest.mark.parametrize("seed", WORLDS)
def test_the_order_of_facts_does_not_matter(seed: int) -> None:
    assert [str(violation) for violation in check_world(random_world(seed), (9,))] == []
