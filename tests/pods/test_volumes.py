"""Claims of volumes: where those that are given let a pod be, and what it waits for otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.volumes import Around, Attached, attached_to
from optimus.model.reasons import Code
from optimus.model.rules import Where
from tests.pods.writing import claim, node, pod, storage_class, volume

ZONE, OLD = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def using(name: str = "data", **more: Any) -> Attached:
    around = Around(
        claims={f"team/{one.metadata.name}": one for one in more.get("claims", ())},
        volumes={one.metadata.name: one for one in more.get("volumes", ())},
        classes={one.metadata.name: one for one in more.get("classes", ())},
    )
    return attached_to(pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]), around)


def reaches(attached: Attached, **labels: str) -> bool:
    spelled = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return Where(all_of=attached.all_of).accepts(read_node(node(labels=spelled)))


def on(operator: str, *zones: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": list(zones)}]}]
    return {"required": {"nodeSelectorTerms": terms}}


def bound(**more: Any) -> Attached:
    return using(claims=[claim("data", bound_to="pv")], volumes=[volume("pv", **more)])


def test_a_bound_volume_pins_the_pod_to_where_it_can_be_reached() -> None:
    assert bound().all_of == ()
    pinned = bound(nodeAffinity=on("In", "a"))
    assert reaches(pinned, zone="a") and not reaches(pinned, zone="b")


def test_zone_labels_of_a_volume_bind_where_nodes_have_any() -> None:
    several = bound(labels={ZONE: "a__b"})
    assert reaches(several, topology_kubernetes_io__zone="b")
    assert not reaches(several, topology_kubernetes_io__zone="c")
    assert reaches(several), "a node without any such label is everywhere"
    assert not reaches(several, topology_kubernetes_io__region="north")
    old = bound(labels={OLD: "a"})
    assert reaches(old, topology_kubernetes_io__zone="a")
    assert not reaches(old, **{OLD: "b", ZONE: "a"})
    assert bound(labels={ZONE: "a__"}).all_of == (), "a label that cannot be read says nothing"


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({}, Code.NOT_READY, "volume claim data does not exist"),
        ({"claims": [claim("data")]}, Code.NOT_READY, "volume claim data is not bound to a volume"),
        ({"claims": [claim("data", bound_to="pv", half=True)]}, Code.NOT_READY, "is not bound"),
        ({"claims": [claim("data", bound_to="pv")]}, Code.NOT_READY, "volume pv of claim data does not exist"),
        (
            {"claims": [claim("data", bound_to="pv", status={"phase": "Lost"})]},
            Code.NOT_READY,
            "has lost its volume pv",
        ),
        (
            {"claims": [claim("data", bound_to="pv", meta={"deletionTimestamp": "now"})]},
            Code.NOT_READY,
            "is being deleted",
        ),
        (
            {
                "claims": [claim("data", storageClassName="late")],
                "classes": [storage_class("late", "WaitForFirstConsumer")],
            },
            Code.NOT_READY,
            "no volume of class late is free for claim data",
        ),
    ],
)
def test_a_claim_that_cannot_be_used_has_its_reason(more: dict[str, Any], code: Code, words: str) -> None:
    (found,) = using(**more).obstacles
    assert found.code is code and words in found.text()


def test_a_volume_for_one_pod_is_told_to_the_neighbours() -> None:
    modes = claim("data", bound_to="pv", accessModes=["ReadWriteOncePod"])
    assert using(claims=[modes], volumes=[volume("pv")]).sole_claims == ("data",)


def test_volumes_of_a_driver_are_counted() -> None:
    csi = {"driver": "disks.example", "volumeHandle": "h"}
    assert bound(csi=csi).attached == (("~attach/disks.example", 1),)


def test_a_volume_of_the_pod_itself_waits_for_its_claim() -> None:
    own = pod(volumes=[{"name": "scratch", "ephemeral": {}}])
    assert "p-scratch has not been made yet" in attached_to(own, Around()).obstacles[0].text()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p"}
    made = claim("p-scratch", bound_to="pv", meta={"ownerReferences": [owner]})
    stolen = claim("p-scratch", bound_to="pv")
    volumes = {"pv": volume("pv")}
    assert attached_to(own, Around(claims={"team/p-scratch": made}, volumes=volumes)).obstacles == ()
    found = attached_to(own, Around(claims={"team/p-scratch": stolen}, volumes=volumes)).obstacles
    assert "belongs to somebody else" in found[0].text()


def test_disks_of_the_old_kind_are_not_supported() -> None:
    found = attached_to(pod(volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]), Around()).obstacles
    assert [one.code for one in found] == [Code.UNSUPPORTED]
    assert "volume d of kind gcePersistentDisk" in found[0].text()
