"""World by world: both verdicts on every pod, differences, and what explains them.

A difference is looked at twice: kube-scheduler learns of objects by watches and may have been a moment behind. What it says
the second time counts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.objects import PersistentVolume, Pod, StorageClass, VolumeClaim
from optimus.drivers.kube.requests import effective, read_amounts
from optimus.drivers.kube.volumes import Around
from optimus.model.reasons import Code
from tests.kube.differential.cluster import Cluster, Verdict, read_pod_object
from tests.kube.differential.judging import Judgement, Mirror
from tests.kube.differential.worlds import AT_ONCE, NAMESPACES, WAITS, Json, World

LOOKS = 4
LATER_S = 0.1
NOT_READY = "a node that is not ready takes no new work, whatever is tolerated"
MEMORY = "memory is counted in MiB, rounded against whoever asks"
UNSUPPORTED = "what is not supported gets a reason, not a place"


@dataclass
class Outcome:
    seed: int
    pods: int = 0
    placed: int = 0
    refused: int = 0
    nodes_compared: int = 0
    by_rule: dict[str, Counter[str]] = field(default_factory=dict)
    explained: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    looked_again: int = 0


async def play(cluster: Cluster, world: World) -> Outcome:
    outcome = Outcome(world.seed)
    mirror = await _set_up(cluster, world)
    for written in world.to_place:
        await _one(cluster, mirror, world, written, outcome)
    await cluster.clear()
    return outcome


async def _set_up(cluster: Cluster, world: World) -> Mirror:
    made = await asyncio.gather(
        cluster.make_all("/api/v1/nodes", world.nodes),
        cluster.make_all("/api/v1/persistentvolumes", world.volumes),
        cluster.make_all("/api/v1/namespaces/{namespace}/persistentvolumeclaims", world.claims),
    )
    nodes = [msgspec.json.decode(text, type=KubeNode) for text in made[0]]
    volumes = [msgspec.json.decode(text, type=PersistentVolume) for text in made[1]]
    claims = [msgspec.json.decode(text, type=VolumeClaim) for text in made[2]]
    there = await cluster.make_all("/api/v1/namespaces/{namespace}/pods", world.there)
    for key in sorted(world.leaving | world.over):
        namespace, name = key.split("/")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        if key in world.leaving:
            await cluster.delete(path, gracePeriodSeconds="30")
        else:
            await cluster.patch_status(path, {"phase": "Succeeded"})
    classes = [
        StorageClass(metadata=msgspec.convert({"name": name}, type=type(nodes[0].metadata)), volume_binding_mode=mode)
        for name, mode in ((AT_ONCE, "Immediate"), (WAITS, "WaitForFirstConsumer"))
    ]
    around = Around(
        claims={f"{one.metadata.namespace}/{one.metadata.name}": one for one in claims},
        volumes={one.metadata.name: one for one in volumes},
        classes={one.metadata.name: one for one in classes},
    )
    mirror = Mirror({one.metadata.name: one for one in nodes}, around, ours=world.ours)
    for name, labels in NAMESPACES.items():
        mirror.counting.see_namespace(name, {**labels, "kubernetes.io/metadata.name": name})
    mirror.open(two_pools=world.two_pools)
    for text in there:
        pod = read_pod_object(text)
        if pod.key in world.leaving:
            meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="now")
            pod = msgspec.structs.replace(pod, metadata=meta)
        if pod.key not in world.over:
            mirror.is_there(pod)
    return mirror


async def _one(cluster: Cluster, mirror: Mirror, world: World, written: Json, outcome: Outcome) -> None:
    for look in range(LOOKS):
        verdict = await cluster.ask(written)
        judgement = mirror.judge(_unbound(verdict.pod))
        found, explained = _compare(mirror, verdict, judgement)
        if not found or look == LOOKS - 1:
            break
        outcome.looked_again += 1
        mirror.withdrawn(verdict.pod)
        await cluster.take_away(written)
        await asyncio.sleep(LATER_S)
    outcome.pods += 1
    outcome.nodes_compared += len(mirror.nodes)
    outcome.placed += bool(verdict.node)
    outcome.refused += not verdict.node
    for rule in set(world.rules[verdict.pod.key]):
        outcome.by_rule.setdefault(rule, Counter())["placed" if verdict.node else "refused"] += 1
    outcome.explained.update(explained)
    outcome.differences += [f"world {world.seed}, pod {verdict.pod.key}: {one}" for one in found]
    if verdict.node:
        mirror.placed(verdict.pod, judgement.needs, verdict.node)
    else:
        mirror.withdrawn(verdict.pod)
        await cluster.take_away(written)


def _compare(mirror: Mirror, verdict: Verdict, judgement: Judgement) -> tuple[list[str], list[str]]:
    """What differs and is not explained, in words; and the explanations of what is."""
    found, explained = [], []
    theirs, ours = verdict.feasible, judgement.feasible
    if verdict.node and not theirs:
        found.append(f"kube-scheduler bound it to {verdict.node} without telling the extender")
    for node in sorted(theirs ^ ours):
        why = _explain(mirror, verdict, judgement, node) if node in theirs else ""
        if why:
            explained.append(why)
        elif node in theirs:
            reason = judgement.why.text() if judgement.why else "no reason"
            found.append(f"kube-scheduler may use {node}, we may not ({reason})")
        else:
            found.append(f"we may use {node}, kube-scheduler may not ({verdict.why or 'others are feasible'})")
    if bool(judgement.start) != bool(ours) or (judgement.start and judgement.start not in ours):
        found.append(f"the plan starts it on {judgement.start or 'no node'}, feasible are {sorted(ours)}")
    if judgement.needs.priority != (verdict.pod.spec.priority or 0):
        found.append(f"priority {judgement.needs.priority} instead of {verdict.pod.spec.priority}")
    return found, explained


def _explain(mirror: Mirror, verdict: Verdict, judgement: Judgement, node: str) -> str:
    """Why a node that kube-scheduler may use is not for us, where that is meant."""
    if judgement.needs.obstacle is not None:
        return UNSUPPORTED if judgement.needs.obstacle.code is Code.UNSUPPORTED else ""
    read = read_node(mirror.nodes[node])
    if not read.ready:
        return NOT_READY
    return MEMORY if _only_rounding(mirror, verdict.pod, node) else ""


def _only_rounding(mirror: Mirror, pod: Pod, node: str) -> bool:
    """Whether in MiB memory is too little."""
    there = [needs.request.memory_mib for needs, name in mirror.others.values() if name == node]
    there += [known.memory_mib for known, name, _ in mirror.running.values() if name == node]
    asked = effective(pod).get("memory", 0)
    has = read_amounts(mirror.nodes[node].status.allocatable)["memory"]
    return asked > 0 and -(-asked // (1 << 20)) > has // (1 << 20) - sum(there)


def _unbound(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=None))
