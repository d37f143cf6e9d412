"""A policy: a few plain functions under one name, and what happens when one of them is broken.

Why: an order is ten lines of somebody's Python. It must not be able to stop a cluster.
Owns: the composition, the register of names, and the evaluation with its fall-back.
Must not: load files or entry points (`optimus.engine.policy_loading` does) and must not let a policy decide about
quotas, limits or gangs: it orders and weighs, nothing else.

    order        WorkloadColumns -> array    lower is earlier, inside one queue and priority
    growth       ElasticColumns  -> array    higher is sooner; zero or less: do not grow
    sizing       SizeColumns     -> array    what a size is worth; the sum over all is made largest; None: step by step
    victim_cost  VictimColumns   -> array    lower goes first; costs are added up
    turns        WorkloadColumns -> array    not zero: may take the turn of running work that is later in the order
    placement    NodeColumns     -> array    lower is better; a layer just below topology; None: no such layer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from optimus.decide.policies import costs, growth, orders, sizing
from optimus.decide.policies.columns import (
    BoolArray,
    ElasticColumns,
    IntArray,
    NodeColumns,
    NumberArray,
    SizeColumns,
    VictimColumns,
    WorkloadColumns,
)
from optimus.decide.policies.ranking import amounts, level_keys, rank_keys, value_keys, worths
from optimus.model.plans import Condition

Order = Callable[[WorkloadColumns], NumberArray]
Growth = Callable[[ElasticColumns], NumberArray]
Sizing = Callable[[SizeColumns], NumberArray]
VictimCost = Callable[[VictimColumns], NumberArray]
PlacementLayer = Callable[[NodeColumns], NumberArray]
TakesTurns = Callable[[WorkloadColumns], NumberArray]

Evaluated = tuple[IntArray, Condition | None]
_Columns = TypeVar("_Columns")

POLICY_FAILED = "PolicyFailed"
POLICY_UNKNOWN = "PolicyUnknown"
_LONGEST_MESSAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is left out is taken from the default policy."""

    name: str
    doc: str = ""
    order: Order = orders.default
    growth: Growth = growth.default
    victim_cost: VictimCost = costs.default
    placement: PlacementLayer | None = None
    turns: TakesTurns | None = None
    """Goes with the order. Who is named here and comes earlier in line may take the place of running work of the same
    queue and priority that comes later and can continue from a checkpoint. For orders that hold still: who has just
    started must not stand behind the one it replaced. None: nobody takes turns."""
    sizing: Sizing | None = None
    """What each size is worth to elastic work that can be stopped and continued. Given, their sizes are chosen together
    so that the sum is largest; `growth` is then for all other elastic work. A worth must be higher for the size that
    work has than for the same size after a restart, or it is moved up and down for ever. None: only growth."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a policy needs a name")
        for part in ("order", "growth", "victim_cost", "placement", "turns", "sizing"):
            function = getattr(self, part)
            if not callable(function) and not (part in ("placement", "turns", "sizing") and function is None):
                raise TypeError(f"policy {self.name}: {part} is {type(function).__name__}, not a function of columns")


class UnknownPolicyError(LookupError):
    """No policy of that name is registered."""


_registered: dict[str, Policy] = {}


def register(policy: Policy) -> Policy:
    """Make the policy known by its name. A name is given once."""
    if _registered.get(policy.name, policy) != policy:
        raise ValueError(f"there is already a policy named {policy.name}; choose another name")
    _registered[policy.name] = policy
    return policy


def get(name: str) -> Policy:
    try:
        return _registered[name]
    except KeyError:
        raise UnknownPolicyError(f"there is no policy {name}; known are {', '.join(names())}") from None


def names() -> tuple[str, ...]:
    return tuple(sorted(_registered))


def with_order(policy: Policy, name: str) -> tuple[Policy, Condition | None]:
    """The policy with the order of the one named, as a queue may ask for. An unknown name changes nothing."""
    if not name:
        return policy, None
    try:
        named = get(name)
    except UnknownPolicyError as error:
        return policy, Condition(f"policy {name}", POLICY_UNKNOWN, f"{error}; the order of {policy.name} is used")
    return replace(policy, name=name, order=named.order, turns=named.turns), None


def order_keys(policy: Policy, columns: WorkloadColumns) -> Evaluated:
    """Dense ranks, lower first."""
    return evaluate(policy.order, orders.default, columns, len(columns), subject=_part(policy, "order"))


def turn_takers(policy: Policy, columns: WorkloadColumns) -> tuple[BoolArray, Condition | None]:
    """Who may take another's turn; nobody if the function is broken."""
    keys, condition = evaluate(
        policy.turns or _nobody, _nobody, columns, len(columns), subject=_part(policy, "turns"), form=value_keys
    )
    return keys != 0, condition


