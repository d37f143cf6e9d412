"""Storage drivers that say where they have room, on a real server: the story publishes capacities as a driver does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.kube.body.clusters import Stand, until
from tests.kube.body.test_volumes_that_wait import claim, nodes_of, pod, selected, storage_class, the_claim, volume

DRIVER = "full.example"
Json = dict[str, Any]
Publish = Callable[[str, str], None]


@pytest.fixture
def publish(stand: Stand) -> Iterator[Publish]:
    """`publish(node, size)`: so much is left there of the class `full`."""
    spec = {"storageCapacity": True, "attachRequired": False}
    _apply(stand, "CSIDriver", {"metadata": {"name": DRIVER}, "spec": spec})

    def tell(node: str, size: str) -> None:
        here = {"matchLabels": {"kubernetes.io/hostname": node}}
        meta = {"name": f"on-{node}", "namespace": stand.namespace}
        kind = f"{stand.namespace}-full"
        made = {"metadata": meta, "storageClassName": kind, "nodeTopology": here, "capacity": size}
        _apply(stand, "CSIStorageCapacity", made)

    yield tell
    subprocess.run(stand.plane.kubectl("delete", "csidriver", DRIVER), check=True, capture_output=True)


def _apply(stand: Stand, kind: str, made: Json) -> None:
    stand.apply(yaml.safe_dump({"apiVersion": "storage.k8s.io/v1", "kind": kind, **made}))


def hang(stand: Stand, node: str) -> str:
    """A volume that is still attached there, after its pod: the name of the attachment."""
    name = f"{stand.namespace}-left"
    spec: Json = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": "left"},
    }
    stand.apply(
        yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    )
    source = {"persistentVolumeName": name}
    spec = {"attacher": DRIVER, "nodeName": node, "source": source}
    _apply(stand, "VolumeAttachment", {"metadata": {"name": name}, "spec": spec})
    return name


def provision(stand: Stand, name: str) -> None:
    """The volume, where the claim wants it."""
    meta = the_claim(stand, name)["metadata"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [selected(stand, name)]}
    ref = {"kind": "PersistentVolumeClaim", "namespace": stand.namespace, "name": name, "uid": meta["uid"]}
    spec: Json = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": the_claim(stand, name)["spec"]["storageClassName"],
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "claimRef": {"apiVersion": "v1", **ref},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    name = f"pvc-{meta['uid']}"
    called = {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}}
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": called, "spec": spec}))
    until(lambda: volume(stand, name)["status"].get("phase") == "Bound", "it is given to the claim")


def test_a_volume_is_ordered_only_where_its_driver_has_room(stand: Stand, publish: Publish) -> None:
    nodes = stand.nodes(3)
    kind = storage_class(stand, "full", provisioner=DRIVER)
    for node in nodes:
        publish(node, "1Gi")
    claim(stand, "data", kind)
    stand.start()
    pod(stand, "reader", uses="data")
    until(lambda: "has room for a volume of 5Gi" in stand.condition("reader"), "where nobody has room, people are told")
    publish(nodes[2], "5Gi")
    until(lambda: selected(stand, "data") == nodes[2], "there is some now, and the volume is ordered there")
    publish(nodes[2], "0")  # it is taken by the volume, which is not bound yet
    provision(stand, "data")
    until(lambda: nodes_of(stand) == [nodes[2]], "the pod runs beside its volume")


def test_a_volume_that_hangs_there_without_a_pod_takes_its_place(stand: Stand) -> None:
    [node] = stand.nodes(1)
    kind = storage_class(stand, "disks", provisioner=DRIVER)
    limit = {"name": DRIVER, "nodeID": node, "allocatable": {"count": 1}}
    _apply(stand, "CSINode", {"metadata": {"name": node}, "spec": {"drivers": [limit]}})
    left = hang(stand, node)
    claim(stand, "data", kind)
    stand.start()
    pod(stand, "reader", uses="data")
    until(lambda: f"more of the volumes of {DRIVER}" in stand.condition("reader"), "the node has as many as it takes")
    assert selected(stand, "data") == ""
    subprocess.run(stand.plane.kubectl("delete", "volumeattachment", left), check=True, capture_output=True)
    until(lambda: selected(stand, "data") == node, "it is detached, and there is room for another")
    for thing in (f"csinode/{node}", f"pv/{left}"):
        subprocess.run(stand.plane.kubectl("delete", thing, "--wait=false"), check=True, capture_output=True)
