"""Promises of the parts, without a server: what a second lead knows, and what one failure costs."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from optimus.drivers.kube.acting import PAUSE_S, Acting
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Node
from optimus.kube import Refused
from optimus.model.observations import PoolSeen, QueueSeen, SlotFailed
from optimus.model.plans import Placement, Plan, Start
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from tests.kube.grouping.making import a_pod

GANG = 20


def test_who_leads_again_is_told_queues_and_pools_again() -> None:
    mirror = Mirror(shipped_kinds())
    mirror.tenants.queue(Queue(name="stays"))
    mirror.tenants.queue(Queue(name="goes"))
    mirror.tenants.pool(NodePool(name="a100"))
    mirror.everything()
    mirror.tenants.queue_gone("goes")
    mirror.news()
    told = mirror.everything()
    assert [fact.queue.name for fact in told if isinstance(fact, QueueSeen)] == ["stays"]
    assert [fact.pool.name for fact in told if isinstance(fact, PoolSeen)] == ["a100"]


def test_a_gang_of_which_all_binds_fail_has_failed_once() -> None:
    pauses = asyncio.run(_failed_starts(3))
    assert [max(one) for one in pauses] == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S]
    assert all(len(one) == GANG for one in pauses)


async def _failed_starts(times: int) -> list[list[float]]:
    """The pauses that are asked for by each, in seconds."""
    mirror = Mirror(shipped_kinds())
    has = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(GANG)}}
    mirror.node(msgspec.convert({"metadata": {"name": "n"}, "status": has}, Node))
    for number in range(GANG):
        mirror.pod(
            a_pod(
                f"train-{number:02d}",
                labels={"optimus.dev/group": "train"},
                annotations={"optimus.dev/min-members": str(GANG)},
                spec={"schedulerName": "optimus", "containers": [{"name": "main", "image": "none"}]},
            )
        )
    mirror.everything()
    (workload,) = mirror.workloads
    role = mirror.workloads[workload].gang.roles[0].name

    class Refusing:
        async def bind(self, *_: object, **__: object) -> Refused:
            return Refused("Invalid", "no")

    refusing: Any = Refusing()
    acting = Acting(mirror, refusing, _nobody, lambda *_: None, lambda: None, lambda: 0.0)
    found = []
    for _ in range(times):
        acting.act(Plan(version=0, actions=(Start(workload, "default", _places(role)),)))
        await acting.close()
        failed = [fact for fact in acting.facts() if isinstance(fact, SlotFailed)]
        found.append([fact.retry_after_ms / 1000 for fact in failed])
    return found


def _places(role: str) -> tuple[Placement, ...]:
    return tuple(Placement(role, ordinal, "n") for ordinal in range(GANG))


async def _nobody(_: object) -> None:
    return None
