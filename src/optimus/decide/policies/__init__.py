"""Policies: who comes first, who grows, who gives way; small compositions of plain functions.

Why: scheduling engineers want to change an order in ten lines and see the difference.
Owns: the columns that a policy sees, the built-in policies, and the fall-back when one is broken.
Must not: load anything from outside, or touch shares, limits, guarantees and gangs.

To write one, see docs/guides/write-a-policy.md.
"""

from optimus.decide.policies.builtin import DEFAULT
from optimus.decide.policies.columns import (
    UNKNOWN,
    BoolArray,
    ElasticColumns,
    IntArray,
    NodeColumns,
    NumberArray,
    SizeColumns,
    VictimColumns,
    WorkloadColumns,
    fill,
)
from optimus.decide.policies.growth import speed_milli
from optimus.decide.policies.orders import known_remaining_ms, remaining_ms
from optimus.decide.policies.policy import (
    Evaluated,
    Growth,
    Order,
    PlacementLayer,
    Policy,
    Sizing,
    UnknownPolicyError,
    VictimCost,
    evaluate,
    get,
    growth_keys,
    names,
    order_keys,
    placement_keys,
    register,
    size_worths,
    victim_costs,
    with_order,
)
from optimus.decide.policies.ranking import lexicographic

__all__ = [
    "DEFAULT",
    "UNKNOWN",
    "BoolArray",
    "ElasticColumns",
    "Evaluated",
    "Growth",
    "IntArray",
    "NodeColumns",
    "NumberArray",
    "Order",
    "PlacementLayer",
    "Policy",
    "SizeColumns",
    "Sizing",
    "UnknownPolicyError",
    "VictimColumns",
    "VictimCost",
    "WorkloadColumns",
    "evaluate",
    "fill",
    "get",
    "growth_keys",
    "known_remaining_ms",
    "lexicographic",
    "names",
    "order_keys",
    "placement_keys",
    "register",
    "remaining_ms",
    "size_worths",
    "speed_milli",
    "victim_costs",
    "with_order",
]
