"""Pods that have a place and wait for a volume: when nothing comes, when it goes elsewhere, when they have to leave."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import structs

from optimus.drivers.kube.first_consumers import SELECTED_NODE
from optimus.drivers.kube.objects import PersistentVolume, Pod, StorageClass, Volume, VolumeClaim
from optimus.drivers.kube.preparing import PATIENCE_S
from optimus.drivers.kube.volumes import Around
from optimus.kube import Done, Outcome, Refused
from tests.kube.body_alone.cluster import Alone, pod

CLASS = {"metadata": {"name": "disks"}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disks.example"}


class Storage:
    """Claims of a cluster with one class, whose volumes are made by hand."""

    def __init__(self, alone: Alone, *names: str) -> None:
        self.alone, self.patches = alone, list[tuple[str, dict[str, Any]]]()
        self.answer: Outcome = Done()
        self.notes: dict[str, dict[str, str]] = {name: {} for name in names}
        self.volumes: dict[str, str] = {}
        """Claim -> node."""
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
            meta = {"name": name, "namespace": "team", "uid": name, "annotations": told}
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


def test_pods_alike_with_volumes_in_different_places_are_told() -> None:
    """A leader died when half of the volumes were made: replicas of one role cannot be sent to one node each."""

    async def story() -> None:
        alone = Alone(nodes=2)
        storage = Storage(alone, "one", "two")
        storage.volumes.update(one="n0", two="n1")
        storage.show()
        for name in ("one", "two"):
            alone.mirror.pod(using(pod(name, gang="g", size=2), name))
        plan = await alone.turn()
        assert "volumes in different places for pods alike" in plan.waiting[0].reason.text()
        for name in ("one", "two"):
            made = using(pod(name, gang="g", size=2), name)
            labels = {**(made.metadata.labels or {}), "optimus.dev/role": name}
            alone.mirror.pod(structs.replace(made, metadata=structs.replace(made.metadata, labels=labels)))
        await turns(alone)
        assert sorted(alone.writer.binds) == [("one", "n0"), ("two", "n1")], "with roles of their own they can"

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
