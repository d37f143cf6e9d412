"""Packing tables: what idle room is worth, learned from the mix of requests seen so far.

Plain data in the snapshot. They are made between cycles (`optimus.decide.packing.learn`) and read by the
placement score; never refreshed inside a cycle.
"""

from __future__ import annotations

from msgspec import Struct

GAP_STEPS = 100
GAP_MILLI = 1000 // GAP_STEPS


class MixEntry(Struct, frozen=True):
    """One class of replicas and how many of it have arrived."""

    count: int
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    """Of each device."""
    models: tuple[str, ...] = ()
    """Allowed; empty means any."""


class Block(Struct, frozen=True):
    """A class of multi-GPU replicas and the value of keeping a place for one."""

    gpu_count: int
    cpu_milli: int
    memory_mib: int
    models: tuple[str, ...]
    value: float
    """In thousandths of a device, as all values here."""


class StrandingBin(Struct, frozen=True):
    """Part of the mix (weights sum to 1) and the CPU and memory it needs beside a thousandth of a device."""

    weight: float
    cpu_per_gpu_milli: float
    memory_per_gpu_milli: float


class PackingTables(Struct, frozen=True):
    gap_value: tuple[float, ...] = ()
    """Value of a device with 0, 10, 20 … 1000 thousandths left; empty: nothing was learned yet."""
    stranding: tuple[StrandingBin, ...] = ()
    model_price: dict[str, float] = {}
    """Extra value of an idle thousandth of a model that is wanted by name."""
    blocks: tuple[Block, ...] = ()
    arrivals: int = 0
