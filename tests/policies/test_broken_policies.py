"""A broken policy decides nothing: the default does, and a condition says what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimus.decide import policies
from optimus.decide.policies import (
    DEFAULT,
    ElasticColumns,
    NodeColumns,
    Policy,
    VictimColumns,
    WorkloadColumns,
    evaluate,
    fill,
    orders,
)

HOUR = 3_600_000
COLUMNS = fill(WorkloadColumns, 3, submitted_ms=[1, 2, 3], expected_ms=[3 * HOUR, HOUR, 2 * HOUR])


class BadMannersError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a text")


def raising(error: BaseException) -> Callable[[Any], Any]:
    def order(_columns: object) -> np.ndarray:
        raise error

    return order


def returning(value: object) -> Callable[[Any], Any]:
    def order(_columns: object) -> object:
        return value

    return order


def misspells_a_column(columns: Any) -> Any:
    return columns.submited_ms


def writes_into_its_input(columns: WorkloadColumns) -> np.ndarray:
    columns.submitted_ms[0] = 99
    return columns.submitted_ms


def replaces_a_column(columns: WorkloadColumns) -> np.ndarray:
    columns.submitted_ms = np.zeros(3)  # type: ignore[misc,assignment]
    return columns.submitted_ms


BROKEN = {
    "an exception": (raising(ZeroDivisionError("by zero")), "raised ZeroDivisionError: by zero"),
    "an exception without a text": (raising(KeyError()), "raised KeyError;"),
    "an exit": (raising(SystemExit(3)), "raised SystemExit: 3;"),
    "an exception that cannot be shown": (raising(BadMannersError()), "raised BadMannersError;"),
    "an address in the text": (raising(ValueError(f"bad {object()}")), "raised ValueError: bad <object object at 0x…;"),
    "a misspelt column": (misspells_a_column, "has no attribute 'submited_ms'"),
    "NaN": (returning(np.array([1.0, np.nan, np.nan])), "returned NaN or infinity in 2 of 3 rows"),
    "infinity": (returning(np.array([1.0, np.inf, 2.0])), "returned NaN or infinity in 1 of 3 rows"),
    "a division by zero": (lambda c: c.expected_ms / (c.submitted_ms - 1), "returned NaN or infinity in 1 of 3 rows"),
    "too few": (returning(np.array([1, 2])), "returned 2 values for 3 rows"),
    "too many": (returning(np.arange(4)), "returned 4 values for 3 rows"),
    "a table": (returning(np.zeros((3, 1))), "returned an array of shape (3, 1), not (3,)"),
    "one number": (returning(7), "returned an array of shape (), not (3,)"),
    "nothing": (returning(None), "returned NoneType, not an array of numbers"),
    "a text": (returning("first"), "returned str, not an array of numbers"),
    "names": (returning(np.array(["a", "b", "c"])), "returned an array of str"),
    "objects": (returning([1, None, 3]), "returned list, not an array of numbers"),
    "complex numbers": (returning(np.array([1j, 2j, 3j])), "returned an array of complex128"),
    "dates": (returning(np.array(["2026-01-01"] * 3, dtype="datetime64[D]")), "returned an array of datetime64"),
    "ragged lists": (returning([[1], [2, 3]]), "raised ValueError"),
    "a generator": (lambda _c: (n for n in range(3)), "returned generator, not an array of numbers"),
    "writing into its input": (writes_into_its_input, "raised ValueError: assignment destination is read-only"),
    "replacing a column": (replaces_a_column, "raised FrozenInstanceError"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_order_falls_back_with_a_condition(kind: str) -> None:
    function, expected = BROKEN[kind]
    keys, condition = policies.order_keys(Policy(name="mine", order=function), COLUMNS)
    assert keys.tolist() == [2, 0, 1]  # what the default says
    assert keys.dtype == np.int64
    assert condition is not None
    assert (condition.subject, condition.code) == ("policy mine, order", "PolicyFailed")
    assert expected in condition.message
    assert condition.message.endswith("the default policy decided instead")
    assert COLUMNS.submitted_ms.tolist() == [1, 2, 3]


def test_every_part_falls_back_on_its_own() -> None:
    broken = returning(None)
    policy = Policy(name="mine", growth=broken, victim_cost=broken, placement=broken)
    steps = fill(ElasticColumns, 2, attained_gpu_ms=[0, HOUR])
    victims = fill(VictimColumns, 2, lost_ms=[5, HOUR])
    worth, no_growth = policies.growth_keys(policy, steps)
    assert worth.tolist() == policies.growth_keys(DEFAULT, steps)[0].tolist()
    cost, no_cost = policies.victim_costs(policy, victims)
    assert cost.tolist() == policies.victim_costs(DEFAULT, victims)[0].tolist()
    layer, no_layer = policies.placement_keys(policy, fill(NodeColumns, 2))
    assert layer[0] == layer[1]
    assert {condition and condition.code for condition in (no_growth, no_cost, no_layer)} == {"PolicyFailed"}
    assert policies.order_keys(policy, COLUMNS)[1] is None


def test_an_own_placement_layer_is_heard_and_none_prefers_nothing() -> None:
    nodes = fill(NodeColumns, 3, free_gpu_milli=[4000, 1000, 8000])
    best_fit = Policy(name="best-fit", placement=lambda columns: columns.free_gpu_milli)
    assert policies.placement_keys(best_fit, nodes)[0].argmin() == 1
    assert len(set(policies.placement_keys(DEFAULT, nodes)[0].tolist())) == 1


@pytest.mark.parametrize(
    "value", [[3, 1, 2], np.array([3, 1, 2], dtype=np.uint8), np.array([0.3, 0.1, 0.2], dtype=np.float32)]
)
def test_any_kind_of_number_will_do(value: object) -> None:
    keys, condition = evaluate(returning(value), orders.default, COLUMNS, 3)
    assert (keys.tolist(), condition) == ([2, 0, 1], None)


def test_an_interrupt_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        policies.order_keys(Policy(name="mine", order=raising(KeyboardInterrupt())), COLUMNS)


def test_the_same_failure_gives_the_same_condition() -> None:
    def order(_columns: object) -> np.ndarray:
        raise ValueError(object())

    first, second = (policies.order_keys(Policy(name="mine", order=order), COLUMNS)[1] for _ in range(2))
    assert first == second


def test_a_warning_setting_of_the_caller_changes_nothing() -> None:
    with np.errstate(all="raise"):
        _, condition = evaluate(lambda c: c.expected_ms / (c.submitted_ms - 1), orders.default, COLUMNS, 3)
    assert condition is not None
    assert "NaN or infinity" in condition.message


class TestNames:
    def test_a_name_is_given_once(self) -> None:
        policies.register(policies.get("fifo"))  # the same again is no harm
        with pytest.raises(ValueError, match="already a policy named fifo"):
            policies.register(Policy(name="fifo"))

    def test_an_unknown_name_lists_the_known(self) -> None:
        with pytest.raises(policies.UnknownPolicyError, match=r"no policy lifo; known are deadline, default"):
            policies.get("lifo")

    def test_a_policy_needs_a_name_and_functions(self) -> None:
        with pytest.raises(ValueError, match="needs a name"):
            Policy(name="")
        with pytest.raises(TypeError, match="policy mine: growth is int"):
            Policy(name="mine", growth=7)  # type: ignore[arg-type]

    def test_a_queue_may_have_its_own_order(self) -> None:
        policy, condition = policies.with_order(DEFAULT, "fifo")
        assert (policy.order, policy.growth, condition) == (orders.fifo, DEFAULT.growth, None)
        assert policies.with_order(DEFAULT, "") == (DEFAULT, None)

    def test_a_queue_that_names_an_unknown_order_keeps_the_policys_own(self) -> None:
        policy, condition = policies.with_order(DEFAULT, "lifo")
        assert policy is DEFAULT
        assert condition is not None
        assert condition.code == "PolicyUnknown"
        assert "the order of default is used" in condition.message


def test_columns_that_do_not_line_up_are_refused() -> None:
    with pytest.raises(ValueError, match=r"column waiting_ms has shape \(2,\), the others \(3,\)"):
        fill(WorkloadColumns, 3, waiting_ms=[1, 2])
    with pytest.raises(ValueError, match="column"):
        fill(WorkloadColumns, 3, priority=[[1], [2], [3]])
