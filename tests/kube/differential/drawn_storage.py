"""What storage drivers say, for random worlds: how much room they have for volumes and where, how many volumes a node
takes, and which hang there; with disks as they were written before there were drivers.

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
MADE_AS_OF_OLD = "made-as-of-old"
"""Classes whose volumes are made where their first pod is."""
WITH_ROOM, WITH_ROOM_IN_ZONES = "with-room", "with-room-in-zones"
"""The same, where the driver has published room for them."""
EBS, AZURE = "ebs.csi.aws.com", "disk.csi.azure.com"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DRIVERS: dict[str, Json] = {DRIVER: {"storageCapacity": False}, ROOMY: {"storageCapacity": True}}
IN_ZONES = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
CLASSES: dict[str, Json] = {
    MADE: {"provisioner": DRIVER},
    MADE_IN_ZONES: {"provisioner": DRIVER, "allowedTopologies": IN_ZONES},
    MADE_AS_OF_OLD: {"provisioner": "kubernetes.io/aws-ebs"},
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


def disk(draw: Draw, name: str) -> Json:
    """Where a volume is."""
    match draw.number(0, 9):
        case 0 | 1 | 2 | 3 | 4:
            return {"csi": {"driver": DRIVER, "volumeHandle": name}}
        case 5:
            return {"csi": {"driver": EBS, "volumeHandle": draw.one("vol-1", "vol-2")}}
        case 6 | 7:
            return old_disk(draw)
    return {"hostPath": {"path": "/nowhere"}}


def old_disk(draw: Draw, *, in_pods: bool = False) -> Json:
    """`in_pods`: one that may be written in a pod, too."""
    if not in_pods and draw.chance(50):
        return {"awsElasticBlockStore": {"volumeID": draw.one("aws://eu-1a/vol-1", "aws:///vol-2", "vol-3")}}
    name = draw.one("one", "two", "three")
    return {"azureDisk": {"diskName": name, "diskURI": f"/subscriptions/x/disks/{name}", "kind": "Managed"}}


def limits(draw: Draw, node: str) -> Json | None:
    """How many volumes it takes of each driver that runs there."""
    if draw.chance(40):
        return None
    drivers: list[Json] = []
    for driver in (DRIVER, EBS, AZURE):
        if draw.chance(70):
            drivers.append({"name": driver, "nodeID": node})
            if draw.chance(80):
                drivers[-1]["allocatable"] = {"count": draw.number(0, 3)}
    return {"metadata": {"name": node}, "spec": {"drivers": drivers}}


def attachments(draw: Draw, seed: int, volumes: list[Json], nodes: list[str]) -> list[Json]:
    """Of volumes of all kinds, and of some that are not there."""
    names = [one["metadata"]["name"] for one in volumes] + ["gone"]
    found = []
    for i in range(draw.number(0, 10)):
        source = {"persistentVolumeName": draw.one(*names)}
        spec = {"attacher": draw.one(DRIVER, DRIVER, EBS, AZURE), "nodeName": draw.one(*nodes), "source": source}
        found.append({"metadata": {"name": f"w{seed}-hangs-{i}"}, "spec": spec})
    return found
