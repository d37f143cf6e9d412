"""Claims that are bound only when their first pod is placed: where that may be, and what is chosen there."""

from __future__ import annotations

from typing import Any

from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.first_consumers import (
    SELECTED_NODE,
    Choice,
    Consumed,
    choose,
    consumed_by,
    shape_of,
    volume_counts,
)
from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.objects import PersistentVolume, StorageClass, VolumeClaim
from optimus.model.nodes import Node
from optimus.model.rules import Where
from tests.pods.writing import claim, node, storage_class, volume

LOCAL = storage_class("local", "WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner")
ZONES = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
MADE = storage_class("made", "WaitForFirstConsumer", provisioner="disks.example", allowedTopologies=ZONES)
ANYWHERE = storage_class("anywhere", "WaitForFirstConsumer", provisioner="disks.example")
CLASSES: dict[str, StorageClass] = {one.metadata.name: one for one in (LOCAL, MADE, ANYWHERE)}
NOBODY_SAYS = Capacities()
RWO = ["ReadWriteOnce"]


def asking(name: str = "data", kind: str = "local", size: str = "5Gi", **more: Any) -> VolumeClaim:
    return claim(name, storageClassName=kind, accessModes=RWO, resources={"requests": {"storage": size}}, **more)


def on_host(name: str, host: str, size: str = "10Gi", kind: str = "local", **more: Any) -> PersistentVolume:
    here = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}]
    spec = {"capacity": {"storage": size}, "storageClassName": kind, "accessModes": RWO, **more}
    return volume(name, **{"nodeAffinity": {"required": {"nodeSelectorTerms": here}}, **spec})


def named(*volumes: PersistentVolume) -> dict[str, PersistentVolume]:
    return {one.metadata.name: one for one in volumes}


def host(name: str, **labels: str) -> Node:
    return read_node(node(name=name, labels={"kubernetes.io/hostname": name, **labels}))


def accepts(found: Consumed, there: Node) -> bool:
    return Where(all_of=found.all_of).accepts(there)


def chosen(found: list[Choice] | str) -> list[tuple[str, str]]:
    assert not isinstance(found, str), found
    return [(one.claim.metadata.name, one.volume.metadata.name if one.volume else "") for one in found]


def test_a_volume_that_must_be_there_is_a_counter_of_its_node() -> None:
    small, large = asking("small"), asking("large", size="50Gi")
    volumes = [on_host("v1", "a"), on_host("v2", "a", "60Gi"), on_host("v3", "b"), on_host("v4", "b", phase="Released")]
    found = consumed_by([small, large], named(*volumes), CLASSES, NOBODY_SAYS)
    wants = {shape_of(small).counter: 2, shape_of(large).counter: 1}
    assert dict(found.counters) == wants, "a large claim takes one that a small one could have had"
    there = volume_counts(found.shapes, volumes, {"a": host("a"), "b": host("b")}, {})
    assert there["a"] == wants
    assert there["b"] == {shape_of(small).counter: 1}
    assert found.obstacles == () and found.all_of == ()


def test_what_a_counted_pod_has_is_still_there_for_it() -> None:
    counter = shape_of(asking()).counter
    given = on_host("v1", "a", claimRef={"namespace": "team", "name": "data", "uid": "u"}, phase="Bound")
    nodes, shapes = {"a": host("a")}, [shape_of(asking())]
    assert volume_counts(shapes, [given], nodes, {}) == {}
    assert volume_counts(shapes, [given], nodes, {"team/data": {counter}}) == {"a": {counter: 1}}


def test_modes_labels_and_kinds_of_volumes_have_to_fit() -> None:
    picky = asking(selector={"matchLabels": {"disk": "fast"}})
    fast = on_host("fast", "a", labels={"disk": "fast"})
    others = [
        on_host("slow", "a", labels={"disk": "slow"}),
        on_host("block", "a", labels={"disk": "fast"}, volumeMode="Block"),
        on_host("shared", "a", labels={"disk": "fast"}, accessModes=["ReadWriteMany"]),
        on_host("other", "a", labels={"disk": "fast"}, kind="anywhere"),
        on_host("small", "a", "1Gi", labels={"disk": "fast"}),
    ]
    assert [one.metadata.name for one in (*others, fast) if shape_of(picky).accepts(one)] == ["fast"]


def test_one_that_is_made_goes_where_the_class_allows_it_or_where_one_is() -> None:
    assert consumed_by([asking(kind="anywhere")], {}, CLASSES, NOBODY_SAYS) == Consumed()
    found = consumed_by([asking(kind="made")], named(on_host("v", "c", kind="made")), CLASSES, NOBODY_SAYS)
    assert accepts(found, host("a", zone="a")) and accepts(found, host("c", zone="b"))
    assert not accepts(found, host("b", zone="b"))


def test_a_claim_with_a_node_waits_there() -> None:
    begun = asking(kind="made", meta={"annotations": {SELECTED_NODE: "a"}})
    found = consumed_by([begun], {}, CLASSES, NOBODY_SAYS)
    assert accepts(found, host("a", zone="a")) and not accepts(found, host("b", zone="a"))


def test_the_smallest_that_fits_is_chosen_and_none_twice() -> None:
    volumes = named(on_host("v1", "a"), on_host("v2", "a", "60Gi"), on_host("v3", "a", "20Gi"), on_host("v0", "b"))
    both = [asking("large", size="15Gi"), asking("small")]
    assert chosen(choose(both, host("a"), volumes, CLASSES, NOBODY_SAYS, ())) == [("small", "v1"), ("large", "v3")]
    assert chosen(choose(both, host("a"), volumes, CLASSES, NOBODY_SAYS, {"v3"})) == [("small", "v1"), ("large", "v2")]
    assert choose(both, host("b"), volumes, CLASSES, NOBODY_SAYS, ()) == "no volume for claim large can be on b"


def test_a_volume_that_somebody_has_meant_for_the_claim_comes_first() -> None:
    meant = on_host("mine", "a", "100Gi", claimRef={"namespace": "team", "name": "data"})
    volumes = named(on_host("v1", "a"), meant)
    assert chosen(choose([asking()], host("a"), volumes, CLASSES, NOBODY_SAYS, ())) == [("data", "mine")]
    assert isinstance(choose([asking()], host("b"), volumes, CLASSES, NOBODY_SAYS, ()), str)


def test_one_is_made_where_none_fits() -> None:
    assert chosen(choose([asking(kind="made")], host("a", zone="a"), {}, CLASSES, NOBODY_SAYS, ())) == [("data", "")]
    assert isinstance(choose([asking(kind="made")], host("b", zone="b"), {}, CLASSES, NOBODY_SAYS, ()), str)
