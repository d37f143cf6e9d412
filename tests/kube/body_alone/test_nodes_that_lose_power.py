"""Pods that were told to leave, on a node that will never answer: their gang goes on without them."""

from __future__ import annotations

import msgspec
from msgspec import structs

from optimus.drivers.kube.objects import Anything, Node, Pod
from optimus.drivers.kube.stranding import PATIENCE_S, USUAL_GRACE_S
from tests.kube.body_alone.cluster import Alone, node, pod

JOB = "team/job/j"


def worker(name: str, index: int, on: str = "") -> Pod:
    made = pod(name, on=on)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    meta = {**msgspec.to_builtins(made.metadata), "ownerReferences": [owner]}
    meta["annotations"] = {"batch.kubernetes.io/job-completion-index": str(index)}
    return msgspec.convert({**msgspec.to_builtins(made), "metadata": meta}, Pod)


def dead(name: str) -> Node:
    status = {"allocatable": msgspec.to_builtins(node(name))["status"]["allocatable"]}
    lost = {"type": "Ready", "status": "Unknown"}
    return msgspec.convert({**msgspec.to_builtins(node(name)), "status": {**status, "conditions": [lost]}}, Node)


def ending(one: Pod) -> Pod:
    when = "2026-01-01T01:00:00Z"
    return structs.replace(one, metadata=structs.replace(one.metadata, deletion_timestamp=when))


async def a_gang_on_two_nodes() -> Alone:
    alone = Alone(nodes=3)
    spec = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "template": {"spec": {}}}
    meta = {"name": "j", "namespace": "team", "uid": "uid-j", "annotations": {"optimus.dev/min-members": "4"}}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    alone.mirror.owner(msgspec.convert(made, Anything))
    for number in range(4):
        alone.mirror.pod(worker(f"j-{number}", number, on=f"n{number % 2}"))
    await alone.turn()
    return alone


async def test_a_gang_goes_on_elsewhere_when_a_node_has_lost_its_power() -> None:
    alone = await a_gang_on_two_nodes()
    alone.mirror.node(dead("n1"))
    for number in (1, 3):
        alone.mirror.pod(ending(worker(f"j-{number}", number, on="n1")))
        alone.mirror.pod(worker(f"new-{number}", number))
    await alone.turn()
    assert alone.writer.binds == [], "who came before may still be there"
    alone.now += USUAL_GRACE_S + PATIENCE_S + 1
    for _ in range(2):
        await alone.turn()
    assert sorted(name for name, _ in alone.writer.binds) == ["new-1", "new-3"]
    assert "n1" not in {there for _, there in alone.writer.binds}
    assert alone.writer.evicted == [] and alone.engine.problems == []


async def test_the_room_of_one_that_is_not_gone_stays_busy() -> None:
    alone = await a_gang_on_two_nodes()
    alone.mirror.node(dead("n1"))
    for number in (1, 3):
        alone.mirror.pod(ending(worker(f"j-{number}", number, on="n1")))
    await alone.turn()
    alone.now += USUAL_GRACE_S + PATIENCE_S + 1
    await alone.turn()
    alone.mirror.node(node("n1"))
    await alone.turn()
    known = alone.mirror.node_known("n1")
    assert known is not None and len(known.foreign.gpu_milli) == 2, "it is back, and they are still there"
    for number in (1, 3):
        alone.mirror.pod_gone(f"uid-j-{number}")
    await alone.turn()
    known = alone.mirror.node_known("n1")
    assert known is not None and known.foreign.gpu_milli == {}


async def test_on_a_node_that_answers_the_end_is_waited_for() -> None:
    alone = await a_gang_on_two_nodes()
    alone.mirror.pod(ending(worker("j-1", 1, on="n1")))
    alone.mirror.pod(worker("new-1", 1))
    for _ in range(10):
        alone.now += 10
        await alone.turn()
    assert alone.writer.binds == []


async def test_on_a_node_that_is_gone_nobody_is_waited_for() -> None:
    alone = await a_gang_on_two_nodes()
    for number in (1, 3):
        alone.mirror.pod(ending(worker(f"j-{number}", number, on="n1")))
        alone.mirror.pod(worker(f"new-{number}", number))
    await alone.turn()
    alone.mirror.node_gone("n1")
    alone.now += USUAL_GRACE_S + PATIENCE_S + 1
    for _ in range(2):
        await alone.turn()
    assert sorted(name for name, _ in alone.writer.binds) == ["new-1", "new-3"]
