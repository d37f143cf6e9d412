"""Nobody waits inside its guarantee while preemptible work outside its own runs on capacity it could use."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_nobody_waits_inside_its_guarantee(seed: int) -> None:
    assert broken(seed, 5) == []
