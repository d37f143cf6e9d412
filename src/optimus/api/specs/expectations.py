"""Expectations as people write them: what must be true after a cycle, or at the end.

Why: a scenario with expectations is a test, and should read like the sentence that somebody would say.
Owns: the words (`running`, `NoRoom`, `evicted: never`) and their shorthands.
Must not: resolve names or judge; the runner compares.

    expect:
      workloads:
        train: running
        huge: NoRoom                      # pending, for this reason
        "small-*": {count: 3, state: running}
        low: {state: pending, evicted: 2, cause: Preempted}
      queues:
        vision: {share: {gpu: 8}, allocated: {gpu: 8}}
      plan: empty
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from optimus.api.scenario import ExpectedState, Range, Times
from optimus.api.specs.fields import (
    Counts,
    Flag,
    Name,
    Spec,
    Text,
    Texts,
    choice,
    complain,
    nearest,
    shown,
)
from optimus.model import units
from optimus.model.reasons import Code

ACTIONS = ("Start", "Grow", "Hold", "Shrink", "Evict", "Move", "Drop", "Reject")
_STATES = [str(state) for state in ExpectedState]
_CODES = [str(code) for code in Code]


def _count(value: Any) -> int:
    try:
        return units.parse_count(value)
    except units.UnitError as error:
        raise complain(error.message, error.hint) from None


def read_range(value: Any, parse: Any = _count) -> Range:
    """`4`, or `{min: 2, max: 4}` with one of them left out."""
    if not isinstance(value, dict):
        number = parse(value)
        return Range(number, number)
    unknown = [key for key in value if key not in ("min", "max")]
    if unknown or not value:
        raise complain(
            f"must be a number, or a mapping with min and max, not {shown(unknown[0]) if unknown else 'empty'}"
        )
    least = parse(value["min"]) if value.get("min") is not None else 0
    most = parse(value["max"]) if value.get("max") is not None else None
    if most is not None and least > most:
        raise complain(f"min {least} is above max {most}")
    return Range(least, most)


def _read_gpu_range(value: Any) -> Range:
    def parse(amount: Any) -> int:
        try:
            return units.parse_gpu(amount)
        except units.UnitError as error:
            raise complain(error.message, error.hint) from None

    return read_range(value, parse)


def _read_times(value: Any) -> Times:
    """`never`, `2`, `[1, 3]`, or `true` for at least once."""
    if value in ("never",) or value is False:
        return Times(())
    if value is True:
        return Times(None)
    if isinstance(value, str):
        raise complain(f"must be never, true, a cycle or a list of cycles, not {shown(value)}")
    cycles = {_count(cycle) for cycle in (value if isinstance(value, list | tuple) else [value])}
    if 0 in cycles:
        raise complain("cycles count from 1")
    return Times(tuple(sorted(cycles)))


def _read_code(value: Any) -> Code:
    if isinstance(value, str) and value in _CODES:
        return Code(value)
    raise complain(f"is not a reason: {shown(value)}", nearest(shown(value), _CODES))


_ANYTHING = WithJsonSchema({})
Ranges = Annotated[Range, PlainValidator(read_range), _ANYTHING]
GpuRange = Annotated[Range, PlainValidator(_read_gpu_range), _ANYTHING]
Moments = Annotated[Times, PlainValidator(_read_times), _ANYTHING]
ReasonCode = Annotated[Code, PlainValidator(_read_code), WithJsonSchema({"type": "string"})]
Amount = Annotated[Any, PlainValidator(lambda value: value), _ANYTHING]
"""Read when the resource is known."""


def _read_replicas(value: Any) -> dict[str, Range]:
    """A range for all replicas (under the empty name), or one for each role."""
    if isinstance(value, dict) and not value.keys() & {"min", "max"}:
        return {str(role): read_range(wanted) for role, wanted in value.items()}
    return {"": read_range(value)}


class WorkloadExpectSpec(Spec):
    state: Annotated[ExpectedState, PlainValidator(choice(ExpectedState)), _ANYTHING] | None = None
    count: Ranges | None = None
    replicas: Annotated[dict[str, Range], PlainValidator(_read_replicas), _ANYTHING] = Field(default_factory=dict)
    nodes: Texts | None = None
    within: Texts | None = None
    devices: dict[Text, Counts] | None = None
    pool: Name | None = None
    domains: dict[Text, Ranges] = Field(default_factory=dict)
    reason: ReasonCode | None = None
    says: Text | None = None
    cause: ReasonCode | None = None
    reserved: Flag | None = None
    started: Moments | None = None
    grown: Moments | None = None
    shrunk: Moments | None = None
    moved: Moments | None = None
    evicted: Moments | None = None


def _workload_shorthand(value: Any) -> Any:
    """A state, or a reason (which means pending)."""
    if not isinstance(value, str):
        return value
    if value in _STATES:
        return {"state": value}
    if value in _CODES:
        return {"state": str(ExpectedState.PENDING), "reason": value}
    raise complain(
        f"is neither a state nor a reason: {shown(value)}", nearest(value, _STATES + _CODES) or _states_hint()
    )


def _states_hint() -> str:
    return f"states: {', '.join(_STATES)}"


class QueueExpectSpec(Spec):
    """Amounts by resource, as in quotas. `pool` may be left out where there is only one."""

    pool: Name | None = None
    share: dict[Text, Amount] = Field(default_factory=dict)
    allocated: dict[Text, Amount] = Field(default_factory=dict)
    demand: dict[Text, Amount] = Field(default_factory=dict)
    running: Ranges | None = None
    pending: Ranges | None = None


class NodeExpectSpec(Spec):
    workloads: Texts | None = None
    free_gpus: GpuRange | None = None


def _node_shorthand(value: Any) -> Any:
    return {"workloads": []} if value == "empty" else value


class PlanExpectSpec(Spec):
    empty: Flag | None = None
    complete: Flag | None = None
    actions: dict[Text, Ranges] = Field(default_factory=dict)
    conditions: Texts = ()


def _plan_shorthand(value: Any) -> Any:
    words: dict[Any, Any] = {
        "empty": {"empty": True},
        "notEmpty": {"empty": False},
        "complete": {"complete": True},
        "incomplete": {"complete": False},
    }
    if isinstance(value, str) and value not in words:
        raise complain(f"must be {', '.join(words)} or a mapping, not {shown(value)}", nearest(value, list(words)))
    return words[value] if isinstance(value, str) else value


class ExpectSpec(Spec):
    workloads: dict[Text, Annotated[WorkloadExpectSpec, BeforeValidator(_workload_shorthand)]] = Field(
        default_factory=dict
    )
    queues: dict[Text, QueueExpectSpec] = Field(default_factory=dict)
    nodes: dict[Text, Annotated[NodeExpectSpec, BeforeValidator(_node_shorthand)]] = Field(default_factory=dict)
    plan: Annotated[PlanExpectSpec, BeforeValidator(_plan_shorthand)] | None = None


class FinalExpectSpec(ExpectSpec):
    errors: Texts = ()
    """Parts of the errors that this very file is known to have; each must be there, and no other."""
