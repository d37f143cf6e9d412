"""Random worlds: nodes, volumes, pods that are there and pods to be placed, with every rule that pods can have.

Few labels, few values and small nodes, so that rules meet each other and room runs out. The same seed gives the same
world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tests.kube.differential.drawn_devices import ASKS, HELD, draw_devices
from tests.kube.differential.drawn_storage import (
    DRIVER,
    MADE,
    MADE_AS_OF_OLD,
    MADE_IN_ZONES,
    WITH_ROOM,
    WITH_ROOM_IN_ZONES,
    attachments,
    capacities,
    disk,
    limits,
    old_disk,
)

T = TypeVar("T")
Json = dict[str, Any]
NAMESPACES = {"diff-a": {"team": "x", "env": "dev"}, "diff-b": {"team": "y", "env": "dev"}, "diff-c": {"team": "y"}}
HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
LEVELS = (HOST, ZONE, "rack")
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
RUNTIME, PRIORITIES = "heavy", {"low": 100, "high": 1000}
WAITS, AT_ONCE = "waits", "at-once"
LATER = "later"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


@dataclass
class World:
    seed: int
    ours: bool
    """What kube-scheduler places is ours in the brain, not somebody else's."""
    two_pools: bool
    about_storage: bool
    """Small pods without other rules, nearly all of which have volumes: else something else forbids most places."""
    aside: Draw
    """For devices that are claimed: all else is as it would be without them."""
    nodes: list[Json] = field(default_factory=list)
    volumes: list[Json] = field(default_factory=list)
    claims: list[Json] = field(default_factory=list)
    limits: list[Json] = field(default_factory=list)
    """How many volumes of a driver a node takes (CSINode)."""
    capacities: list[Json] = field(default_factory=list)
    """Room for volumes that drivers have published."""
    attachments: list[Json] = field(default_factory=list)
    """Volumes that hang on a node, whether a pod there uses them or not."""
    devices: list[Json] = field(default_factory=list)
    """Claims of devices, with their status."""
    slices: list[Json] = field(default_factory=list)
    there: list[Json] = field(default_factory=list)
    """Bound before anybody is asked."""
    leaving: set[str] = field(default_factory=set)
    """Of those that are there: being deleted."""
    statuses: dict[str, Json] = field(default_factory=dict)
    """Of those that are there: ended, or resized in place."""
    to_place: list[Json] = field(default_factory=list)
    rules: dict[str, list[str]] = field(default_factory=dict)
    """By pod: the rules it has."""

    @property
    def used(self) -> Counter[str]:
        return Counter(rule for rules in self.rules.values() for rule in rules)


class Draw:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, percent: int) -> bool:
        return bool(self.rng.integers(100) < percent)

    def one(self, *choices: T) -> T:
        return choices[int(self.rng.integers(len(choices)))]

    def some(self, choices: Sequence[T], most: int, least: int = 0) -> list[T]:
        count = int(self.rng.integers(least, min(most, len(choices)) + 1))
        return [choices[i] for i in sorted(self.rng.permutation(len(choices))[:count].tolist())]

    def number(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))


def random_world(seed: int) -> World:
    draw = Draw(seed)
    ours, two_pools, aside = draw.chance(50), draw.chance(30), Draw(seed + (1 << 40))
    world = World(seed, ours=ours, two_pools=two_pools, about_storage=aside.chance(30), aside=aside)
    world.nodes = [_node(draw, f"w{seed}-n{i}", two_pools=world.two_pools) for i in range(draw.number(3, 12))]
    names = [node["metadata"]["name"] for node in world.nodes]
    _storage(draw, world, names)
    draw_devices(world.aside, world, names, list(NAMESPACES))
    for i in range(draw.number(2, 16)):
        pod = _pod(draw, world, f"there-{i}")
        pod["spec"].pop("schedulingGates", None)
        pod["spec"]["nodeName"] = draw.one(*names)
        world.there.append(pod)
        if draw.chance(12):
            world.leaving.add(_key(pod))
        elif draw.chance(6):
            world.statuses[_key(pod)] = {"phase": draw.one("Succeeded", "Failed")}
        elif draw.chance(12):
            world.statuses[_key(pod)] = _resized(draw, pod)
    world.rules.clear()
    world.to_place = [_pod(draw, world, f"p{i}") for i in range(draw.number(3, 20))]
    return world


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


