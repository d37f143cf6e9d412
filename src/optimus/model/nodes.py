"""Nodes and the devices in them, as a body reports them.

A node's devices are *assignable* (the body hands out exactly the devices the plan names) or *counted*
(somebody else picks; the plan names a number and the ids are learned afterwards).
"""

from __future__ import annotations

from msgspec import Struct

WHOLE_DEVICE_MILLI = 1000


class Device(Struct, frozen=True, kw_only=True):
    """One accelerator that can be given whole or in thousandths."""

    index: int
    model: str
    memory_mib: int = 0
    uuid: str = ""
    nvlink_group: int = 0
    numa_node: int = 0
    healthy: bool = True
    mig: dict[str, int] = {}
    """Profile -> instances. A partitioned device is not a GPU any more: its instances are named
    accelerators of the node, called `mig-<profile>`."""


class Taint(Struct, frozen=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Toleration(Struct, frozen=True):
    """An empty key tolerates everything; an empty value tolerates every value of the key, unless it is to be equal."""

    key: str = ""
    value: str = ""
    effect: str = ""
    equal: bool = False
    """The value must be the same, also where it is empty."""

    def accepts(self, taint: Taint) -> bool:
        return (
            (not self.key or self.key == taint.key)
            and (self.value == taint.value or not (self.value or self.equal))
            and (not self.effect or self.effect == taint.effect)
        )


class ForeignUsage(Struct, frozen=True, kw_only=True):
    """What work that is not ours takes on a node. It lowers the totals that shares are cut from."""

    cpu_milli: int = 0
    memory_mib: int = 0
    accelerators: dict[str, int] = {}
    gpu_milli: dict[int, int] = {}
    """Device index -> thousandths taken."""


class Node(Struct, frozen=True, kw_only=True):
    name: str
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    accelerators: dict[str, int] = {}
    devices: tuple[Device, ...] = ()
    assignable: bool = True
    ready: bool = True
    cordoned: bool = False
    foreign: ForeignUsage = ForeignUsage()


def accelerator_counts(node: Node) -> dict[str, int]:
    """Named accelerators of the node, MIG instances included."""
    counts = dict(node.accelerators)
    for device in node.devices:
        if device.healthy:
            for profile, instances in device.mig.items():
                name = f"mig-{profile}"
                counts[name] = counts.get(name, 0) + instances
    return counts
