"""Pods that have a place and wait for a volume: when nothing comes, when it goes elsewhere, when they have to leave."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import structs

from optimus.drivers.kube.binding_volumes import CONFIRM_S
from optimus.drivers.kube.first_consumers import SELECTED_NODE
from optimus.drivers.kube.objects import PersistentVolume, Pod, StorageClass, Volume, VolumeClaim
from optimus.drivers.kube.preparing import PATIENCE_S
from optimus.drivers.kube.volumes import Around
from optimus.kube import Done, Outcome, Refused, Unknown
from tests.kube.body_alone.cluster import Alone, node, pod

CLASS = {"metadata": {"name": "disks"}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disks.example"}


class Storage:
    """Claims of a cluster with one class, whose volumes are made by hand."""

    def __init__(self, alone: Alone, *names: str) -> None:
        self.alone, self.patches = alone, list[tuple[str, dict[str, Any]]]()
        self.answer: Outcome = Done()
        self.notes: dict[str, dict[str, str]] = {name: {} for name in names}
        self.volumes: dict[str, str] = {}
        """Claim -> node."""
        self.uids: dict[str, str] = {}
        """Where it is another one than its name."""
        alone.writer.patch = self._patch  # type: ignore[method-assign, assignment]
        self.show()

    async def _patch(self, _resource: object, name: str, changes: Any, **_: Any) -> Outcome:
        self.patches.append((name, changes))
        if isinstance(self.answer, Done):
            self.notes[name].update(changes["metadata"]["annotations"])
        return self.answer

    def show(self) -> None:
        """As the watch would."""
        claims = {}
        for name, notes in self.notes.items():
            made = name in self.volumes
            told = {**notes, **({"pv.kubernetes.io/bind-completed": "yes"} if made else {})}
            meta = {"name": name, "namespace": "team", "uid": self.uids.get(name, name), "annotations": told}
            spec = {"storageClassName": "disks", **({"volumeName": f"pv-{name}"} if made else {})}
            claims[f"team/{name}"] = msgspec.convert({"metadata": meta, "spec": spec}, VolumeClaim)
        volumes = {f"pv-{name}": _volume(f"pv-{name}", node) for name, node in self.volumes.items()}
        self.alone.mirror.surroundings(
            Around(claims=claims, volumes=volumes, classes={"disks": msgspec.convert(CLASS, StorageClass)})
        )


def _volume(name: str, node: str) -> PersistentVolume:
    """`node`: the only one that reaches it, if any."""
    if not node:
        return msgspec.convert({"metadata": {"name": name}}, PersistentVolume)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"nodeAffinity": affinity}}, PersistentVolume)


def using(one: Pod, claim: str) -> Pod:
    volume = msgspec.convert({"name": "v", "persistentVolumeClaim": {"claimName": claim}}, Volume)
    return structs.replace(one, spec=structs.replace(one.spec, volumes=[volume]))


async def turns(alone: Alone, count: int = 3) -> None:
    for _ in range(count):
        await alone.turn()


def test_nothing_is_bound_before_its_volume_is_there() -> None:
    async def story() -> None:
        alone = Alone()
        storage = Storage(alone, "data")
        alone.mirror.pod(using(pod("a"), "data"))
        await turns(alone)
        assert [name for name, _ in storage.patches] == ["data"], "asked for once"
        assert storage.notes["data"] == {SELECTED_NODE: "n0"}
        assert "a volume for claim data on n0" in alone.acting.preparing.reasons["team/pod/a"].text()  # type: ignore[union-attr]
        storage.show()
        await turns(alone)
        assert alone.writer.binds == []
        storage.volumes["data"] = "n0"
        storage.show()
        await turns(alone)
        assert alone.writer.binds == [("a", "n0")]
        assert alone.acting.preparing.reasons == {}  # type: ignore[union-attr]

    asyncio.run(story())


def test_patience_ends_and_the_place_is_given_back() -> None:
    async def story() -> None:
        alone = Alone()
        storage = Storage(alone, "data")
        alone.mirror.pod(using(pod("a"), "data"))
        await turns(alone)
        storage.show()
        alone.now += PATIENCE_S + 1
        await alone.turn()
        plan = await alone.turn()
        assert alone.acting.failed_binds == 1 and alone.writer.binds == []
        assert [str(one.reason.code) for one in plan.waiting] == ["BackingOff"]
        assert "in vain for 10 minutes" in plan.waiting[0].reason.text()
        alone.now += 2
        await turns(alone)
        assert alone.acting.preparing.workloads == {"team/pod/a"}, "and it is tried again"  # type: ignore[union-attr]

    asyncio.run(story())


def test_a_refusal_is_told_and_a_gang_is_not_bound_in_part() -> None:
    async def story() -> None:
        alone = Alone()
        storage = Storage(alone, "one", "two")
        storage.volumes["one"] = ""
        storage.show()
        storage.answer = Refused("Forbidden", "not yours")
        for name in ("one", "two"):
            alone.mirror.pod(using(pod(name, gang="g", size=2), name))
        await turns(alone, 2)
        plan = await alone.turn()
        assert alone.writer.binds == [] and alone.acting.failed_binds == 2
        assert "claim two: Forbidden: not yours" in plan.waiting[0].reason.text()

    asyncio.run(story())


def test_a_gang_goes_on_whose_volumes_are_in_different_places_already() -> None:
    """A leader died when half of the volumes were made."""

    async def story() -> None:
        alone = Alone(nodes=3)
        storage = Storage(alone, "one", "two", "three")
        storage.volumes["one"] = "n2"
        storage.notes["two"] = {SELECTED_NODE: "n1"}
        storage.show()
        for name in ("one", "two", "three"):
            alone.mirror.pod(using(pod(name, gang="g", size=3), name))
        await turns(alone)
        assert sorted(name for name, _ in storage.patches) == ["three"], "the others have been asked for"
        storage.volumes.update(two="n1", three=storage.notes["three"][SELECTED_NODE])
        storage.show()
        await turns(alone)
        there = dict(alone.writer.binds)
        assert (there["one"], there["two"]) == ("n2", "n1") and len(there) == 3

    asyncio.run(story())


def test_pods_that_share_a_claim_get_other_places_where_they_cannot_reach_it() -> None:
    async def story() -> None:
        alone = Alone(nodes=2)
        storage = Storage(alone, "data")
        for number in range(12):
            alone.mirror.pod(using(pod(f"p{number}", gang="g", size=12), "data"))
        await turns(alone)
        assert len(storage.patches) == 1, "twelve pods on two nodes, one question"
        storage.volumes["data"] = storage.notes["data"][SELECTED_NODE]
        storage.show()
        await turns(alone, 2)
        plan = await alone.turn()
        assert alone.writer.binds == [], "one node has room for eight, and only it reaches the volume"
        assert plan.waiting != ()

    asyncio.run(story())


def test_a_pod_that_is_deleted_meanwhile_is_waited_for_no_more() -> None:
    async def story() -> None:
        alone = Alone()
        Storage(alone, "data")
        alone.mirror.pod(using(pod("a"), "data"))
        await turns(alone)
        alone.mirror.pod_gone("uid-a")
        await turns(alone)
        assert alone.acting.preparing.workloads == set() and alone.acting.unsettled == 0  # type: ignore[union-attr]

    asyncio.run(story())


class LocalVolume:
    """One volume on n0, and whoever claims it; what is asked for is lost on its way."""

    def __init__(self, alone: Alone) -> None:
        self.alone, self.patches = alone, list[str]()
        self.answer: Outcome = Unknown("no answer")
        alone.writer.patch = self._patch  # type: ignore[method-assign, assignment]

    async def _patch(self, _resource: object, _name: str, changes: Any, **_: Any) -> Outcome:
        self.patches.append(changes["spec"]["claimRef"]["uid"])
        return self.answer

    def show(self, **uids: str) -> None:
        """Of the claims that there are, by name."""
        kind = {**CLASS, "provisioner": "kubernetes.io/no-provisioner"}
        spec = {"storageClassName": "disks"}
        claims = {
            f"team/{name}": msgspec.convert(
                {"metadata": {"name": name, "namespace": "team", "uid": uid}, "spec": spec}, VolumeClaim
            )
            for name, uid in uids.items()
        }
        there = msgspec.to_builtins(_volume("local-1", "n0"))
        free = {**there, "spec": {**there["spec"], **spec}, "status": {"phase": "Available"}}
        self.alone.mirror.surroundings(
            Around(
                claims=claims,
                volumes={"local-1": msgspec.convert(free, PersistentVolume)},
                classes={"disks": msgspec.convert(kind, StorageClass)},
            )
        )


def test_a_volume_asked_for_by_a_pod_that_was_deleted_meanwhile_is_free_for_the_next() -> None:
    async def story() -> None:
        alone = Alone()
        local = LocalVolume(alone)
        local.show(one="1")
        alone.mirror.pod(using(pod("a"), "one"))
        await turns(alone)
        alone.mirror.pod_gone("uid-a")
        local.show(two="2")
        alone.mirror.pod(using(pod("b"), "two"))
        await turns(alone)
        assert local.patches == ["1", "2"], "the claim that it was asked for is gone"
        alone.mirror.pod_gone("uid-b")
        local.show(two="2", three="3")
        alone.mirror.pod(using(pod("c"), "three"))
        await turns(alone)
        assert local.patches == ["1", "2"], "this one is there, and may still get it"
        alone.now += CONFIRM_S + 1
        await turns(alone)
        assert local.patches == ["1", "2", "3"]

    asyncio.run(story())


def test_a_new_claim_with_an_old_name_has_no_past() -> None:
    async def story() -> None:
        alone = Alone()
        storage = Storage(alone, "data")
        alone.mirror.pod(using(pod("a"), "data"))
        await turns(alone)
        storage.show()
        await turns(alone)
        alone.mirror.pod_gone("uid-a")
        storage.notes["data"] = {}
        storage.uids["data"] = "another"
        storage.show()
        alone.mirror.pod(using(pod("b"), "data"))
        await turns(alone)
        assert alone.acting.failed_binds == 1, "that of the pod which was deleted"
        assert storage.notes["data"] == {SELECTED_NODE: "n0"}

    asyncio.run(story())


def test_a_refusal_is_not_that_of_a_new_claim_with_the_same_name() -> None:
    async def story() -> None:
        alone = Alone()
        local = LocalVolume(alone)
        local.show(one="1")
        local.answer = Refused("Forbidden", "not yours")
        alone.mirror.pod(using(pod("a"), "one"))
        await alone.turn()
        await alone.turn()
        alone.mirror.pod_gone("uid-a")
        local.answer = Unknown("no answer")
        local.show(one="2")
        alone.mirror.pod(using(pod("b"), "one"))
        await turns(alone)
        assert local.patches == ["1", "2"]

    asyncio.run(story())


def test_a_pod_that_waits_on_a_node_that_registers_anew_gets_its_place_anew() -> None:
    """The brain has lost all that was on the node, and nothing was sent: it is not waited for."""

    async def story() -> None:
        alone = Alone()
        storage = Storage(alone, "data")
        alone.mirror.pod(using(pod("a"), "data"))
        await turns(alone)
        storage.show()
        alone.mirror.node_gone("n0")
        alone.mirror.node(node("n0"))
        await turns(alone)
        storage.volumes["data"] = "n0"
        storage.show()
        await turns(alone)
        assert alone.writer.binds == [("a", "n0")] and alone.acting._places == {}

    asyncio.run(story())