# -- nodes ------------------------------------------------------------------------------------------------------------


def _node(draw: Draw, name: str, *, two_pools: bool) -> Json:
    has = {
        "cpu": draw.one("2", "6", "7920m", "16", "32"),
        "memory": draw.one("3Gi", "6Gi", "7913508Ki", "16Gi", "64Gi"),
        "pods": str(draw.number(3, 16)),
    }
    for resource, percent, amounts in (
        ("ephemeral-storage", 80, ("10Gi", "40Gi", "1000000001")),
        ("nvidia.com/gpu", 60, ("1", "2", "4", "8")),
        ("amd.com/gpu", 20, ("1", "2", "4")),
        ("nvidia.com/mig-1g.5gb", 25, ("1", "3", "7")),
        ("example.com/fpga", 35, ("1", "3")),
        ("hugepages-2Mi", 35, ("64Mi", "256Mi")),
    ):
        if draw.chance(percent):
            has[resource] = draw.one(*amounts)
    ready = not draw.chance(7)
    taints = [_taint(draw) for _ in range(draw.number(1, 2))] if draw.chance(35) else []
    if not ready:
        taints.append(NOT_READY)
    spec: Json = {"taints": list({(one["key"], one["effect"]): one for one in taints}.values())}
    if draw.chance(10):
        spec["unschedulable"] = True
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    return {
        "metadata": {"name": name, "labels": _labels(draw, name, two_pools=two_pools)},
        "spec": spec,
        "status": {"allocatable": has, "capacity": has, "conditions": conditions},
    }


def _labels(draw: Draw, name: str, *, two_pools: bool) -> dict[str, str]:
    labels = {}
    for key, percent, values in (
        (HOST, 92, (name,)),
        (ZONE, 85, ("a", "b", "c")),
        (REGION, 30, ("north", "south")),
        (OLD_ZONE, 12, ("a", "b")),
        ("rack", 75, ("r0", "r1", "r2", "r3")),
        ("disk", 60, ("ssd", "hdd")),
        ("gen", 50, ("1", "3", "7", "9", "x7", "1_0", "007")),
        ("pool", 50 if two_pools else 0, ("two",)),
    ):
        if draw.chance(percent):
            labels[key] = draw.one(*values)
    return labels


def _taint(draw: Draw) -> Json:
    taint = {
        "key": draw.one("dedicated", "spot"),
        "effect": draw.one("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"),
    }
    return {**taint, "value": draw.one("one", "two")} if draw.chance(70) else taint


# -- storage ----------------------------------------------------------------------------------------------------------


def _storage(draw: Draw, world: World, nodes: list[str]) -> None:
    """Claims of all kinds, a few for each namespace."""
    for namespace in NAMESPACES:
        for i in range(draw.number(1, 4)):
            _claim(draw, world, namespace, f"data-{i}", nodes)
        for i in range(draw.number(1, 8 if world.about_storage else 3)):
            world.claims.append(_waiting_claim(draw, namespace, f"{LATER}-{i}", nodes))
        for i in range(draw.number(0, 2)):
            world.devices.append(_devices(draw, namespace, f"devices-{i}", nodes))
    for i in range(draw.number(8, 16) if world.about_storage else draw.number(2, 7)):
        world.volumes.append(_spare_volume(draw, world, f"w{world.seed}-spare-{i}", nodes))
    world.capacities = capacities(draw, nodes, next(iter(NAMESPACES)))
    world.limits = [one for node in nodes if (one := limits(draw, node)) is not None]
    world.attachments = attachments(draw, world.seed, world.volumes, nodes)


