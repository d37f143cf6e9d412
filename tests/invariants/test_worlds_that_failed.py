"""Worlds of the soak that were broken once, each for a reason of its own. They hold now, and shall.

10001   work with listed sizes was grown to its maximum, which was not among them
10230   work was moved "to faster devices" that were the ones it had: a node with several models passed for a fast one
10236   the checks took work that moves for itself for two that evict each other
10246   a gang that had lost its node and gave its last replica to another had no reason to wait
10334   a gang got a lost replica back, and without news the next plan moved it elsewhere
10471   the checks took a node for busy on which everything had ended well
"""

from __future__ import annotations

import pytest

from tests.soak import look


@pytest.mark.parametrize("seed", [10001, 10230, 10236, 10246, 10334, 10471])
def test_it_holds_now(seed: int) -> None:
    _, broken, _ = look(seed)
    assert broken == []
