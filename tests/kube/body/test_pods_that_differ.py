"""Gangs whose pods differ, on a real server: each goes where it may be, and another leader goes on with the rest."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml

from tests.kube.body.clusters import Stand, until
from tests.kube.body.test_volumes_that_wait import claim, pod, provision, selected, storage_class, zones

Json = dict[str, Any]


def member(stand: Stand, name: str, of: int, **spec: Any) -> None:
    """One of a gang by label. Without a GPU, unless it says otherwise."""
    meta = {"name": name, "namespace": stand.namespace, "labels": {"optimus.dev/group": "train"}}
    meta["annotations"] = {"optimus.dev/min-members": str(of)}
    made: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    containers = [{"name": "main", "image": "none", "resources": spec.pop("resources", {})}]
    stand.apply(yaml.safe_dump({**made, "spec": {"schedulerName": stand.scheduler, "containers": containers, **spec}}))


def on(name: str) -> Json:
    return {"nodeSelector": {"kubernetes.io/hostname": name}}


def places(stand: Stand) -> dict[str, str]:
    return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in stand.bound()}


GPU = {"limits": {"nvidia.com/gpu": "1"}}


def test_a_launcher_and_its_workers_of_one_label_group(stand: Stand) -> None:
    """The first that comes needs neither the node nor the GPU of the others."""
    desk, *racks = stand.nodes(3, gpus=2)
    stand.start("--lease-seconds=3")
    member(stand, "launcher", 3, **on(desk))
    for number, rack in enumerate(racks):
        member(stand, f"worker-{number}", 3, resources=GPU, **on(rack))
    until(lambda: len(places(stand)) == 3, "all three are bound")
    assert places(stand) == {"launcher": desk, "worker-0": racks[0], "worker-1": racks[1]}
    before = {one["metadata"]["name"]: one["metadata"]["annotations"]["optimus.dev/slot"] for one in stand.bound()}
    assert len(set(before.values())) == 3
    stand.controllers[0].kill()
    stand.controllers[0].wait()
    stand.start("--lease-seconds=3")
    delete = stand.plane.kubectl("delete", "pod", "worker-1", "-n", stand.namespace)
    subprocess.run(delete, check=True, capture_output=True)
    member(stand, "again", 3, resources=GPU, **on(racks[1]))
    until(lambda: places(stand).get("again") == racks[1], "under another leader, one that was lost is made up for")
    after = {one["metadata"]["name"]: one["metadata"]["annotations"]["optimus.dev/slot"] for one in stand.bound()}
    assert after == {**{name: before[name] for name in ("launcher", "worker-0")}, "again": after["again"]}


def test_one_that_tolerates_a_taint_takes_nobody_else_there(stand: Stand) -> None:
    tainted, free = stand.nodes(2, gpus=2)
    taint = stand.plane.kubectl("taint", "node", tainted, "lab=yes:NoSchedule")
    subprocess.run(taint, check=True, capture_output=True)
    stand.start()
    here = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [tainted, free]}]}
    ]}}}  # fmt: skip
    member(stand, "a", 3, resources=GPU, affinity=here, tolerations=[{"key": "lab", "operator": "Exists"}])
    for name in ("b", "c"):
        member(stand, name, 3, resources=GPU, affinity=here)
    until(lambda: len(places(stand)) == 3, "all three are bound")
    assert places(stand) == {"a": tainted, "b": free, "c": free}


def test_a_leader_dies_between_the_claims_of_a_gang(stand: Stand) -> None:
    """The first claim has its node, the second has none yet. Nothing else would show which pod belongs there."""
    first, second = stand.nodes(2, gpus=1)
    zones(stand, n0="a", n1="b")
    disks = storage_class(stand, "disks", provisioner="disks.example")
    for number in range(2):
        claim(stand, f"data-{number}", disks)
    killed = stand.start("--lease-seconds=3")
    for number in range(2):
        pod(stand, f"train-{number}", group="train", of=2, uses=f"data-{number}")
    until(lambda: selected(stand, "data-0") != "" and selected(stand, "data-1") != "", "both have been asked for")
    killed.kill()
    killed.wait()
    # As if it had died between the two: one of them was made meanwhile, the other was never asked for.
    undo = stand.plane.kubectl(
        "annotate", "pvc", "data-1", "-n", stand.namespace, "volume.kubernetes.io/selected-node-"
    )
    subprocess.run(undo, check=True, capture_output=True)
    there = selected(stand, "data-0")
    provision(stand, "data-0", zone="a" if there == first else "b")
    stand.start("--lease-seconds=3")
    other = second if there == first else first
    until(lambda: selected(stand, "data-1") == other, "the next one asks for the other, on the other node")
    provision(stand, "data-1", zone="a" if other == first else "b")
    until(lambda: places(stand) == {"train-0": there, "train-1": other}, "and the gang is whole")