def _devices(draw: Draw, namespace: str, name: str, nodes: list[str]) -> Json:
    """Allocated on a node, on nodes of a zone, or not at all."""
    asked = {"name": "one", "exactly": {"deviceClassName": "none"}}
    claim: Json = {"metadata": {"name": name, "namespace": namespace}, "spec": {"devices": {"requests": [asked]}}}
    if draw.chance(20):
        return claim
    where = draw.one(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [draw.one(*nodes)]}]},
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": draw.some(("a", "b", "c"), 2, 1)}]},
    )
    given = {"request": "one", "driver": DRIVER, "pool": "all", "device": name}
    allocation = {
        "devices": {"results": [given]},
        "nodeSelector": {"nodeSelectorTerms": [where]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",  # whoever binds a pod would add it, and may not
    }
    return {**claim, "status": {"allocation": allocation}}


def _claim(draw: Draw, world: World, namespace: str, name: str, nodes: list[str]) -> None:
    kind = draw.one("free", "zone", "hosts", "labels", "old-label", "only-one", "unbound", "waits", "half", "lost")
    volume = f"w{world.seed}-{namespace}-{name}"
    mode = "ReadWriteOncePod" if kind == "only-one" else "ReadWriteMany"
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": AT_ONCE}
    meta: Json = {"name": name, "namespace": namespace}
    if kind == "waits":
        spec["storageClassName"] = WAITS
    elif kind != "unbound":
        spec["volumeName"] = volume
        if kind != "half":
            meta["annotations"] = {BOUND: "yes"}
    world.claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    if kind in ("unbound", "waits", "lost"):
        return
    labels: Json = {}
    if kind == "labels":
        labels = {draw.one(ZONE, ZONE, REGION): draw.one("a", "b__c", "north")}
    elif kind == "old-label":
        labels = {OLD_ZONE: draw.one("a", "a__b")}
    described: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "storageClassName": AT_ONCE,
    }
    described |= disk(draw, volume)
    if kind in ("zone", "hosts"):
        requirement = {"key": ZONE, "operator": draw.one("In", "NotIn"), "values": draw.some(("a", "b", "c"), 2, 1)}
        if kind == "hosts":
            requirement = {"key": HOST, "operator": "In", "values": draw.some(nodes, 3, 1)}
        described["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    world.volumes.append(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume, "labels": labels},
            "spec": described,
        }
    )


def _waiting_claim(draw: Draw, namespace: str, name: str, nodes: list[str]) -> Json:
    """Bound only when its first pod is placed: to a volume that is there, or to one that is made."""
    spec: Json = {
        "accessModes": draw.some(("ReadWriteOnce", "ReadWriteMany"), 2, 1),
        "resources": {"requests": {"storage": draw.one("1Gi", "2Gi", "3Gi")}},
        "storageClassName": draw.one(
            WAITS, WAITS, WAITS, WAITS, MADE, MADE_IN_ZONES, MADE_AS_OF_OLD, WITH_ROOM, WITH_ROOM, WITH_ROOM_IN_ZONES
        ),
    }
    if draw.chance(15):
        spec["volumeMode"] = "Block"
    if draw.chance(20):
        spec["selector"] = {"matchLabels": {"disk": draw.one("fast", "slow")}}
    meta: Json = {"name": name, "namespace": namespace}
    if draw.chance(15):
        meta["annotations"] = {SELECTED: draw.one(*nodes)}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _are_made_with_room(world: World, namespace: str, volumes: list[Json]) -> bool:
    used = {one.get("persistentVolumeClaim", {}).get("claimName") for one in volumes}
    return any(
        one["spec"]["storageClassName"] in (WITH_ROOM, WITH_ROOM_IN_ZONES)
        for one in world.claims
        if one["metadata"]["namespace"] == namespace and one["metadata"]["name"] in used
    )


