"""Work is deleted, and its owner is gone before its pods are: whatever the order, their room is free in the end."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from optimus.drivers.kube.objects import Anything, Pod
from tests.kube.body_alone.cluster import Alone
from tests.kube.grouping.making import a_pod, a_thing

MEMBERS = (("master", 0), ("worker", 0), ("worker", 1), ("worker", 2), ("worker", 3))
BORN = "2026-01-01T00:00:00Z"


def training(name: str) -> Anything:
    template = {"spec": {"schedulerName": "optimus", "containers": [_container()]}}
    specs = {
        role: {"replicas": count, "template": template} for role, count in (("Master", 1), ("Worker", len(MEMBERS) - 1))
    }
    spec = {"pytorchReplicaSpecs": specs}
    return a_thing("kubeflow.org/v1 PyTorchJob", name, spec, namespace="team", creationTimestamp=BORN)


def member(owner: Anything, role: str, number: int, *, on: str = "", uid: str = "", **more: Any) -> Pod:
    labels = {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": str(number)}
    spec = {"schedulerName": "optimus", "containers": [_container()], **({"nodeName": on} if on else {})}
    name = f"{owner.metadata.name}-{role}-{number}"
    meta: dict[str, Any] = {"labels": labels, "creationTimestamp": BORN, **more}
    phase = "Running" if on else "Pending"
    return a_pod(name, owner, namespace="team", uid=uid or name, phase=phase, spec=spec, **meta)


def _container() -> dict[str, Any]:
    return {"name": "pytorch", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


async def deleted(luck: random.Random) -> set[str]:
    """Who is bound in the end. An operator that has not heard of the end makes a pod once more, and it goes, too."""
    alone = Alone()
    old, new = training("old"), training("new")
    alone.mirror.owner(old)
    for role, number in MEMBERS:
        alone.mirror.pod(member(old, role, number))
    await alone.turn()
    for role, number in MEMBERS:
        alone.mirror.pod(member(old, role, number, on="n0"))
    await alone.turn()
    alone.mirror.owner(new)
    for role, number in MEMBERS:
        alone.mirror.pod(member(new, role, number))
    await alone.turn()
    assert {name for name, _ in alone.writer.binds} == {f"old-{role}-{number}" for role, number in MEMBERS}

    stories: list[list[Any]] = [[lambda: alone.mirror.owner_gone(old.metadata.uid)]]
    for role, number in MEMBERS:
        leaving = member(old, role, number, on="n0", deletionTimestamp=BORN)
        stories.append(
            [lambda pod=leaving: alone.mirror.pod(pod), lambda pod=leaving: alone.mirror.pod_gone(pod.metadata.uid)]
        )
    again = member(old, *MEMBERS[-1], uid="again")
    stories[-1] += [lambda: alone.mirror.pod(again), lambda: alone.mirror.pod_gone("again")]
    while stories:
        story = luck.choice(stories)
        story.pop(0)()
        stories = [one for one in stories if one]
        if luck.random() < 0.5:
            alone.now += 0.1
            await alone.turn()
    for _ in range(3):
        alone.now += 1.0
        await alone.turn()
    return {name for name, _ in alone.writer.binds if name.startswith("new")}


@pytest.mark.parametrize("seed", range(60))
def test_its_room_is_given_to_the_next(seed: int) -> None:
    assert len(asyncio.run(deleted(random.Random(seed)))) == len(MEMBERS)
