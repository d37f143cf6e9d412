"""Linear programmes from the inside: the middle of what is equally good."""

from __future__ import annotations

import numpy as np
import pytest

from optimus.drivers.sim.peers.from_inside import from_inside

TRIANGLE = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])  # x + y <= 1, x >= 0, y >= 0
BOUND = np.array([1.0, 0.0, 0.0])


def test_the_best_corner_is_found_where_there_is_one() -> None:
    assert from_inside(np.array([-2.0, -1.0]), TRIANGLE, BOUND, np.ones(3)) == pytest.approx([1, 0], abs=1e-6)


def test_of_a_best_edge_it_is_the_middle() -> None:
    assert from_inside(np.array([-1.0, -1.0]), TRIANGLE, BOUND, np.ones(3)) == pytest.approx([0.5, 0.5], abs=1e-6)


def test_a_row_that_stands_for_three_is_as_good_as_three_rows() -> None:
    """max x + y under x + y <= 1 and 2 x <= 1.5, the latter three times."""
    cost = np.array([-1.0, -1.0])
    row, bound = np.array([[2.0, 0.0]]), np.array([1.5])
    once = from_inside(cost, np.vstack([TRIANGLE, row]), np.concatenate([BOUND, bound]), np.array([1.0, 1.0, 1.0, 3.0]))
    thrice = from_inside(
        cost, np.vstack([TRIANGLE, row, row, row]), np.concatenate([BOUND, bound, bound, bound]), np.ones(6)
    )
    assert once == pytest.approx(thrice, abs=1e-7)