def _spare_volume(draw: Draw, world: World, name: str, nodes: list[str]) -> Json:
    spec: Json = {
        "capacity": {"storage": draw.one("1Gi", "2Gi", "4Gi")},
        "accessModes": draw.one(["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadWriteMany"]),
        "storageClassName": draw.one(WAITS, WAITS, WAITS, MADE, MADE_IN_ZONES, WITH_ROOM, AT_ONCE),
        "hostPath": {"path": "/nowhere"},
    }
    if draw.chance(15):
        spec["volumeMode"] = "Block"
    where = draw.one("host", "host", "zone", "anywhere")
    if where != "anywhere":
        requirement = {"key": HOST, "operator": "In", "values": draw.some(nodes, 2, 1)}
        if where == "zone":
            requirement = {"key": ZONE, "operator": "In", "values": draw.some(("a", "b", "c"), 2, 1)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    if draw.chance(15):
        meant = draw.one(*world.claims)["metadata"]
        spec["claimRef"] = {"namespace": meant["namespace"], "name": meant["name"]}
    labels = {"disk": draw.one("fast", "slow")} if draw.chance(40) else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"phase": "Available" if draw.chance(85) else "Released"},
    }


# -- pods -------------------------------------------------------------------------------------------------------------


def _pod(draw: Draw, world: World, name: str) -> Json:
    namespace = draw.one("diff-a", "diff-a", *NAMESPACES)
    labels = {}
    if draw.chance(85):
        labels["app"] = draw.one("web", "db", "cache")
    if draw.chance(40):
        labels["tier"] = draw.one("front", "back")
    if draw.chance(40):
        labels["rev"] = draw.one("1", "2")
    rules: list[str] = []
    if world.about_storage:
        spec: Json = {"containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]}
    else:
        spec = _containers(draw, rules)
        _where(draw, world, spec, rules)
    if draw.chance(90 if world.about_storage else 18):
        rules.append("volumes")
        spec["volumes"] = _volumes(draw, world, namespace)
        if any(one.get("persistentVolumeClaim", {}).get("claimName", "").startswith(LATER) for one in spec["volumes"]):
            rules.append("claims that wait for a pod")
        if any(one["name"] == "old" for one in spec["volumes"]):
            rules.append("disks in pods")
        if _are_made_with_room(world, namespace, spec["volumes"]):
            rules.append("room that drivers have")
    known = [one["metadata"]["name"] for one in world.devices if one["metadata"]["namespace"] == namespace]
    plain = [name for name in known if not name.startswith((ASKS, HELD))]
    names = [draw.one(*plain)] if plain and draw.chance(12) else []
    if world.aside.chance(14):
        names += world.aside.some([name for name in known if name not in plain], 2, 1)
        rules += ["devices to be chosen"] if any(name.startswith(ASKS) for name in names) else []
    if names:
        rules.append("resource claims")
        spec["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
    if draw.chance(4):
        rules.append("scheduling gate")
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if draw.chance(15):
        rules.append("priority class")
        spec["priorityClassName"] = draw.one(*PRIORITIES)
    world.rules[f"{namespace}/{name}"] = rules or ["resources only"]
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _where(draw: Draw, world: World, spec: Json, rules: list[str]) -> None:
    hosts = [node["metadata"]["name"] for node in world.nodes]
    affinity: Json = {}
    if draw.chance(15):
        rules.append("node selector")
        spec["nodeSelector"] = dict([draw.one(("disk", "ssd"), (ZONE, "a"), ("rack", "r1"), ("gen", "7"))])
    if draw.chance(20):
        rules.append("node affinity")
        terms = [_node_term(draw, hosts) for _ in range(draw.number(1, 2))]
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if draw.chance(50):
        rules.append("tolerations")
        spec["tolerations"] = [_toleration(draw) for _ in range(draw.number(1, 2))]
    for kind, percent, told in (("podAffinity", 15, "pod affinity"), ("podAntiAffinity", 22, "pod anti-affinity")):
        if draw.chance(percent):
            rules.append(told)
            terms = [_pod_term(draw) for _ in range(draw.one(1, 1, 2))]
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if draw.chance(22):
        rules.append("topology spread")
        levels = draw.some(LEVELS, 2, 1)
        spec["topologySpreadConstraints"] = [_spread(draw, level) for level in levels]
    if affinity:
        spec["affinity"] = affinity


def _resized(draw: Draw, pod: Json) -> Json:
    """A resize that is under way, or impossible."""
    first = pod["spec"]["containers"][0]["name"]
    has = {"cpu": draw.one("50m", "2"), "memory": draw.one("32Mi", "2Gi")}
    given = {"cpu": draw.one("50m", "3"), "memory": draw.one("32Mi", "2Gi")}
    status: Json = {"name": first, "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    status |= {"resources": {"requests": has}, "allocatedResources": given}
    pending = {"type": "PodResizePending", "status": "True", "reason": draw.one("Infeasible", "Deferred")}
    return {"containerStatuses": [status], "conditions": [pending] if draw.chance(60) else []}


def _containers(draw: Draw, rules: list[str]) -> Json:
    spec: Json = {"containers": [_container(draw, f"c{i}", rules) for i in range(draw.one(1, 1, 2))]}
    if draw.chance(25):
        first = []
        for i in range(draw.number(1, 3)):
            container = _container(draw, f"i{i}", rules, ports=False)
            if draw.chance(50):
                container["restartPolicy"] = "Always"
                rules.append("sidecars")
                if draw.chance(20):
                    container["ports"] = [_port(draw, rules)]
            else:
                rules.append("init containers")
            first.append(container)
        spec["initContainers"] = first
    elif draw.chance(10) and len(spec["containers"]) == 1:
        rules.append("pod-level resources")
        spec["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        spec["resources"] = {"requests": {"cpu": draw.one("500m", "3"), "memory": draw.one("128Mi", "3Gi")}}
    if draw.chance(12):
        rules.append("overhead")
        spec["runtimeClassName"] = RUNTIME
    _keep_ports_apart(spec)
    return spec


def _keep_ports_apart(spec: Json) -> None:
    """The server takes no pod that asks for the same port of the same address twice."""
    seen: set[tuple[str, int, str]] = set()
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        ports = {(one["protocol"], one["hostPort"], one.get("hostIP", "")): one for one in container.pop("ports", ())}
        kept = [port for key, port in ports.items() if key not in seen]
        seen |= ports.keys()
        if kept:
            container["ports"] = kept


def _container(draw: Draw, name: str, rules: list[str], *, ports: bool = True) -> Json:
    asked: Json = {}
    if draw.chance(80):
        asked["cpu"] = draw.one("100m", "250m", "1", "2500m", "0")
    if draw.chance(80):
        asked["memory"] = draw.one("64Mi", "256Mi", "1Gi", "3Gi", "300M", "1500000001", "0")
    if draw.chance(15):
        rules.append("ephemeral storage")
        asked["ephemeral-storage"] = draw.one("1Gi", "9Gi", "500000001")
    exact: Json = {}
    for resource, percent, most in (
        ("nvidia.com/gpu", 12, 4),
        ("amd.com/gpu", 4, 2),
        ("nvidia.com/mig-1g.5gb", 4, 3),
        ("example.com/fpga", 6, 2),
    ):
        if draw.chance(percent):
            rules.append("GPUs" if resource.endswith("gpu") else "extended resources")
            exact[resource] = str(draw.number(1, most))
    if draw.chance(5):
        rules.append("huge pages")
        exact["hugepages-2Mi"] = draw.one("32Mi", "64Mi")
        asked.setdefault("cpu", "100m")
    container: Json = {"name": name, "image": "none", "resources": {"requests": {**asked, **exact}, "limits": exact}}
    if ports and draw.chance(12):
        container["ports"] = [_port(draw, rules)]
    return container


def _port(draw: Draw, rules: list[str]) -> Json:
    rules.append("host ports")
    protocol = draw.one("TCP", "TCP", "UDP")
    port: Json = {"containerPort": 80, "hostPort": draw.one(8080, 8080, 9090), "protocol": protocol}
    address = draw.one("", "", "0.0.0.0", "10.0.0.1", "10.0.0.2")
    return {**port, "hostIP": address} if address else port


def _node_term(draw: Draw, hosts: list[str]) -> Json:
    term: Json = {}
    if draw.chance(90):
        term["matchExpressions"] = [_node_expression(draw) for _ in range(draw.one(1, 1, 2))]
    if draw.chance(12):
        field_value = {"key": "metadata.name", "operator": draw.one("In", "NotIn"), "values": [draw.one(*hosts)]}
        term["matchFields"] = [field_value]
    return term


def _node_expression(draw: Draw) -> Json:
    match draw.number(0, 5):
        case 0:
            return {"key": "gen", "operator": draw.one("Gt", "Lt"), "values": [draw.one("2", "7", "8")]}
        case 1:
            return {"key": draw.one("disk", "gen", "rack"), "operator": draw.one("Exists", "DoesNotExist")}
        case 2:
            return {"key": "disk", "operator": draw.one("In", "NotIn"), "values": ["ssd"]}
        case _:
            key, values = draw.one((ZONE, ("a", "b", "c")), ("rack", ("r0", "r1", "r2", "r3")))
            return {"key": key, "operator": draw.one("In", "In", "NotIn"), "values": draw.some(values, 2, 1)}


def _toleration(draw: Draw) -> Json:
    effect = {"effect": draw.one("NoSchedule", "NoExecute")} if draw.chance(40) else {}
    match draw.number(0, 7):
        case 0:
            return {"operator": "Exists", **effect}
        case 1:
            return {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", **effect}
        case 2 | 3 | 4:
            return {"key": draw.one("dedicated", "spot"), "operator": "Exists", **effect}
        case 5:
            return {"key": draw.one("dedicated", "spot"), **effect}
    key, value = draw.one("dedicated", "spot"), draw.one("one", "two")
    return {"key": key, "operator": "Equal", "value": value, **effect}


def _selector(draw: Draw) -> Json:
    match draw.number(0, 11):
        case 0:
            return {}
        case 1:
            return {"matchExpressions": [{"key": "app", "operator": draw.one("Exists", "DoesNotExist")}]}
        case 2:
            expression = {"key": "app", "operator": draw.one("In", "NotIn"), "values": draw.some(("web", "db"), 2, 1)}
            return {"matchExpressions": [expression]}
        case 3:
            return {"matchLabels": {"app": draw.one("web", "db"), "tier": draw.one("front", "back")}}
    return {"matchLabels": {"app": draw.one("web", "db", "cache")}}


def _pod_term(draw: Draw) -> Json:
    term: Json = {"topologyKey": draw.one(*LEVELS)}
    if draw.chance(94):
        term["labelSelector"] = _selector(draw)
        if draw.chance(15):
            term[draw.one("matchLabelKeys", "mismatchLabelKeys")] = ["rev"]
    match draw.number(0, 6):
        case 0:
            term["namespaces"] = draw.some(tuple(NAMESPACES), 2, 1)
        case 1:
            term["namespaceSelector"] = draw.one({}, {"matchLabels": {"team": "y"}}, {"matchLabels": {"env": "dev"}})
        case 2:
            term["namespaces"] = ["diff-c"]
            term["namespaceSelector"] = {"matchLabels": {"team": "x"}}
    return term


def _spread(draw: Draw, level: str) -> Json:
    hard = draw.chance(85)
    spread: Json = {
        "maxSkew": draw.one(1, 1, 2),
        "topologyKey": level,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
    }
    if draw.chance(94):
        spread["labelSelector"] = _selector(draw)
        if draw.chance(20):
            spread["matchLabelKeys"] = ["rev"]
    if hard and draw.chance(25):
        spread["minDomains"] = draw.number(1, 4)
    if draw.chance(30):
        spread["nodeAffinityPolicy"] = draw.one("Honor", "Ignore")
    if draw.chance(30):
        spread["nodeTaintsPolicy"] = draw.one("Honor", "Ignore")
    return spread


def _volumes(draw: Draw, world: World, namespace: str) -> list[Json]:
    known = [one["metadata"]["name"] for one in world.claims if one["metadata"]["namespace"] == namespace]
    names = draw.some(known, 2, 1)
    if world.about_storage and draw.chance(70):
        names = [draw.one(*(one for one in known if one.startswith(LATER)))]
    elif draw.chance(8):
        names.append("missing")
    found: list[Json] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": one}} for i, one in enumerate(names)]
    if draw.chance(5):
        found.append({"name": "scratch", "emptyDir": {}})
    if draw.chance(20):
        found.append({"name": "old", **old_disk(draw, in_pods=True)})
    if draw.chance(3):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        found.append({"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
    return found
