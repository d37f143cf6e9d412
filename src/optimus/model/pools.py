"""Node pools: groups of nodes that are interchangeable for quotas.

A node belongs to exactly one pool: the first whose selector matches, by pool name. Nodes that match
none belong to the pool `default`.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

DEFAULT_POOL = "default"
HOST_LEVEL = "host"
NVLINK_LEVEL = "nvlink"


class Strategy(StrEnum):
    PACK = "pack"
    SPREAD = "spread"


class NodePool(Struct, frozen=True, kw_only=True):
    name: str
    selector: dict[str, str] = {}
    levels: tuple[str, ...] = ()
    """Label keys of the topology, widest first (zone, block, rack). `host` and `nvlink` are always there, below."""
    strategy: dict[str, Strategy] = {}
    """Workload class -> pack or spread; `default` for the others. Pack where nothing is said."""
    interference_limit_milli: int = 0
    """Refuse a shared device whose predicted activity would exceed this; 0 means no bound."""

    def strategy_for(self, workload_class: str) -> Strategy:
        return self.strategy.get(workload_class) or self.strategy.get("default") or Strategy.PACK
