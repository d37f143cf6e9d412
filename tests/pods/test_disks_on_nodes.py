"""What a disk is called, whatever it is written as, and how many of a driver hang on a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube.attaching import Attached, disk_of_claim, disk_of_volume, disks_of, driver_of
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import PersistentVolume, Pod, StorageClass, VolumeAttachment, VolumeClaim
from optimus.drivers.kube.volumes import Around, attached_to
from optimus.model.observations import NodeSeen
from optimus.model.queues import Queue
from optimus.model.reasons import Code
from tests.pods.writing import claim, node, pod, storage_class, volume

EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
DRIVER = "disks.example"


@pytest.mark.parametrize(
    ("written", "disk"),
    [
        ({"csi": {"driver": DRIVER, "volumeHandle": "h"}}, (DRIVER, "h")),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, (EBS, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-1"}}, (EBS, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, (EBS, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws://eu-1a/disk"}}, None),
        ({"gcePersistentDisk": {"pdName": "d"}}, (GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
        (
            {"gcePersistentDisk": {"pdName": "d"}, "labels": {ZONE: "eu-a"}},
            (GCE, "projects/UNSPECIFIED/zones/eu-a/disks/d"),
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}, "labels": {OLD_ZONE: "eu-a__eu-b", ZONE: "us-a"}},
            (GCE, "projects/UNSPECIFIED/regions/eu/disks/d"),
        ),
        ({"gcePersistentDisk": {"pdName": "d"}, "labels": {ZONE: "eu-a__us-b"}}, None),
        ({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "managed"}}, ("disk.csi.azure.com", "/d")),
        ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, ("disk.csi.azure.com", "/d")),
        ({"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Shared"}}, None),
        ({"cinder": {"volumeID": "c"}}, ("cinder.csi.openstack.org", "c")),
        ({"portworxVolume": {"volumeID": "p"}}, ("pxd.portworx.com", "p")),
        ({"hostPath": {"path": "/"}}, None),
    ],
)
def test_a_volume_is_a_disk_of_the_driver_that_has_taken_over(written: Any, disk: tuple[str, str] | None) -> None:
    assert disk_of_volume(volume("pv", **written)) == disk


def test_a_claim_that_is_not_bound_is_one_more_of_its_provisioner() -> None:
    classes = {
        one.metadata.name: one
        for one in (
            storage_class("old", "WaitForFirstConsumer", provisioner="kubernetes.io/aws-ebs"),
            storage_class("new", "WaitForFirstConsumer", provisioner=DRIVER),
            storage_class("none", "WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner"),
        )
    }

    def disk(kind: str, **more: Any) -> tuple[str, str] | None:
        return disk_of_claim(claim("data", storageClassName=kind, **more), {}, classes)

    assert disk("old") == (EBS, "team/data")
    assert disk("new", bound_to="not-seen-yet") == (DRIVER, "team/data")
    assert disk("none") is None and disk("unknown") is None
    assert driver_of("kubernetes.io/azure-file") == "kubernetes.io/azure-file", "which nobody counts"


def test_disks_in_pods_count_under_their_driver() -> None:
    old = pod(volumes=[{"name": "d", "azureDisk": {"diskName": "d", "diskURI": "/d"}}])
    assert disks_of(old, {}, {}, {}) == {("disk.csi.azure.com", "/d")}
    found = attached_to(old, Around())
    assert found.attached == (("~attach/disk.csi.azure.com", 1),) and found.obstacles == ()
    theirs = pod(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    assert attached_to(theirs, Around()).attached == (("~attach/ebs.csi.aws.com", 1),), (
        "also where we would not place it"
    )
    strange = pod(volumes=[{"name": "d", "azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}}])
    (why,) = attached_to(strange, Around()).obstacles
    assert why.code is Code.UNSUPPORTED and "use a managed disk" in why.text()


# -- on nodes ---------------------------------------------------------------------------------------------------------


class Storage:
    """One node that takes four volumes of one driver, and pods of others on it."""

    def __init__(self) -> None:
        self.mirror = Mirror(shipped_kinds())
        self.mirror.tenants.queue(Queue(name="default"))
        self.claims: dict[str, VolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.mirror.storage_node("n0", {f"~attach/{DRIVER}": 4})
        self.mirror.node(node("n0", has={"cpu": "64", "memory": "64Gi", "pods": "110"}))
        self.taken = 0
        self.look()

    def look(self) -> int:
        """How many of them the brain has been told to be taken by others."""
        for fact in self.mirror.news():
            if isinstance(fact, NodeSeen):
                self.taken = fact.node.foreign.accelerators.get(f"~attach/{DRIVER}", 0)
        return self.taken

    def bind(self, name: str) -> None:
        """A claim and its volume, as the watches tell them: first the one, then the other."""
        old = self.volumes.get(f"pv-{name}")
        handle = {"driver": DRIVER, "volumeHandle": f"h-{name}"}
        ref = {"namespace": "team", "name": name, "uid": name}
        self.volumes[f"pv-{name}"] = volume(f"pv-{name}", csi=handle, claimRef=ref)
        self._beside()
        self.mirror.volume_changed(old, self.volumes[f"pv-{name}"])
        self.claims[f"team/{name}"] = claim(name, bound_to=f"pv-{name}")
        self._beside()
        self.mirror.claim_changed(f"team/{name}")

    def _beside(self) -> None:
        self.mirror.beside(Around(claims=self.claims, volumes=self.volumes, classes=self.classes))

    def pod(self, name: str, *claims: str) -> Pod:
        used = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
        made = pod(name, nodeName="n0", schedulerName="another", volumes=used, status={"phase": "Running"})
        self.mirror.pod(made)
        return made

    def attach(self, name: str, pv: str, on: str = "n0", driver: str = DRIVER) -> None:
        spec = {"attacher": driver, "nodeName": on, "source": {"persistentVolumeName": pv}}
        made = msgspec.convert({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)
        self.mirror.attachment(name, made)


def test_a_volume_hangs_on_its_node_until_it_is_detached() -> None:
    storage = Storage()
    storage.bind("data")
    storage.attach("va", "pv-data")
    assert storage.look() == 1, "there is no pod"
    there = storage.pod("a", "data")
    assert storage.look() == 1, "it is the same disk"
    storage.mirror.pod_gone(there.metadata.uid)
    assert storage.look() == 1
    storage.mirror.attachment("va", None)
    assert storage.look() == 0


def test_a_volume_that_two_pods_share_is_there_once() -> None:
    storage = Storage()
    storage.bind("data")
    storage.pod("a", "data")
    storage.pod("b", "data")
    assert storage.look() == 1
    storage.bind("more")
    storage.pod("c", "data", "more")
    assert storage.look() == 2


def test_what_is_known_of_a_pod_later_is_counted_then() -> None:
    """Watches tell pods, claims and volumes in any order."""
    storage = Storage()
    storage.pod("a", "data")
    assert storage.look() == 0
    storage.attach("va", "pv-data")
    assert storage.look() == 0, "nobody knows what that is"
    storage.bind("data")
    assert storage.look() == 1
    storage.attach("other", "pv-data", on="n1")
    storage.attach("strange", "pv-data", driver="another.example")
    assert storage.look() == 1


def test_nothing_is_kept_of_what_has_gone() -> None:
    attached = Attached()
    uses = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    for name in ("a", "b"):
        attached.come(pod(name, volumes=uses), "n0")
    spec = {"attacher": DRIVER, "nodeName": "n0", "source": {"persistentVolumeName": "pv"}}
    made = msgspec.convert({"metadata": {"name": "va"}, "spec": spec}, VolumeAttachment)
    assert attached.see("va", made) == {"n0"}
    assert attached.nodes_of_claim("team/data") == {"n0"}
    for name in ("a", "b"):
        attached.leave(f"uid-{name}")
    assert attached.see("va", None) == {"n0"} and attached.see("va", None) == set()
    left = (attached._attachments, attached._on, attached._of, attached._pods, attached._users)
    assert not any(left)
