"""Queues: the tree of tenants and what each may use of every pool."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

GPU = "gpu"
CPU = "cpu"
MEMORY = "memory"
CORE_RESOURCES = (GPU, CPU, MEMORY)


class Quota(Struct, frozen=True, kw_only=True):
    """One resource of one pool. Units: gpu and cpu in thousandths, memory in MiB, the rest in pieces."""

    guarantee: int = 0
    limit: int | None = None
    weight: int = 1


class PoolQuota(Struct, frozen=True, kw_only=True):
    """A resource that is not named is unlimited and gives no entitlement."""

    pool: str
    resources: dict[str, Quota] = {}


class QueueState(StrEnum):
    OPEN = "open"
    STOPPED = "stopped"  # nothing new starts, what runs goes on
    DRAINING = "draining"  # nothing new starts, preemptible work is checkpointed and taken out


class WaitAction(StrEnum):
    FIRST = "first"  # goes ahead of everything in its queue
    FAIL = "fail"  # is refused for good


class QueuePolicy(Struct, frozen=True, kw_only=True):
    max_wait_ms: int | None = None
    max_wait_action: WaitAction = WaitAction.FIRST
    max_runtime_ms: int | None = None
    max_gpu_milli_per_workload: int | None = None
    max_priority: int | None = None
    """Work that asks for more has this much: who may write a priority must not overtake all others by it."""
    allowed_classes: tuple[str, ...] = ()
    """Empty means all."""
    min_runtime_before_preempt_ms: int = 0
    min_runtime_before_reclaim_ms: int = 0
    idle_timeout_ms: int | None = None
    order: str = ""
    """Name of the order inside this queue; empty means the policy's own."""


class Queue(Struct, frozen=True, kw_only=True):
    name: str
    parent: str = ""
    rank: int = 0
    """Siblings of a lower rank are served before those of a higher one."""
    quotas: tuple[PoolQuota, ...] = ()
    policy: QueuePolicy = QueuePolicy()
    state: QueueState = QueueState.OPEN
    created_ms: int = 0
    """Older queues win ties."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that may use it; empty means all."""
