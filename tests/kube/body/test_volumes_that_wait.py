"""Volumes that wait for their first consumer, on a real server with Kubernetes' own volume controller.

Volumes that are there are local ones, as people make them for disks of nodes. Those that are to be made are made by
the story: it does what a provisioner does, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import yaml

from tests.kube.body.clusters import Stand, until

SELECTED = "volume.kubernetes.io/selected-node"
Json = dict[str, Any]


def storage_class(stand: Stand, name: str, *, provisioner: str, zones: tuple[str, ...] = ()) -> str:
    """Its full name: classes have no namespace."""
    called = f"{stand.namespace}-{name}"
    topology = [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}] if zones else None
    made: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": called},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    stand.apply(yaml.safe_dump({**made, **({"allowedTopologies": topology} if topology else {})}))
    return called


def local_volume(stand: Stand, name: str, kind: str, node: str, size: str = "10Gi") -> str:
    called = f"{stand.namespace}-{name}"
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": kind,
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    stand.apply(
        yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": called}, "spec": spec})
    )
    until(lambda: volume(stand, called)["status"].get("phase") in ("Available", "Bound"), "it is there")
    return called


def claim(stand: Stand, name: str, kind: str, size: str = "5Gi") -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": kind}
    meta = {"name": name, "namespace": stand.namespace}
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}))


def pod(stand: Stand, name: str, *, group: str = "", of: int = 1, uses: str = "", own: str = "", gpus: int = 1) -> None:
    """`uses`: a claim. `own`: the class of a claim that is made with the pod."""
    volumes: list[Json] = [{"name": "data", "persistentVolumeClaim": {"claimName": uses}}] if uses else []
    if own:
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
        volumes.append(
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {**asked, "storageClassName": own}}}}
        )
    meta: Json = {"name": name, "namespace": stand.namespace}
    if group:
        meta["labels"] = {"optimus.dev/group": group}
        meta["annotations"] = {"optimus.dev/min-members": str(of)}
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    spec: Json = {
        "schedulerName": stand.scheduler,
        "volumes": volumes,
        "containers": [{"name": "main", "image": "none", "resources": resources}],
    }
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))


def volume(stand: Stand, name: str) -> Json:
    found: Json = json.loads(stand.plane.get(f"/api/v1/persistentvolumes/{name}"))
    return found


def the_claim(stand: Stand, name: str) -> Json:
    found: Json = json.loads(stand.plane.get(f"/api/v1/namespaces/{stand.namespace}/persistentvolumeclaims/{name}"))
    return found


def selected(stand: Stand, name: str) -> str:
    return str(the_claim(stand, name)["metadata"].get("annotations", {}).get(SELECTED, ""))


def provision(stand: Stand, name: str, *, zone: str) -> None:
    """As a provisioner does it for a claim with a node."""
    made = the_claim(stand, name)
    meta = made["metadata"]
    ref = {"kind": "PersistentVolumeClaim", "namespace": stand.namespace, "name": name, "uid": meta["uid"]}
    spec: Json = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": made["spec"]["storageClassName"],
        "csi": {"driver": "disks.example", "volumeHandle": f"{stand.namespace}-{name}"},
        "claimRef": {"apiVersion": "v1", **ref},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
            }
        },
    }
    called = {"name": f"pvc-{meta['uid']}", "annotations": {"pv.kubernetes.io/provisioned-by": "disks.example"}}
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": called, "spec": spec}))


def zones(stand: Stand, **names: str) -> None:
    for node, zone in names.items():
        called = f"{stand.namespace}-{node.removeprefix('n')}"
        label = stand.plane.kubectl("label", "node", called, f"zone={zone}", "--overwrite")
        subprocess.run(label, check=True, capture_output=True)


def nodes_of(stand: Stand, group: str = "") -> list[str]:
    return sorted(one["spec"]["nodeName"] for one in stand.bound(group))


# -- volumes that are there -------------------------------------------------------------------------------------------


def test_a_pod_goes_to_the_node_that_has_a_volume_for_it(stand: Stand) -> None:
    nodes = stand.nodes(3, gpus=4)
    local = storage_class(stand, "local", provisioner="kubernetes.io/no-provisioner")
    small = local_volume(stand, "small", local, nodes[2], "6Gi")
    local_volume(stand, "large", local, nodes[2], "60Gi")
    claim(stand, "data", local)
    stand.start()
    pod(stand, "reader", uses="data")
    until(lambda: nodes_of(stand) == [nodes[2]], "it is where the volume is")
    assert the_claim(stand, "data")["spec"]["volumeName"] == small, "the smallest that fits"
    assert the_claim(stand, "data")["status"]["phase"] == "Bound"
    claim(stand, "huge", local, "100Gi")
    pod(stand, "hoarder", uses="huge")
    until(lambda: "is free for claim huge" in stand.condition("hoarder"), "who asks for more than there is, is told")
    local_volume(stand, "huge", local, nodes[1], "200Gi")
    until(lambda: nodes[1] in nodes_of(stand), "and starts when there is one")


def test_a_gang_takes_one_volume_for_each_of_its_pods(stand: Stand) -> None:
    """One node would have room for all, and a volume for one."""
    nodes = stand.nodes(3, gpus=4)
    local = storage_class(stand, "local", provisioner="kubernetes.io/no-provisioner")
    for number, node in enumerate(nodes):
        local_volume(stand, f"disk-{number}", local, node)
    stand.start()
    for number in range(3):
        pod(stand, f"train-{number}", group="train", of=3, own=local)
    until(lambda: nodes_of(stand, "train") == nodes, "each node has one of them")
    for number in range(2):
        pod(stand, f"more-{number}", group="more", of=2, own=local)
    until(lambda: stand.condition("more-0") != "", "no disk is left for others")
    assert nodes_of(stand, "more") == []
    for number in range(2):
        local_volume(stand, f"new-{number}", local, nodes[number])
    until(lambda: nodes_of(stand, "more") == nodes[:2], "until there are")


# -- volumes that are to be made --------------------------------------------------------------------------------------


def test_a_volume_is_made_for_the_node_and_the_gang_waits_for_all_of_them(stand: Stand) -> None:
    stand.nodes(2, gpus=4)
    zones(stand, n0="a", n1="b")
    disks = storage_class(stand, "disks", provisioner="disks.example", zones=("b",))
    stand.start()
    for number in range(2):
        claim(stand, f"data-{number}", disks)
        pod(stand, f"train-{number}", group="train", of=2, uses=f"data-{number}")
    there = f"{stand.namespace}-1"
    for number in range(2):
        until(lambda n=number: selected(stand, f"data-{n}") == there, "asked for where it is allowed")  # type: ignore[misc]
    until(lambda: "NotReady" in stand.condition("train-0"), "people are told what is waited for")
    assert "a volume for claim data" in stand.condition("train-0")
    provision(stand, "data-0", zone="b")
    until(lambda: the_claim(stand, "data-0")["status"]["phase"] == "Bound", "one is there")
    stand.gang("other", 3)
    until(lambda: len(stand.bound("other")) == 3, "others go on meanwhile")
    assert nodes_of(stand, "train") == [], "one of two is none"
    provision(stand, "data-1", zone="b")
    until(lambda: nodes_of(stand, "train") == [there, there], "now both")
    assert stand.over_committed() == {}


def test_a_volume_that_cannot_be_made_gives_the_place_back(stand: Stand) -> None:
    """A provisioner says so by taking the node away from the claim."""
    stand.nodes(1, gpus=4)
    zones(stand, n0="a")
    disks = storage_class(stand, "disks", provisioner="disks.example")
    claim(stand, "data", disks)
    stand.start()
    pod(stand, "reader", uses="data")
    until(lambda: selected(stand, "data") != "", "asked for")
    take_away = {"metadata": {"annotations": {SELECTED: None}}}
    patch = stand.plane.kubectl(
        "patch", "pvc", "data", "-n", stand.namespace, "--type=merge", f"-p={json.dumps(take_away)}"
    )
    subprocess.run(patch, check=True, capture_output=True)
    until(lambda: selected(stand, "data") != "", "asked for again, after a pause")
    assert nodes_of(stand) == []
    provision(stand, "data", zone="a")
    until(lambda: len(nodes_of(stand)) == 1, "and this time it is made")


def test_another_leader_goes_on_where_the_first_one_was(stand: Stand) -> None:
    stand.nodes(2, gpus=4)
    zones(stand, n0="a", n1="b")
    disks = storage_class(stand, "disks", provisioner="disks.example")
    claim(stand, "data", disks)
    first = stand.start("--lease-seconds=3")
    pod(stand, "reader", uses="data")
    until(lambda: selected(stand, "data") != "", "asked for")
    there = selected(stand, "data")
    first.kill()
    first.wait()
    stand.start("--lease-seconds=3")
    provision(stand, "data", zone="a" if there.endswith("-0") else "b")
    until(lambda: nodes_of(stand) == [there], "it goes where its volume is made")


def test_pods_that_share_a_claim_end_up_where_its_volume_is(stand: Stand) -> None:
    """Two nodes have room for one of them each; the volume is made where the first would go, and holds both to it."""
    stand.nodes(2, gpus=1)
    zones(stand, n0="a", n1="b")
    disks = storage_class(stand, "disks", provisioner="disks.example")
    claim(stand, "data", disks)
    stand.start()
    for number in range(2):
        pod(stand, f"train-{number}", group="train", of=2, uses="data")
    until(lambda: selected(stand, "data") != "", "asked for once")
    zone = "a" if selected(stand, "data").endswith("-0") else "b"
    provision(stand, "data", zone=zone)
    until(lambda: the_claim(stand, "data")["status"]["phase"] == "Bound", "and made")
    until(lambda: stand.condition("train-0") != "", "there is no room for both where it can be reached")
    assert nodes_of(stand, "train") == []
    stand.nodes(1, gpus=1, first=2)
    zones(stand, n2=zone)
    until(lambda: len(nodes_of(stand, "train")) == 2, "now there is")
