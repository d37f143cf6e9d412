"""What storage drivers say, for random worlds: how much room they have for volumes, and where.

Three drivers: one says where it has room and is believed, one has published something and does not ask to be, of one
nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.kube.differential.worlds import Draw

Json = dict[str, Any]
DRIVER, ROOMY = "disks.example.com", "roomy.example.com"
MADE, MADE_IN_ZONES = "made", "made-in-zones"
"""Classes whose volumes are made where their first pod is."""
WITH_ROOM, WITH_ROOM_IN_ZONES = "with-room", "with-room-in-zones"
"""The same, where the driver has published room for them."""
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DRIVERS: dict[str, Json] = {DRIVER: {"storageCapacity": False}, ROOMY: {"storageCapacity": True}}
IN_ZONES = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
CLASSES: dict[str, Json] = {
    MADE: {"provisioner": DRIVER},
    MADE_IN_ZONES: {"provisioner": DRIVER, "allowedTopologies": IN_ZONES},
    WITH_ROOM: {"provisioner": ROOMY},
    WITH_ROOM_IN_ZONES: {"provisioner": ROOMY, "allowedTopologies": IN_ZONES},
}


def capacities(draw: Draw, nodes: list[str], namespace: str) -> list[Json]:
    """Few sizes, so that claims are a little too large, or just fit."""
    return [_capacity(draw, f"room-{i}", nodes, namespace) for i in range(draw.number(0, 14))]


def _capacity(draw: Draw, name: str, nodes: list[str], namespace: str) -> Json:
    made: Json = {
        "metadata": {"name": name, "namespace": namespace},
        "storageClassName": draw.one(WITH_ROOM, WITH_ROOM, WITH_ROOM, WITH_ROOM_IN_ZONES, MADE),
    }
    if draw.chance(90):
        made["capacity"] = draw.one("1Gi", "2Gi", "3Gi", "2147483647", "3G", "10Gi", "10Gi", "0")
    if draw.chance(25):
        made["maximumVolumeSize"] = draw.one("1Gi", "2Gi", "5Gi")
    topology = draw.one(
        {"matchLabels": {HOST: draw.one(*nodes)}},
        {"matchLabels": {HOST: draw.one(*nodes)}},
        {"matchLabels": {ZONE: draw.one("a", "b", "c")}},
        {"matchLabels": {ZONE: "a", "disk": "ssd"}},
        {"matchExpressions": [{"key": HOST, "operator": "In", "values": draw.some(nodes, 3, 1)}]},
        {"matchExpressions": [{"key": ZONE, "operator": draw.one("NotIn", "In"), "values": ["a", "c"]}]},
        {"matchExpressions": [{"key": "rack", "operator": draw.one("Exists", "DoesNotExist")}]},
        {},
        None,
    )
    return {**made, **({} if topology is None else {"nodeTopology": topology})}
