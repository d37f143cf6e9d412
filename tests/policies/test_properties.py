"""What holds for all numbers: order is kept, rows are judged alike wherever they stand, nothing raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from optimus.decide import policies
from optimus.decide.policies import ElasticColumns, NodeColumns, Policy, VictimColumns, WorkloadColumns, orders, ranking

EXTREME = np.iinfo(np.int64)
INTEGERS = st.one_of(
    st.sampled_from([EXTREME.min, EXTREME.min + 1, -1, 0, 1, 1000, 60_000, 1 << 53, EXTREME.max - 1, EXTREME.max]),
    st.integers(-10, 10**9),
    st.integers(EXTREME.min, EXTREME.max),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)

PARTS: list[tuple[str, type, Callable[[Policy, Any], policies.Evaluated]]] = [
    ("order", WorkloadColumns, policies.order_keys),
    ("growth", ElasticColumns, policies.growth_keys),
    ("victim_cost", VictimColumns, policies.victim_costs),
    ("placement", NodeColumns, policies.placement_keys),
]


@st.composite
def columns_of(draw: st.DrawFn, kind: type, most: int = 12) -> Any:
    length = draw(st.integers(0, most))
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.type == "int":
            values[field.name] = draw(INTEGERS)
        elif field.type == "BoolArray":
            values[field.name] = draw(arrays.arrays(np.bool_, length))
        else:
            values[field.name] = np.array(draw(st.lists(INTEGERS, min_size=length, max_size=length)), dtype=np.int64)
    return kind(**values)


def rows(columns: Any, chosen: Any) -> Any:
    values = {field.name: getattr(columns, field.name) for field in fields(columns)}
    return type(columns)(
        **{name: value[chosen] if isinstance(value, np.ndarray) else value for name, value in values.items()}
    )


@pytest.mark.parametrize(("part", "kind", "keys_of"), PARTS, ids=[part for part, _, _ in PARTS])
@given(data=st.data())
def test_built_ins_never_fail_and_do_not_care_where_a_row_stands(
    part: str, kind: type, keys_of: Callable[[Policy, Any], policies.Evaluated], data: st.DataObject
) -> None:
    columns = data.draw(columns_of(kind))
    shuffle = np.array(data.draw(st.permutations(range(len(columns)))), dtype=np.int64)
    for name in policies.names():
        keys, condition = keys_of(policies.get(name), columns)
        assert condition is None, (name, part)
        assert keys.dtype == np.int64
        assert len(keys) == len(columns)
        shuffled, _ = keys_of(policies.get(name), rows(columns, shuffle))
        assert shuffled.tolist() == keys[shuffle].tolist(), (name, part)
        again, _ = keys_of(policies.get(name), columns)
        assert again.tolist() == keys.tolist()


@pytest.mark.parametrize(("part", "kind", "keys_of"), PARTS, ids=[part for part, _, _ in PARTS])
@given(data=st.data())
def test_equal_rows_are_equal_in_a_long_list_too(
    part: str, kind: type, keys_of: Callable[[Policy, Any], policies.Evaluated], data: st.DataObject
) -> None:
    """Vector instructions treat the last rows of an array apart; the result must not show it."""
    columns = data.draw(columns_of(kind, most=3))
    repeated = rows(columns, np.tile(np.arange(len(columns)), 37))
    for name in policies.names():
        keys, _ = keys_of(policies.get(name), repeated)
        assert len(set(keys.tolist())) <= len(columns), (name, part)


@given(st.lists(st.integers(EXTREME.min, EXTREME.max), max_size=30))
def test_ranks_keep_the_order_of_integers_and_ties(values: list[int]) -> None:
    distinct = sorted(set(values))
    keys = ranking.rank_keys(np.array(values, dtype=np.int64))
    assert keys.tolist() == [distinct.index(value) for value in values]


@given(st.lists(FINITE, max_size=30))
def test_keys_keep_the_order_and_the_sign_of_floats(values: list[float]) -> None:
    column = np.array(values, dtype=np.float64)
    by_value = np.argsort(column, kind="stable")
    for keys in (ranking.rank_keys(column), ranking.value_keys(column)):
        assert (np.diff(keys[by_value]) >= 0).all()
    assert ((ranking.value_keys(column) > 0) <= (column > 0)).all()
    assert ((ranking.value_keys(column) < 0) <= (column < 0)).all()


@given(st.floats(1e-300, 1e300), st.floats(1e-11, 1.0))
def test_floats_that_differ_visibly_stay_apart_and_the_last_bits_do_not_count(value: float, by: float) -> None:
    keys = ranking.value_keys(np.array([value, value * (1 + by), 0.0, -0.0]))
    assert keys[0] < keys[1]
    assert keys[2] == keys[3] == 0
    near = ranking.value_keys(np.array([value, np.nextafter(value, np.inf)]))
    assert 0 <= near[1] - near[0] <= 1


def test_what_differs_by_rounding_only_is_a_tie() -> None:
    pairs = np.array([[0.1 + 0.2, 0.3], [np.nextafter(1.0, 0.0), 1.0], [-np.nextafter(1.0, 2.0), -1.0]])
    assert ranking.value_keys(pairs[:, 0]).tolist() == ranking.value_keys(pairs[:, 1]).tolist()


@given(arrays.arrays(np.uint64, st.integers(0, 9)))
def test_unsigned_integers_keep_their_order_up_to_the_largest(values: np.ndarray) -> None:
    keys = ranking.value_keys(values)
    assert keys.tolist() == [min(int(value), EXTREME.max) for value in values]


@given(st.lists(FINITE, max_size=30))
def test_levels_keep_the_order_in_twenty_bits(values: list[float]) -> None:
    column = np.array(values, dtype=np.float64)
    keys = ranking.level_keys(column)
    assert ((keys >= 0) & (keys < 1 << ranking.LEVEL_BITS)).all()
    assert (np.diff(keys[np.argsort(column, kind="stable")]) >= 0).all()


def test_levels_tell_a_hundredth_apart_and_leave_a_thousandth_to_the_next_layer() -> None:
    keys = ranking.level_keys(np.array([8000, 8080, 8004, -8000, 0]))
    assert keys[3] < keys[4] < keys[0] == keys[2] < keys[1]


@given(st.lists(st.one_of(FINITE, st.integers(EXTREME.min, EXTREME.max)), max_size=20))
def test_amounts_can_always_be_added(values: list[float]) -> None:
    result = ranking.amounts(np.array(values))
    assert ((result >= 0) & (result <= ranking.MOST)).all()


@given(st.lists(st.tuples(INTEGERS, INTEGERS), max_size=30))
def test_lexicographic_sorts_like_tuples(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array([pair[index] for pair in pairs], dtype=np.int64) for index in (0, 1))
    distinct = sorted(set(pairs))
    assert ranking.lexicographic(first, second).tolist() == [distinct.index(pair) for pair in pairs]


@given(columns_of(WorkloadColumns), st.integers(1, 1 << 40))
def test_a_longer_wait_never_puts_work_back_in_the_default_order(columns: WorkloadColumns, more_ms: int) -> None:
    patient = replace(columns, waiting_ms=np.clip(columns.waiting_ms, 0, 1 << 50) + more_ms)
    waited = replace(columns, waiting_ms=np.clip(columns.waiting_ms, 0, 1 << 50))
    assert (orders.default(patient) <= orders.default(waited)).all()
