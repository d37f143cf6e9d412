"""What queues are due at one moment: guarantees first, the rest by weight, nobody more than it asks for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optimus.drivers.sim.measuring.fairness import divide


def due(there: float, asked: list[float], guarantees: list[float], weights: list[float]) -> list[float]:
    shares = divide(np.array([float(there)]), np.array(asked, float)[:, None], np.array(guarantees), np.array(weights))
    return [float(x) for x in np.round(shares[:, 0], 9)]


def test_who_asks_for_little_gets_it_and_the_others_share_the_rest() -> None:
    assert due(8, [1, 10, 10], [0, 0, 0], [1, 1, 1]) == [1, 3.5, 3.5]


def test_weights_divide_what_is_contended() -> None:
    assert due(9, [10, 10], [0, 0], [2, 1]) == [6, 3]


def test_a_guarantee_comes_first_as_far_as_it_is_asked_for() -> None:
    assert due(8, [6, 10], [6, 0], [1, 1]) == [6, 2]
    assert due(8, [2, 10], [6, 0], [1, 1]) == [2, 6]


def test_guarantees_that_cannot_all_be_kept_shrink_alike() -> None:
    assert due(4, [6, 2], [6, 2], [1, 1]) == [3, 1]


@given(
    there=st.floats(0, 100),
    queues=st.lists(st.tuples(st.floats(0, 50), st.floats(0, 20), st.floats(0.1, 5)), min_size=1, max_size=6),
)
def test_all_is_given_out_and_nobody_gets_more_than_it_asks_for(
    there: float, queues: list[tuple[float, float, float]]
) -> None:
    asked, guarantees, weights = (list(column) for column in zip(*queues, strict=True))
    shares = np.array(due(there, asked, guarantees, weights))
    assert (shares <= np.array(asked) + 1e-6).all()
    assert np.isclose(shares.sum(), min(there, sum(asked)), atol=1e-5)
