"""Room that storage drivers have published: where a volume can still be made, and who is told when that changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube.capacities import Capacities
from optimus.drivers.kube.first_consumers import SELECTED_NODE, Choice, Consumed, choose, consumed_by
from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.objects import StorageCapacity, StorageDriver, VolumeClaim
from optimus.model.nodes import Node
from optimus.model.rules import Where
from tests.pods.writing import claim, node, storage_class, volume

DRIVER = "disks.example"
DISKS = storage_class("disks", "WaitForFirstConsumer", provisioner=DRIVER)
ZONES = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
IN_A = storage_class("in-a", "WaitForFirstConsumer", provisioner=DRIVER, allowedTopologies=ZONES)
CLASSES = {"disks": DISKS, "in-a": IN_A}


def capacities(*published: StorageCapacity, asks: bool | None = True) -> Capacities:
    found = Capacities()
    found.driver(
        DRIVER, msgspec.convert({"metadata": {"name": DRIVER}, "spec": {"storageCapacity": asks}}, StorageDriver)
    )
    for one in published:
        found.capacity(one.metadata.name, one)
    return found


def room(name: str, size: str | None = "10Gi", *, kind: str = "disks", **more: Any) -> StorageCapacity:
    """On the host of the same name, unless `topology` says otherwise."""
    topology = more.pop("topology", {"matchLabels": {"host": name}})
    made = {"metadata": {"name": name}, "storageClassName": kind, "nodeTopology": topology, "capacity": size, **more}
    return msgspec.convert(made, StorageCapacity)


def asking(size: str = "5Gi", name: str = "data", kind: str = "disks", **more: Any) -> VolumeClaim:
    return claim(name, storageClassName=kind, resources={"requests": {"storage": size}}, **more)


def host(name: str, **labels: str) -> Node:
    return read_node(node(name=name, labels={"host": name, **labels}))


def consumed(found: Capacities, *claims: VolumeClaim) -> Consumed:
    return consumed_by(claims, {}, CLASSES, found)


def where(found: Capacities, *claims: VolumeClaim) -> str:
    """The hosts of three on which all of these can be."""
    rule = Where(all_of=consumed(found, *claims).all_of)
    return "".join(one for one in "abc" if rule.accepts(host(one, zone=one)))


def test_a_volume_is_made_where_its_driver_has_room_for_it() -> None:
    there = capacities(room("a"), room("b", "4Gi"), room("c", kind="others"))
    assert where(there, asking()) == "a"
    assert where(there, asking("4Gi")) == "ab"
    assert where(capacities(room("a"), room("b", topology={})), asking()) == "abc", "one that all nodes reach"
    assert where(capacities(room("a"), room("b", topology=None)), asking()) == "a", "one that none reaches"


def test_the_largest_volume_counts_before_all_there_is() -> None:
    assert (
        where(capacities(room("a", maximumVolumeSize="4Gi"), room("b", "1Gi", maximumVolumeSize="8Gi")), asking())
        == "b"
    )
    assert where(capacities(room("a", None)), asking()) == "", "nobody knows how much"
    assert where(capacities(room("a", "20Ei")), asking("100Gi")) == "a"


@pytest.mark.parametrize("asks", [None, False])
def test_who_does_not_say_so_is_not_asked(asks: bool | None) -> None:
    assert consumed(capacities(asks=asks), asking()) == Consumed()
    assert consumed(Capacities(), asking()) == Consumed(), "the driver is not known"


def test_claims_are_looked_at_one_by_one() -> None:
    """As kube-scheduler does: what is left after the first is for its driver to say."""
    assert where(capacities(room("a", "6Gi")), asking(), asking(name="more")) == "a"


def test_topologies_of_the_class_hold_as_well() -> None:
    there = capacities(room("a", kind="in-a"), room("b", kind="in-a"))
    assert where(there, asking(kind="in-a")) == "a"
    several = room(
        "r", kind="in-a", topology={"matchExpressions": [{"key": "host", "operator": "NotIn", "values": ["a"]}]}
    )
    assert where(capacities(several), asking(kind="in-a")) == ""


def test_labels_of_several_keys_are_all_asked_for() -> None:
    both = [room(name, topology={"matchLabels": {"host": name, "zone": "a"}}) for name in "ab"]
    assert where(capacities(*both), asking()) == "a"
    strange = room("a", topology={"matchExpressions": [{"key": "host", "operator": "Near"}]})
    assert where(capacities(strange), asking()) == "", "what cannot be read reaches nobody"


def test_a_thousand_hosts_are_one_term() -> None:
    (terms,) = consumed(capacities(*(room(f"h{i}") for i in range(1000))), asking()).all_of
    assert len(terms) == 1


def test_where_there_is_none_people_are_told_and_a_volume_that_is_there_will_do() -> None:
    full = capacities(room("a", "1Gi"))
    (why,) = consumed(full, asking()).obstacles
    assert "disks.example has room for a volume of 5Gi of class disks on no node (claim data)" in why.text()
    begun = asking(meta={"annotations": {SELECTED_NODE: "a"}})
    assert "on no node" in consumed(full, begun).obstacles[0].text()
    spare = volume("v", capacity={"storage": "9Gi"}, storageClassName="disks")
    found = consumed_by([asking()], {"v": spare}, CLASSES, full)
    assert found.obstacles == () and Where(all_of=found.all_of).accepts(host("c"))


def test_it_is_asked_again_when_the_volume_is_ordered() -> None:
    there = capacities(room("a"))
    assert choose([asking()], host("a"), {}, CLASSES, there, ()) == [Choice(asking(), None)]
    assert choose([asking()], host("b"), {}, CLASSES, there, ()) == "disks.example has no room for claim data on b"


def test_only_who_may_be_concerned_is_told_of_a_change() -> None:
    there = capacities(room("a"))
    assert there.capacity("b", room("b")) == set(), "nobody has asked yet"
    assert where(there, asking("5Gi")) == "ab"
    assert there.capacity("b", room("b", "9Gi")) == set(), "still enough"
    assert there.capacity("b", room("b", "4Gi")) == {"disks"}
    assert where(there, asking("5Gi")) == "a"
    assert there.capacity("b", room("b", "4Gi")) == set()
    assert where(there, asking("5Gi")) == "a"
    assert there.capacity("a", room("a", topology={"matchLabels": {"host": "c"}})) == {"disks"}, "it is elsewhere now"
    assert where(there, asking("5Gi")) == "c"
    assert there.capacity("a", None) == {"disks"}
    assert where(there, asking("5Gi")) == ""
    assert there.driver(DRIVER, None) and not there.driver(DRIVER, None)
    assert where(there, asking("5Gi")) == "abc"


def test_too_many_answers_are_not_remembered_and_everybody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimus.drivers.kube.capacities._MOST_ANSWERS", 2)
    there = capacities(room("a"))
    for size in ("1Gi", "2Gi", "3Gi"):
        where(there, asking(size))
    assert there.capacity("a", room("a", "1500Mi")) == {"disks"}
    assert (where(there, asking("2Gi")), where(there, asking("1Gi"))) == ("", "a")
