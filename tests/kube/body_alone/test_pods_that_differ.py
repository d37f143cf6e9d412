"""A gang whose pods need different things, in one role: each is placed by what it needs, and keeps its place."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from optimus.drivers.kube.grouping.overrides import SLOT
from optimus.drivers.kube.objects import Anything, Node, Pod, StorageClass, VolumeClaim
from optimus.drivers.kube.volumes import Around
from optimus.model.plans import Evict, Shrink
from optimus.model.workloads import Role
from tests.kube.body_alone.cluster import Alone, node, pod

GANG = "team/group/g"
DISKS = {"metadata": {"name": "disks"}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disks.example"}


def changed(one: Pod, **spec: Any) -> Pod:
    """With other fields of its spec, as the server writes them."""
    whole = {**msgspec.to_builtins(one.spec), **spec}
    return structs.replace(one, spec=msgspec.convert(whole, type(one.spec)))


def labelled(name: str, **labels: str) -> Node:
    made = node(name, gpus=0)
    return structs.replace(
        made, metadata=structs.replace(made.metadata, labels={**(made.metadata.labels or {}), **labels})
    )


def tainted(name: str) -> Node:
    made = msgspec.to_builtins(node(name))
    return msgspec.convert({**made, "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, Node)


def launcher(name: str, size: int, on: str = "") -> Pod:
    """Without a GPU, for nodes of another kind."""
    small = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    return changed(pod(name, gang="g", size=size, on=on), containers=small, nodeSelector={"kind": "cpu"})


def bound(one: Pod, alone: Alone) -> Pod:
    """As the watch shows it after our bind."""
    there = dict(alone.writer.binds)[one.metadata.name]
    slot = alone.mirror._slot_of(one.metadata.uid)
    assert slot is not None
    notes = {SLOT: f"{slot.role}-{slot.ordinal}"}
    meta = structs.replace(one.metadata, annotations=notes)
    return structs.replace(one, metadata=meta, spec=structs.replace(one.spec, node_name=there))


def roles(alone: Alone, gang: str = GANG) -> list[Role]:
    return list(alone.mirror.workloads[gang].gang.roles)


async def test_a_launcher_and_its_workers_go_where_each_may_be() -> None:
    for first in (0, 2):
        alone = Alone(nodes=1)
        alone.mirror.node(labelled("c0", kind="cpu"))
        pods = [pod(f"g-{number}", gang="g", size=3) for number in range(2)]
        pods.insert(first, launcher("g-launcher", 3))
        for number, one in enumerate(pods):
            when = f"2026-01-01T00:00:0{number}Z"
            alone.mirror.pod(structs.replace(one, metadata=structs.replace(one.metadata, creation_timestamp=when)))
        await alone.turn()
        assert sorted(alone.writer.binds) == [("g-0", "n0"), ("g-1", "n0"), ("g-launcher", "c0")], first
        assert sorted((role.min, role.max) for role in roles(alone)) == [(1, 1), (2, 2)]


async def test_one_that_tolerates_a_taint_speaks_only_for_itself() -> None:
    alone = Alone(nodes=0)
    alone.mirror.node(tainted("t0"))
    tolerant = changed(pod("g-0", gang="g", size=2), tolerations=[{"key": "gpu", "operator": "Exists"}])
    alone.mirror.pod(tolerant)
    alone.mirror.pod(pod("g-1", gang="g", size=2))
    plan = await alone.turn()
    assert alone.writer.binds == [] and plan.waiting != (), "the other one may not be there"
    alone.mirror.node(node("n0"))
    await alone.turn()
    assert dict(alone.writer.binds)["g-1"] == "n0" and len(alone.writer.binds) == 2


async def test_a_node_that_is_tainted_after_the_plan_is_not_used() -> None:
    alone = Alone(nodes=1)
    alone.mirror.pod(pod("a"))
    plan = alone.engine.step(alone.mirror.news(), 0)
    alone.mirror.node(tainted("n0"))
    alone.mirror.news()
    alone.acting.act(plan)
    assert alone.writer.binds == [] and alone.acting.failed_binds == 1


async def test_pods_keep_the_part_that_they_were_bound_as() -> None:
    alone = Alone(nodes=1)
    alone.mirror.node(labelled("c0", kind="cpu"))
    pods = [pod("g-0", gang="g", size=2), launcher("g-launcher", 2)]
    for one in pods:
        alone.mirror.pod(one)
    await alone.turn()
    running = [bound(one, alone) for one in pods]
    for one in running:
        alone.mirror.pod(one)
    await alone.turn()
    slots = alone.mirror.groups.slots()
    known = roles(alone)
    later = Alone(nodes=1)
    later.mirror.node(labelled("c0", kind="cpu"))
    for one in reversed(running):
        later.mirror.pod(one)
    plan = await later.turn()
    assert later.mirror.groups.slots() == slots
    assert sorted(role.name for role in roles(later)) == sorted(role.name for role in known)
    assert plan.actions == () and later.engine.problems == []
    later.mirror.pod(pod("g-1", gang="g", size=2))
    await later.turn()
    assert len(roles(later)) == 2, "a newcomer that is like those that run is one of them"


async def test_another_kind_may_come_while_others_run() -> None:
    alone = Alone(nodes=1)
    alone.mirror.node(labelled("c0", kind="cpu"))
    alone.mirror.pod(pod("g-0", gang="g", size=1, on="n0"))
    await alone.turn()
    alone.mirror.pod(launcher("g-launcher", 1))
    for _ in range(3):
        alone.now += 400.0
        await alone.turn()
        assert alone.engine.problems == []
    assert set(alone.writer.binds) == {("g-launcher", "c0")}
    alone.mirror.pod_gone("uid-g-launcher")
    await alone.turn()
    assert [role.name for role in roles(alone)] == ["pod"] and alone.engine.problems == []


async def test_one_lost_in_the_middle_costs_nobody_else_its_place() -> None:
    for least in (1, 2):
        alone = Alone(nodes=1)
        for number in range(3):
            alone.mirror.pod(pod(f"g-{number}", gang="g", size=least, on="n0"))
        await alone.turn()
        alone.mirror.pod_gone("uid-g-0")
        for _ in range(40):
            alone.now += 10.0
            plan = await alone.turn()
            assert not any(isinstance(action, Evict | Shrink) for action in plan.actions), least
            assert alone.engine.problems == []
        alone.mirror.pod(pod("g-3", gang="g", size=least))
        for _ in range(3):
            alone.now += 400.0
            await alone.turn()
        assert set(alone.writer.binds) == {("g-3", "n0")}, "and there is a place for another one"


def worker(number: int) -> Pod:
    made = pod(f"j-{number}")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    note = {"batch.kubernetes.io/job-completion-index": str(number)}
    meta = {**msgspec.to_builtins(made.metadata), "ownerReferences": [owner], "annotations": note}
    return msgspec.convert({"metadata": meta, "spec": msgspec.to_builtins(made.spec)}, Pod)


def job(pods: int, **template: Any) -> Anything:
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": {"spec": template}}
    notes = {"optimus.dev/min-members": str(pods)}
    meta = {"name": "j", "namespace": "team", "uid": "uid-j", "annotations": notes}
    return msgspec.convert({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}, Anything)


async def test_pods_of_an_owner_count_whatever_part_they_are_in() -> None:
    alone = Alone(nodes=3)
    alone.mirror.owner(job(3))
    for number in range(2):
        here = {"kubernetes.io/hostname": f"n{number}"}
        alone.mirror.pod(changed(worker(number), nodeSelector=here))
    plan = await alone.turn()
    assert alone.writer.binds == [] and plan.waiting != (), "two of three are there"
    alone.mirror.pod(changed(worker(2), nodeSelector={"kubernetes.io/hostname": "n2"}))
    await alone.turn()
    assert sorted(alone.writer.binds) == [("j-0", "n0"), ("j-1", "n1"), ("j-2", "n2")]
    assert sum(role.min for role in roles(alone, "team/job/j")) == 3


async def test_pods_whose_claims_are_made_one_by_one_end_in_one_part() -> None:
    """Nobody is left in the part where they were while their claims were missing, and nothing is asked for it."""
    alone = Alone(nodes=3)
    disk = [{"name": "own", "ephemeral": {"volumeClaimTemplate": {}}}]
    around = Around(classes={"disks": msgspec.convert(DISKS, StorageClass)})
    alone.mirror.owner(job(3, volumes=disk))
    pods = [changed(worker(number), volumes=disk) for number in range(3)]
    claims: dict[str, VolumeClaim] = {}
    for one in pods:
        alone.mirror.pod(one)
    for one in pods:
        await alone.turn()
        why = alone.mirror.workloads["team/job/j"].obstacle
        assert alone.writer.binds == [] and why is not None and f"{one.metadata.name}-own" in why.text()
        claims[f"team/{one.metadata.name}-own"] = claim_of(one)
        alone.mirror.surroundings(structs.replace(around, claims=dict(claims)))
    plan = await alone.turn()
    assert [role.name for role in roles(alone, "team/job/j")] == ["worker"]
    assert plan.waiting == (), "they have places, and volumes are asked for there"


def claim_of(one: Pod) -> VolumeClaim:
    """As it is made for the pod."""
    name = one.metadata.name
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": one.metadata.uid}
    meta = {"name": f"{name}-own", "namespace": "team", "ownerReferences": [owner]}
    return msgspec.convert({"metadata": meta, "spec": {"storageClassName": "disks"}}, VolumeClaim)


async def test_one_that_may_be_on_one_node_only_finds_room_there() -> None:
    for pinned in ("n0", "n1"):
        alone = Alone(nodes=0)
        for name in ("n0", "n1"):
            alone.mirror.node(node(name, gpus=1))
        alone.mirror.pod(pod("g-0", gang="g", size=2))
        alone.mirror.pod(changed(pod("g-1", gang="g", size=2), nodeSelector={"kubernetes.io/hostname": pinned}))
        await alone.turn()
        assert dict(alone.writer.binds)["g-1"] == pinned and len(alone.writer.binds) == 2


async def test_a_newcomer_that_is_listed_first_takes_nobody_elses_place() -> None:
    """Another leader reads pods by their names, whoever came first; and this one waits while the others run."""
    alone = Alone(nodes=3)
    pods = [pinned_to(f"g-{number}", f"n{number}") for number in range(3)]
    for one in pods:
        alone.mirror.pod(one)
    await alone.turn()
    running = [bound(one, alone) for one in pods]
    later = Alone(nodes=3)
    for one in (pinned_to("again", "n2"), running[0], running[1]):
        later.mirror.pod(one)
    await later.turn()
    assert later.writer.binds == [("again", "n2")]
    later.mirror.pod(bound(pinned_to("again", "n2"), later))
    for _ in range(5):
        later.now += 10.0
        plan = await later.turn()
        assert not any(isinstance(action, Evict | Shrink) for action in plan.actions)
        assert later.engine.problems == []
    slots = alone.mirror.groups.slots()
    assert {uid: later.mirror.groups.slots()[uid] for uid in ("uid-g-0", "uid-g-1")} == {
        uid: slots[uid] for uid in ("uid-g-0", "uid-g-1")
    }


def pinned_to(name: str, host: str) -> Pod:
    return changed(pod(name, gang="g", size=3), nodeSelector={"kubernetes.io/hostname": host})
