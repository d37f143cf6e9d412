"""Devices for random worlds: slices of three drivers, claims that have some of them, and claims that want some.

Few devices on a node and few values of an attribute, so that selectors, constraints and numbers meet each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.kube.differential.worlds import Draw, World

Json = dict[str, Any]
GPU, NIC, FABRIC = "gpu.nvidia.com", "nic.example.com", "fabric.example.com"
ASKS, HELD = "asks", "held"
_ZONE = "topology.kubernetes.io/zone"
DEVICE_CLASSES: dict[str, tuple[str, ...]] = {
    "gpus": (f'device.driver == "{GPU}"', f'device.attributes["{GPU}"].type == "gpu"'),
    "large-gpus": (f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory.compareTo(quantity("80Gi")) >= 0',),
    "nics": (f'device.driver == "{NIC}"',),
    "fabric": (f'device.driver == "{FABRIC}"',),
    "not-gpus": (f'device.driver != "{GPU}"',),
}
_SELECTORS = {
    "gpus": (
        f'device.attributes["{GPU}"].productName == "H100"',
        f'cel.bind(gpu, device.attributes["{GPU}"], gpu.numa == 1 || gpu.productName == "H100")',
        f'device.attributes["{GPU}"].driverVersion.isGreaterThan(semver("550.0.0"))',
    ),
    "large-gpus": (f'device.attributes["{GPU}"].numa < 1',),
    "nics": (
        f'device.attributes["{NIC}"].rail in ["r0", "r2"]',
        f'has(device.attributes["{NIC}"].spare) && device.attributes["{NIC}"].spare',
        f'device.attributes["{NIC}"].spare',
    ),
    "fabric": (f'device.attributes["{FABRIC}"].port > 0',),
    "not-gpus": (f'!("{NIC}" in device.attributes)',),
}


def draw_devices(draw: Draw, world: World, nodes: list[str], namespaces: list[str]) -> None:
    for node in nodes:
        if draw.chance(70):
            _publish(draw, world, node, GPU, [_gpu(draw, i) for i in range(draw.number(1, 5))])
        if draw.chance(60):
            _publish(draw, world, node, NIC, [_nic(draw, i) for i in range(draw.number(1, 3))])
    for pool in range(draw.number(0, 2)):
        zone = {"key": _ZONE, "operator": "In", "values": draw.some(("a", "b", "c"), 2, 1)}
        of_zone: Json = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
        where = draw.one({"allNodes": True}, of_zone)
        ports = [{"name": f"port-{i}", "attributes": {"port": {"int": i}}} for i in range(draw.number(1, 3))]
        _publish(draw, world, f"w{world.seed}-fabric-{pool}", FABRIC, ports, where)
    there = [(one["spec"], device) for one in world.slices for device in one["spec"]["devices"]]
    for i, (spec, device) in enumerate(draw.some(there, 4)):
        world.devices.append(_held(draw.one(*namespaces), f"{HELD}-{i}", spec, device))
    for namespace in namespaces:
        for i in range(draw.number(1, 3)):
            world.devices.append(_asking(draw, namespace, f"{ASKS}-{i}"))


def _publish(draw: Draw, world: World, pool: str, driver: str, devices: list[Json], where: Json | None = None) -> None:
    parts = 2 if len(devices) > 1 and draw.chance(25) else 1
    missing = draw.chance(6)
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": 2, "resourceSliceCount": parts + missing},
        **(where or {"nodeName": pool}),
    }
    for part in range(parts):
        name = f"{pool}-{driver.partition('.')[0]}-{part}"
        world.slices.append({"metadata": {"name": name}, "spec": {**spec, "devices": devices[part::parts]}})
    if draw.chance(10):
        old = {**spec, "pool": {**spec["pool"], "generation": 1}, "devices": [{**devices[0], "name": "old"}]}
        world.slices.append({"metadata": {"name": f"{pool}-{driver.partition('.')[0]}-old"}, "spec": old})


def _gpu(draw: Draw, number: int) -> Json:
    attributes = {
        "type": {"string": "gpu" if draw.chance(90) else "mig"},
        "productName": {"string": draw.one("A100", "A100", "H100")},
        "numa": {"int": number % 2},
        "driverVersion": {"version": draw.one("535.104.5", "550.54.15")},
    }
    made: Json = {
        "name": f"gpu-{number}",
        "attributes": attributes,
        "capacity": {"memory": {"value": draw.one("40Gi", "80Gi")}},
    }
    return {**made, "taints": [_taint(draw)]} if draw.chance(12) else made


def _nic(draw: Draw, number: int) -> Json:
    attributes: Json = {"rail": {"string": f"r{number}"}, f"{GPU}/numa": {"int": draw.number(0, 1)}}
    if draw.chance(92):
        attributes["spare"] = {"bool": draw.chance(50)}
    made = {"name": f"nic-{number}", "attributes": attributes}
    return {**made, "taints": [_taint(draw)]} if draw.chance(8) else made


def _taint(draw: Draw) -> Json:
    return {"key": "sick", "value": draw.one("yes", "no"), "effect": draw.one("NoSchedule", "NoExecute", "None")}


def _held(namespace: str, name: str, spec: Json, device: Json) -> Json:
    """Somebody has this device already."""
    asked = {"name": "one", "exactly": {"deviceClassName": "none"}}
    given = {"request": "one", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
    allocation: Json = {"devices": {"results": [given]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    if "nodeName" in spec:
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [here]}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [asked]}},
        "status": {"allocation": allocation},
    }


def _asking(draw: Draw, namespace: str, name: str) -> Json:
    kinds = draw.some(tuple(DEVICE_CLASSES), 2, 1)
    requests = [_request(draw, kind, f"r{number}") for number, kind in enumerate(kinds)]
    spec: Json = {"requests": requests}
    if draw.chance(20):
        names = [] if draw.chance(50) else [requests[0]["name"]]
        spec["constraints"] = [{"matchAttribute": f"{GPU}/numa", **({"requests": names} if names else {})}]
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"devices": spec}}


def _request(draw: Draw, kind: str, name: str) -> Json:
    if draw.chance(15):
        ways = [{"name": f"w{i}", **_way(draw, one)} for i, one in enumerate((kind, draw.one(*DEVICE_CLASSES)))]
        return {"name": name, "firstAvailable": ways}
    return {"name": name, "exactly": _way(draw, kind)}


def _way(draw: Draw, kind: str) -> Json:
    way: Json = {"deviceClassName": kind}
    if draw.chance(35):
        way["selectors"] = [{"cel": {"expression": draw.one(*_SELECTORS[kind])}}]
    if draw.chance(12):
        way["allocationMode"] = "All"
    elif draw.chance(60):
        way["count"] = draw.one(1, 1, 2, 3)
    if draw.chance(25):
        way["tolerations"] = [draw.one({"key": "sick", "operator": "Exists"}, {"key": "sick", "value": "yes"})]
    return way
