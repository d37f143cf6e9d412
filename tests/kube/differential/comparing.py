"""World by world: both verdicts on every pod, differences, and what explains them.

A difference is looked at twice: kube-scheduler learns of objects by watches and may have been a moment behind. What it
says the second time counts. Ours is asked twice, too: by what is read of each pod (`judging`), and by the mirror of the
controller, which has followed every change (`following`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from optimus.drivers.kube.attaching import Attached, disks_of
from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.claiming import Claims, claims_named
from optimus.drivers.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from optimus.drivers.kube.devices import Catalog
from optimus.drivers.kube.first_consumers import waits_for_consumer
from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.objects import (
    Namespace,
    Narrow,
    PersistentVolume,
    Pod,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageNode,
    VolumeAttachment,
    VolumeClaim,
)
from optimus.drivers.kube.objects import Node as KubeNode
from optimus.drivers.kube.requests import effective, ports_of, read_amounts
from optimus.drivers.kube.volumes import Around, attach_limits
from optimus.model.reasons import Code
from tests.kube.differential.cluster import Cluster, Verdict
from tests.kube.differential.following import Followed, Following
from tests.kube.differential.judging import Judgement, Mirror
from tests.kube.differential.worlds import Json, World

T = TypeVar("T")
LOOKS = 4
LATER_S = 0.1
NOT_READY = "a node that is not ready takes no new work, whatever is tolerated"
MEMORY = "memory is counted in MiB, rounded against whoever asks"
SHARED = "a volume that pods of one node share counts once for each of them against the limit of its driver"
FORGOTTEN = "kube-scheduler forgets a host port that two pods of a node have when one of them has ended; we do not"
NO_ANSWER = "a device for which an expression has no answer is not selected; kube-scheduler ends its attempt there"
ELSEWHERE = "kube-scheduler gives a pod that asks for all devices no place while a pool of any node is incomplete"
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
    mirror, following = await _set_up(cluster, world)
    for written in world.to_place:
        await _one(cluster, mirror, following, world, written, outcome)
    await cluster.clear()
    return outcome


class Items(Narrow, Generic[T], frozen=True, kw_only=True):
    items: list[T]


async def _set_up(cluster: Cluster, world: World) -> tuple[Mirror, Following]:
    namespaced = "/api/v1/namespaces/{namespace}/"
    await asyncio.gather(
        cluster.make_all("/api/v1/nodes", world.nodes),
        cluster.make_all("/apis/storage.k8s.io/v1/csinodes", world.limits),
        cluster.make_all("/api/v1/persistentvolumes", world.volumes),
        cluster.make_all(f"{namespaced}persistentvolumeclaims", world.claims),
        cluster.make_all("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims", world.devices),
        cluster.make_all("/apis/resource.k8s.io/v1/resourceslices", world.slices),
        cluster.make_all("/apis/storage.k8s.io/v1/volumeattachments", world.attachments),
        cluster.make_all("/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities", world.capacities),
    )
    await cluster.make_all(f"{namespaced}pods", world.there)
    patched = [
        (
            "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}".format(**one["metadata"]),
            one["status"],
        )
        for one in world.devices
        if "status" in one
    ]
    patched += [
        ("/api/v1/persistentvolumes/{name}".format(**one["metadata"]), one["status"])
        for one in world.volumes
        if "status" in one
    ]
    patched += [(_path(key), status) for key, status in world.statuses.items()]
    await asyncio.gather(*(cluster.patch_status(path, status) for path, status in patched))
    await asyncio.gather(*(cluster.delete(_path(key), gracePeriodSeconds="30") for key in world.leaving))
    mirror, following = await _mirror(cluster, world)
    waiting = {key for key, one in mirror.around.claims.items() if waits_for_consumer(one, mirror.around.classes)}
    free = {key for key, one in mirror.around.devices.claims.items() if one.status.allocation is None}
    cluster.undecided = waiting | free
    return mirror, following


def _path(pod: str) -> str:
    namespace, name = pod.split("/")
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


async def _mirror(cluster: Cluster, world: World) -> tuple[Mirror, Following]:
    """All of it as the server has it now."""

    async def listed(path: str, kind: type[T]) -> list[T]:
        return msgspec.json.decode(await cluster.get(path), type=Items[kind]).items  # type: ignore[valid-type]

    nodes, volumes, claims, classes = await asyncio.gather(
        listed("/api/v1/nodes", KubeNode),
        listed("/api/v1/persistentvolumes", PersistentVolume),
        listed("/api/v1/persistentvolumeclaims", VolumeClaim),
        listed("/apis/storage.k8s.io/v1/storageclasses", StorageClass),
    )
    devices, limits, pods, namespaces = await asyncio.gather(
        listed("/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim),
        listed("/apis/storage.k8s.io/v1/csinodes", StorageNode),
        listed("/api/v1/pods", Pod),
        listed("/api/v1/namespaces", Namespace),
    )
    catalog = Catalog()
    catalog.slices |= {
        one.metadata.name: one for one in await listed("/apis/resource.k8s.io/v1/resourceslices", ResourceSlice)
    }
    catalog.classes |= {
        one.metadata.name: one for one in await listed("/apis/resource.k8s.io/v1/deviceclasses", DeviceClass)
    }
    capacities = Capacities()
    for driver in await listed("/apis/storage.k8s.io/v1/csidrivers", StorageDriver):
        capacities.driver(driver.metadata.name, driver)
    for room in await listed("/apis/storage.k8s.io/v1/csistoragecapacities", StorageCapacity):
        capacities.capacity(f"{room.metadata.namespace}/{room.metadata.name}", room)
    around = Around(
        claims={f"{one.metadata.namespace}/{one.metadata.name}": one for one in claims},
        volumes={one.metadata.name: one for one in volumes},
        classes={one.metadata.name: one for one in classes},
        capacities=capacities,
        devices=Claims(claims={one.key: one for one in devices}, catalog=catalog),
    )
    attachments = await listed("/apis/storage.k8s.io/v1/volumeattachments", VolumeAttachment)
    attached = Attached()
    for each in attachments:
        attached.see(each.metadata.name, each)
    mirror = Mirror(
        {one.metadata.name: one for one in nodes},
        {one.metadata.name: attach_limits(one) for one in limits},
        around,
        attached,
        ours=world.ours,
    )
    known = msgspec.structs.replace(around.devices, users=mirror.users.of, unbound=mirror.unbound)
    mirror.around = msgspec.structs.replace(around, devices=known)
    following = Following(
        nodes, mirror.limits, around, attachments, namespaces, ours=world.ours, two_pools=world.two_pools
    )
    for one in namespaces:
        mirror.counting.see_namespace(one.metadata.name, one.metadata.labels or {})
    mirror.open(two_pools=world.two_pools)
    for pod in pods:
        following.is_there(pod)
        if pod.over:
            mirror.over.append(pod)
        else:
            mirror.is_there(pod)
    return mirror, following


async def _one(
    cluster: Cluster, mirror: Mirror, following: Following, world: World, written: Json, outcome: Outcome
) -> None:
    for look in range(LOOKS):
        verdict = await cluster.ask(written)
        judgement = mirror.judge(_unbound(verdict.pod))
        found, explained = _compare(mirror, verdict, judgement)
        found += _follow(mirror, verdict, judgement, following.judge(_unbound(verdict.pod)))
        if not found or look == LOOKS - 1:
            break
        outcome.looked_again += 1
        mirror.withdrawn(verdict.pod)
        following.withdrawn(verdict.pod)
        await cluster.take_away(written)
        await asyncio.sleep(LATER_S)
    outcome.pods += 1
    outcome.nodes_compared += len(mirror.nodes)
    outcome.placed += bool(verdict.node)
    outcome.refused += not verdict.node
    for rule in set(world.rules[verdict.pod.key]):
        outcome.by_rule.setdefault(rule, Counter())["placed" if verdict.feasible else "refused"] += 1
    outcome.explained.update(explained)
    outcome.differences += [f"world {world.seed}, pod {verdict.pod.key}: {one}" for one in found]
    if verdict.node:
        mirror.placed(verdict.pod, judgement.needs, verdict.node)
        for key in claims_named(verdict.pod):  # it has been reserved for the pod
            path = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}".format(*key.split("/"))
            found = msgspec.json.decode(await cluster.get(path), type=ResourceClaim)
            mirror.around.devices.claims[key] = found
        following.claims_changed()
        following.placed(verdict.pod)
    else:
        mirror.withdrawn(verdict.pod)
        following.withdrawn(verdict.pod)
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
            if "CEL runtime error" in verdict.why:
                explained.append(NO_ANSWER)
                continue
            if "asks for all devices, but resource pool" in verdict.why and _is_whole(mirror, node):
                explained.append(ELSEWHERE)
                continue
            found.append(f"we may use {node}, kube-scheduler may not ({verdict.why or 'others are feasible'})")
    if bool(judgement.start) != bool(ours) or (judgement.start and judgement.start not in ours):
        found.append(f"the plan starts it on {judgement.start or 'no node'}, feasible are {sorted(ours)}")
    if judgement.needs.priority != (verdict.pod.spec.priority or 0):
        found.append(f"priority {judgement.needs.priority} instead of {verdict.pod.spec.priority}")
    return found, explained


def _follow(mirror: Mirror, verdict: Verdict, judgement: Judgement, followed: Followed) -> list[str]:
    """The same of the mirror of the controller; what is explained was counted before."""
    found = []
    for node in sorted(verdict.feasible ^ followed.feasible):
        if node not in verdict.feasible:
            found.append(f"the controller may use {node}, kube-scheduler may not ({verdict.why})")
        elif not _explain(mirror, verdict, judgement, node):
            found.append(f"kube-scheduler may use {node}, the controller may not")
    if bool(followed.start) != bool(followed.feasible) or (followed.start and followed.start not in followed.feasible):
        found.append(
            f"the controller starts it on {followed.start or 'no node'}, feasible are {sorted(followed.feasible)}"
        )
    return found


def _explain(mirror: Mirror, verdict: Verdict, judgement: Judgement, node: str) -> str:
    """Why a node that kube-scheduler may use is not for us, where that is meant."""
    if judgement.needs.obstacle is not None:
        return UNSUPPORTED if judgement.needs.obstacle.code is Code.UNSUPPORTED else ""
    read = read_node(mirror.nodes[node])
    if not read.ready:
        return NOT_READY
    if _only_rounding(mirror, verdict.pod, node):
        return MEMORY
    if _is_forgotten(mirror, verdict.pod, node):
        return FORGOTTEN
    return SHARED if _shares_a_volume(mirror, verdict.pod, node) else ""


def _is_whole(mirror: Mirror, node: str) -> bool:
    return mirror.around.devices.catalog.is_whole(read_node(mirror.nodes[node]))


def _only_rounding(mirror: Mirror, pod: Pod, node: str) -> bool:
    """Whether in MiB memory is too little."""
    there = [needs.request.memory_mib for needs, name in mirror.others.values() if name == node]
    there += [known.memory_mib for known, name, _ in mirror.running.values() if name == node]
    asked = effective(pod).get("memory", 0)
    has = read_amounts(mirror.nodes[node].status.allocatable)["memory"]
    return asked > 0 and -(-asked // (1 << 20)) > has // (1 << 20) - sum(there)


def _is_forgotten(mirror: Mirror, pod: Pod, node: str) -> bool:
    """Whether a port that it wants was one of a pod that has ended there, and is that of another that has not."""
    ended = {port for one in mirror.over if one.spec.node_name == node for port in ports_of(one)}
    there = {port for one in mirror.pods.values() if one.spec.node_name == node for port in ports_of(one)}
    return bool(ports_of(pod).keys() & ended & there)


def _shares_a_volume(mirror: Mirror, pod: Pod, node: str) -> bool:
    """Whether pods on a node that has a limit, this one included, use the same claim."""
    around, pods = mirror.around, [*(one for one in mirror.pods.values() if one.spec.node_name == node), pod]
    used = Counter(disk for one in pods for disk in disks_of(one, around.claims, around.volumes, around.classes))
    return bool(mirror.limits.get(node)) and any(count > 1 for count in used.values())


def _unbound(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=None))