def growth_keys(policy: Policy, columns: ElasticColumns) -> Evaluated:
    """Higher first; zero or less: do not grow. Comparable between calls, so one step need not re-rank the others."""
    subject = _part(policy, "growth")
    return evaluate(policy.growth, growth.default, columns, len(columns), subject=subject, form=value_keys)


def size_worths(policy: Policy, columns: SizeColumns) -> Evaluated:
    """Whole numbers that can be added; a float counts to a part in 2^30."""
    chosen, subject = policy.sizing or sizing.by_work_done, _part(policy, "sizing")
    return evaluate(chosen, sizing.by_work_done, columns, len(columns), subject=subject, form=worths)


def victim_costs(policy: Policy, columns: VictimColumns) -> Evaluated:
    """Amounts from 0 to `ranking.MOST` that can be added."""
    subject = _part(policy, "victim cost")
    return evaluate(policy.victim_cost, costs.default, columns, len(columns), subject=subject, form=amounts)


def placement_keys(policy: Policy, columns: NodeColumns) -> Evaluated:
    """Lower is better, in `ranking.LEVEL_BITS`; all equal without an own layer. Comparable between calls."""
    layer, subject = policy.placement or _no_preference, _part(policy, "placement")
    return evaluate(layer, _no_preference, columns, len(columns), subject=subject, form=level_keys)


def _part(policy: Policy, part: str) -> str:
    """Who failed; a cycle asks the same part several times and reports it once."""
    return f"policy {policy.name}, {part}"


def evaluate(
    function: Callable[[_Columns], Any],
    fallback: Callable[[_Columns], NumberArray],
    columns: _Columns,
    length: int,
    *,
    subject: str = "",
    form: Callable[[NDArray[Any]], IntArray] = rank_keys,
) -> Evaluated:
    """What the function says, as integers; or what the fallback says, with a condition that tells why.

    Broken is: an exception or `sys.exit()`, NaN or infinity, the wrong length or shape, anything but numbers.
    KeyboardInterrupt passes through."""
    with np.errstate(all="ignore"):  # a division by zero is judged by its result, whatever the caller has set
        try:
            returned = function(columns)
            result = np.asarray(returned)
            fault = _fault(returned, result, length)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's code may raise anything
            result = np.empty(0)
            fault = f"raised {_describe(error)}"
        if fault is None:
            return form(result), None
        name = getattr(function, "__name__", type(function).__name__)
        message = f"{name} {fault}; the default policy decided instead"
        return form(np.asarray(fallback(columns))), Condition(subject or f"policy {name}", POLICY_FAILED, message)


def _fault(returned: object, result: NDArray[Any], length: int) -> str | None:
    if result.dtype.kind not in "biuf":
        kind = f"an array of {result.dtype.name}" if isinstance(returned, np.ndarray) else type(returned).__name__
        return f"returned {kind}, not an array of numbers"
    if result.ndim != 1:
        return f"returned an array of shape {result.shape}, not ({length},)"
    if len(result) != length:
        return f"returned {len(result)} values for {length} rows"
    strange = length - int(np.count_nonzero(np.isfinite(result.astype(np.float64))))
    if strange:
        return f"returned NaN or infinity in {strange} of {length} rows"
    return None


def _describe(error: BaseException) -> str:
    """Type and first words of the error, the same in every run: no addresses of objects."""
    try:
        words = ["0x…" if "0x" in word else word for word in str(error).split()]
    except (Exception, SystemExit):  # noqa: BLE001 - the text of an error can be broken too
        words = []
    text = " ".join(words)[:_LONGEST_MESSAGE]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _nobody(columns: WorkloadColumns) -> IntArray:
    return np.zeros(len(columns), dtype=np.int64)


def _no_preference(columns: NodeColumns) -> IntArray:
    return np.zeros(len(columns), dtype=np.int64)
