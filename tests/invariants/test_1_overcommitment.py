"""No plan creates or worsens an over-commitment of a device, a node or a limit."""

import pytest

from tests.invariants.lives import LIVES, broken


@pytest.mark.parametrize("seed", LIVES)
def test_nothing_is_given_twice(seed: int) -> None:
    assert broken(seed, 1) == []
